package bubblewrap

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// starter runs functions on one thread that lives as long as this process: a
// child's death signal comes when the thread that started it ends, not when the
// process does (prctl(2), PR_SET_PDEATHSIG).
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// box is a started box.
type box struct {
	command backends.Command
	bwrap   *os.Process
	held    *holder
	voice   *voice
	done    chan struct{} // closed when exit and err stand

	exit backends.Exit
	err  error

	ctx    context.Context // ends when the box is to end
	cancel context.CancelFunc

	mu      sync.Mutex
	init    int // the first process in the box, as this namespace numbers it; 0: not known yet
	initFD  int // its pidfd; -1: none
	code    *int
	ended   syscall.Signal // asked to end before there was a command
	killed  bool
	reaped  bool // bwrap's process is gone
	stopped bool // everything is gone
}

// descriptors collects what bwrap inherits.
type descriptors struct {
	files  []*os.File
	number map[string]int
	close  []*os.File // this process's own, once bwrap has them
}

func (d *descriptors) add(name string, f *os.File) {
	d.number[name] = len(d.files)
	d.files = append(d.files, f)
	d.close = append(d.close, f)
}

func (d *descriptors) pipe(name string, theyRead bool) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if theyRead {
		d.add(name, r)
		return w, nil
	}
	d.add(name, w)
	return r, nil
}

func (d *descriptors) closeAll() {
	for _, f := range d.close {
		f.Close()
	}
	d.close = nil
}

// memory is an unnamed file with some content, to be read from the start.
func memory(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.Write(content); err != nil {
		f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Start starts the box. It returns when bwrap is running; what becomes of the
// command is what Wait says.
func (b *Backend) Start(plan *backends.Plan, std backends.Stdio) (backends.Process, error) {
	o, ok := plan.Extra.(*own)
	if !ok {
		return nil, errors.New("bubblewrap: start: the plan is another backend's")
	}
	if blocked := plan.Blocked(); len(blocked) > 0 {
		return nil, &backends.BlockedError{Findings: blocked}
	}
	closeOnExec()
	p := &box{command: plan.Command, done: make(chan struct{}), initFD: -1}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if err := b.start(p, o, plan, std); err != nil {
		p.cancel()
		if p.held != nil {
			err = errors.Join(err, p.held.release())
		}
		return nil, err
	}
	return p, nil
}

func (b *Backend) start(p *box, o *own, plan *backends.Plan, std backends.Stdio) (err error) {
	d := &descriptors{number: map[string]int{}}
	defer d.closeAll()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	d.close = append(d.close, null)
	if p.held, err = hold(o); err != nil {
		return err
	}
	if p.voice, err = listen(std.Out, std.Err, p.running); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			p.voice.drop()
		}
	}()
	d.files = []*os.File{orNull(std.In, null), orNull(std.Out, null), p.voice.errs}
	if p.voice.both {
		d.files[1] = p.voice.errs
	}
	d.close = append(d.close, p.voice.own...)
	if std.Control != nil {
		d.files = append(d.files, std.Control) // backends.ControlFD
	}
	status, err := d.pipe("status", false)
	if err != nil {
		return err
	}
	d.add("sync", p.held.box)
	for _, f := range plan.Files {
		m, err := memory(f.Name, f.Content)
		if err != nil {
			return err
		}
		d.add(f.Name, m)
	}
	var release *os.File
	if plan.Network.Value == policy.Restricted {
		// What info-fd says is on the status stream too, so nobody reads this one.
		d.number["info"] = len(d.files)
		d.files = append(d.files, null)
		if release, err = d.pipe("block", true); err != nil {
			return err
		}
	}
	argv, err := p.argv(o, plan, d)
	if err != nil {
		return err
	}
	attr := &os.ProcAttr{Dir: "/", Env: plan.Command.Env, Files: d.files,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	if attr.Env == nil {
		attr.Env = []string{}
	}
	started := make(chan struct{})
	starter() <- func() { p.bwrap, err = os.StartProcess(o.Bwrap, argv, attr); close(started) }
	<-started
	if err != nil {
		status.Close()
		if release != nil {
			release.Close()
		}
		return fmt.Errorf("start %q: %w", o.Bwrap, err)
	}
	p.held.started(p.bwrap.Pid)
	born := make(chan int, 1)
	listened := make(chan struct{})
	go func() { p.listen(status, born); close(listened) }()
	go p.run(b, plan, release, born, listened)
	return nil
}

// closeOnExec keeps every descriptor that kgate was started with, beside the
// first three, from its children: what a harness leaves open would reach the
// command.
func closeOnExec() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, err := os.ReadDir("/proc/self/fd") // before Linux 5.11
	if err != nil {
		return
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 2 {
			unix.CloseOnExec(n)
		}
	}
}

func orNull(f, null *os.File) *os.File {
	if f == nil {
		return null
	}
	return f
}

// argv is bwrap's own argument list. What describes the box goes through --args,
// whose words may be long and many; the command's own stay where they were.
func (p *box) argv(o *own, plan *backends.Plan, d *descriptors) ([]string, error) {
	var words []byte
	argv := []string{"bwrap", "--args", ""}
	inCommand := false
	for _, part := range plan.Parts {
		if part.Name == "end" {
			inCommand = true
		}
		if omit(part.Name) || p.held.skipped[strings.TrimPrefix(part.Name, "absent:")] {
			continue
		}
		for _, word := range part.Words {
			if inCommand {
				argv = append(argv, word)
				continue
			}
			if name, ok := strings.CutPrefix(word, "@"); ok {
				n, ok := d.number[name]
				if !ok {
					return nil, fmt.Errorf("bubblewrap: start: no descriptor %q (a bug of kgate's)", name)
				}
				word = strconv.Itoa(n)
			}
			words = append(append(words, word...), 0)
		}
	}
	args, err := memory("args", words)
	if err != nil {
		return nil, err
	}
	d.add("args", args)
	argv[2] = strconv.Itoa(d.number["args"])
	return argv, nil
}

