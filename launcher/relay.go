package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/mask"
	"github.com/kgate-dev/kgate/launcher/terminal"
)

// relay starts the plan and passes streams and signals between the person and
// the command until the box is gone. It returns the command's exit status.
func (l *Launch) relay(in, out, errs *os.File) (int, error) {
	term, err := terminal.Open(in, out, errs)
	if err != nil {
		return 0, err
	}
	defer term.Close()
	signals := notify(term != nil)
	defer signal.Stop(signals)

	pipes, std, err := l.streams(term, in, out, errs)
	if err != nil {
		return 0, err
	}
	given, err := pour(std.In)
	if err == nil && given != nil {
		std.In = given.r
	}
	var p backends.Process
	if err == nil {
		p, err = l.backend.Start(l.Plan, std)
	}
	for _, s := range pipes {
		s.end.Close()
	}
	if err != nil {
		for _, s := range pipes {
			s.from.Close()
		}
		return 0, errors.Join(err, given.stop())
	}
	var copies sync.WaitGroup
	for _, s := range pipes {
		copies.Go(s.copy)
	}
	var shown error
	if term != nil {
		copies.Go(func() { shown = term.Relay(l.Masks) })
	}
	done := make(chan struct{})
	go forward(signals, p, done, l.request.Grace)
	go endWith(l.request.Over, p, done)
	exit, err := p.Wait()
	close(done)
	ungiven := given.stop()
	if term != nil {
		term.Drain()
	}
	copies.Wait()
	if err = errors.Join(err, ungiven); err != nil {
		return 0, err
	}
	if term != nil {
		if err := term.Failure(); err != nil {
			var failed *terminal.ExecError
			if errors.As(err, &failed) {
				return 0, l.backend.CommandError(failed.Errno, l.Plan.Command)
			}
			return 0, fmt.Errorf("%q: %w", l.request.Argv[0], err)
		}
	}
	for _, s := range pipes {
		if s.err != nil {
			return 0, fmt.Errorf("write the command's %s: %w", s.name, s.err)
		}
	}
	return exit.Status(), shown
}

// stream is one of the command's outputs on its way through the mask.
type stream struct {
	name string
	from *os.File // read end
	end  *os.File // write end, the command's
	to   *os.File
	mask *mask.Writer
	err  error
}

// streams makes a masked pipe for each output that is not a terminal. Outputs
// that are the same file share one pipe, so that what the command writes to
// either keeps its order.
func (l *Launch) streams(term *terminal.Session, in, out, errs *os.File) ([]*stream, backends.Stdio, error) {
	std := backends.Stdio{In: term.Stream(in)}
	if term != nil {
		std.Control = term.Control()
	}
	var all []*stream
	open := func(name string, to *os.File) (*os.File, error) {
		if to == nil {
			return nil, nil
		}
		if f := term.Stream(to); f != to {
			return f, nil
		}
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("make a pipe for the command's %s: %w", name, err)
		}
		all = append(all, &stream{name: name, from: r, end: w, to: to, mask: l.Masks.Writer(to)})
		return w, nil
	}
	var err error
	if std.Out, err = open("stdout", out); err == nil {
		if sameFile(out, errs) {
			std.Err = std.Out
		} else {
			std.Err, err = open("stderr", errs)
		}
	}
	if err != nil {
		for _, s := range all {
			s.from.Close()
			s.end.Close()
		}
		return nil, std, err
	}
	return all, std, nil
}

func sameFile(a, b *os.File) bool {
	if a == nil || b == nil {
		return false
	}
	ai, errA := a.Stat()
	bi, errB := b.Stat()
	return errA == nil && errB == nil && os.SameFile(ai, bi)
}

// idle is how long text that may be the start of a secret waits for more before
// its public part is shown, so that a prompt appears. Nobody types into a pipe,
// so it is long enough for a program that is kept from running to go on.
var idle = 50 * time.Millisecond

// copy runs until the last holder of the write end is gone. When nobody reads
// kgate's output any more, the command gets the broken pipe itself.
func (s *stream) copy() {
	defer s.from.Close()
	buf := make([]byte, 64<<10)
	waiting := false // a deadline is set
	total := 0
	for {
		n, err := s.from.Read(buf)
		if n > 0 && s.wrote(s.mask.Write(buf[:n])) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if s.wrote(0, s.mask.Release()) {
				return
			}
			s.from.SetReadDeadline(time.Time{})
			continue
		}
		if err != nil {
			if err != io.EOF {
				s.err = err
			}
			break
		}
		if total += n; total > much {
			s.from.SetReadDeadline(time.Time{})
			s.copyMuch()
			break
		}
		switch held := s.mask.Held(); {
		case held:
			s.from.SetReadDeadline(time.Now().Add(idle))
		case waiting:
			s.from.SetReadDeadline(time.Time{})
		}
		waiting = s.mask.Held()
	}
	s.wrote(0, s.mask.Close())
}

// wrote says whether writing has come to its end, and keeps why.
func (s *stream) wrote(_ int, err error) bool {
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		s.err = err
	}
	return err != nil
}

// forwarded are the signals that reach the command's own process. SIGPIPE is
// only taken so that kgate outlives its reader long enough to pass that on.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGCONT,
}

func notify(term bool) chan os.Signal {
	c := make(chan os.Signal, 16)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	for _, s := range forwarded {
		if term && (s == syscall.SIGTSTP || s == syscall.SIGCONT) {
			continue // job control is the terminal's
		}
		// A signal that kgate was started with as ignored (nohup) stays ignored,
		// by kgate and, since that is inherited, by the command.
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

func forward(signals <-chan os.Signal, p backends.Process, done <-chan struct{}, grace time.Duration) {
	var late <-chan time.Time
	for {
		select {
		case <-late:
			p.Kill()
			late = nil
		case s := <-signals:
			p.Signal(s)
			if grace > 0 && late == nil && asksToEnd(s) {
				late = time.After(grace)
			}
			if s == syscall.SIGTSTP {
				// The command has stopped or has its own handler; either way the
				// person's shell is waiting for this process to stop.
				syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
			}
		case <-done:
			return
		}
	}
}

func asksToEnd(s os.Signal) bool {
	switch s {
	case syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT:
		return true
	}
	return false
}

// endWith kills the box when over is closed first.
func endWith(over <-chan struct{}, p backends.Process, done <-chan struct{}) {
	select {
	case <-over:
		p.Kill()
	case <-done:
	}
}