// listen reads bwrap's status stream: one JSON object a line, the first with the
// first process in the box, the last with the command's status if it ran.
func (p *box) listen(status *os.File, born chan<- int) {
	defer status.Close()
	defer close(born)
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		var s struct {
			Child int  `json:"child-pid"`
			Exit  *int `json:"exit-code"`
		}
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue
		}
		if s.Child > 0 {
			fd, err := unix.PidfdOpen(s.Child, 0)
			if err != nil {
				fd = -1
			}
			p.mu.Lock()
			p.init, p.initFD = s.Child, fd
			end := p.killed || p.ended != 0
			p.mu.Unlock()
			if end {
				p.killInit()
			}
			born <- s.Child
		}
		if s.Exit != nil {
			p.mu.Lock()
			p.code = s.Exit
			p.mu.Unlock()
		}
	}
}

// run sees the box through to its end and then cleans up.
func (p *box) run(b *Backend, plan *backends.Plan, release *os.File, born <-chan int, listened <-chan struct{}) {
	defer close(p.done)
	var filter *hostfilter.Filter
	var failed error
	if release != nil {
		if pid, ok := <-born; ok {
			filter, failed = p.attach(b, plan, pid)
		}
		if failed == nil {
			// Anything else than this byte must not be: the end of the file
			// alone releases the command too.
			if p.ctx.Err() == nil {
				release.Write([]byte{1})
			}
		} else {
			p.end()
		}
	}
	state, werr := p.bwrap.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	<-listened
	p.waitInit()
	p.cancel()
	if release != nil {
		release.Close()
	}
	if filter != nil {
		filter.Close()
	}
	words := p.voice.finish(func() bool { return p.code != nil })
	herr := p.held.release()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	switch {
	case failed != nil:
		p.err = failed
	case p.code != nil:
		p.exit = backends.Exit{Code: *p.code}
	case p.ended != 0:
		p.exit = backends.Exit{Signal: p.ended}
	case werr != nil:
		p.err = fmt.Errorf("wait for bwrap: %w", werr)
	case p.killed:
		p.exit = backends.Exit{Signal: syscall.SIGKILL}
	default:
		if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			p.exit = backends.Exit{Signal: s.Signal()}
		} else {
			p.err = launchError(words, state.String(), p.command)
		}
	}
	if herr != nil && p.err == nil {
		p.err = fmt.Errorf("clean up after the launch: %w", herr)
	}
}

// attach puts the host filter around the box's network namespace.
func (p *box) attach(b *Backend, plan *backends.Plan, pid int) (*hostfilter.Filter, error) {
	resolver, err := hostfilter.HostResolver()
	if err != nil {
		return nil, err
	}
	f, err := hostfilter.Attach(p.ctx, hostfilter.Config{
		Hosts: plan.Hosts, IPv6: plan.IPv6, Resolver: resolver, Verbose: b.Verbose,
	}, pid)
	if err != nil {
		if p.ctx.Err() != nil {
			return nil, nil // asked to end; how is known elsewhere
		}
		return nil, err
	}
	go func() {
		select {
		case err := <-f.Done():
			if b.Warnings != nil {
				fmt.Fprintf(b.Warnings, "kgate: %v\n", err)
			}
		case <-p.ctx.Done():
		}
	}()
	return f, nil
}

// waitInit waits until the first process in the box is gone, and with it every
// other: bwrap itself ends a moment earlier.
func (p *box) waitInit() {
	if p.initFD < 0 {
		return
	}
	fds := []unix.PollFd{{Fd: int32(p.initFD), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	unix.Close(p.initFD)
	p.initFD = -1
	p.mu.Unlock()
}

// Wait returns how the command ended; see [backends.Process].
func (p *box) Wait() (backends.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// end kills the whole box. While bwrap is making it, its two processes would
// survive each other, so it is the process group that is killed.
func (p *box) end() {
	p.cancel()
	p.killInit()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.bwrap.Pid, syscall.SIGKILL)
	}
}

func (p *box) killInit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.initFD >= 0 {
		unix.PidfdSendSignal(p.initFD, unix.SIGKILL, nil, 0)
	}
}

// Kill ends the whole box at once.
func (p *box) Kill() error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.end()
	return nil
}

// child returns the command's own process, 0 when there is none (yet). It is the
// first child of the first process in the box; what is orphaned there comes
// after it.
func (p *box) child() int {
	p.mu.Lock()
	init := p.init
	p.mu.Unlock()
	if init == 0 {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", init, init))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, _ := strconv.Atoi(first)
	return pid
}

// running says whether the command has been executed, as far as one can tell.
func (p *box) running() bool {
	pid := p.child()
	if pid == 0 {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && string(name) != "bwrap\n"
}

// Signal delivers to the command's own process.
func (p *box) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	p.mu.Lock()
	over := p.stopped || p.code != nil
	p.mu.Unlock()
	if over {
		return os.ErrProcessDone
	}
	if pid := p.child(); pid != 0 {
		return syscall.Kill(pid, s)
	}
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSTOP, syscall.SIGCONT,
		syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH:
		return nil // do not end a program that has not said otherwise
	}
	p.mu.Lock()
	if p.ended == 0 {
		p.ended = s
	}
	p.mu.Unlock()
	p.end()
	return nil
}
