package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/tied"
)

// box is a started box.
type box struct {
	command backends.Command
	bwrap   int // its process, and its process group
	held    *holder
	voice   *voice
	over    chan struct{} // closed when the command has ended, where bwrap tells
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
	sent    syscall.Signal // the last one delivered to the command's process
	killed  bool
	buried  bool   // ended because its command had died and bwrap did not tell
	reaped  bool   // bwrap's process is gone
	stopped bool   // everything is gone
	lost    string // what was uncovered while the command ran
}

// newBox is a box that is not started yet.
func newBox(command backends.Command) *box {
	p := &box{command: command, over: make(chan struct{}), done: make(chan struct{}), initFD: -1}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
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
	p := newBox(plan.Command)
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
	waits, release, err := os.Pipe() // a byte into the latter lets the command go
	if err != nil {
		return err
	}
	d.close = append(d.close, waits)
	defer func() {
		if err != nil {
			release.Close()
		}
	}()
	if p.held, err = hold(o, release); err != nil {
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
	defer func() {
		if err != nil {
			status.Close()
		}
	}()
	d.add("sync", p.held.box)
	for _, f := range plan.Files {
		m, err := memory(f.Name, f.Content)
		if err != nil {
			return err
		}
		d.add(f.Name, m)
	}
	d.number["block"] = len(d.files)
	d.files = append(d.files, waits)
	args, err := d.pipe("args", true)
	if err != nil {
		return err
	}
	defer args.Close()
	words, argv, err := p.argv(plan, d)
	if err != nil {
		return err
	}
	if err := room(args, len(words)); err != nil {
		return err
	}
	from, err := programOf(o.Bwrap)
	if err != nil {
		return fmt.Errorf("start %q: %w", o.Bwrap, err)
	}
	defer from.close()
	tied.Do(func() {
		p.bwrap, err = fork(from.path, argv, outerEnv(plan.Command.Env), d.files, &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL})
	})
	if err != nil {
		return fmt.Errorf("start %q: %w", o.Bwrap, err)
	}
	d.closeAll()
	// bwrap waits for its arguments, so that by the time it makes a process the
	// janitor knows of it. When it has ended already, Wait says why.
	p.held.started(p.bwrap)
	args.Write(words)
	born := make(chan int, 1)
	listened := make(chan struct{})
	go func() { p.listen(status, born); close(listened) }()
	go p.run(b, o, plan, release, born, listened)
	return nil
}

// room makes a pipe large enough for all that bwrap is told, so that it is written
// at once or not at all: were kgate killed in the middle, bwrap would take what
// it has got for the whole, and make half a box.
func room(pipe *os.File, size int) error {
	if size <= 64<<10 {
		return nil // pipe(7)
	}
	if _, err := unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, size); err != nil {
		return fmt.Errorf("tell bwrap %d KiB of arguments: %w (more than /proc/sys/fs/pipe-max-size; let the policy name fewer paths)", size>>10, err)
	}
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

// out says whether a part of the plan is left out of the box.
func (p *box) out(part string) bool {
	return omit(part) || p.held.skipped[strings.TrimPrefix(part, "absent:")]
}

// argv is bwrap's own argument list. What describes the box goes through --args,
// whose words may be long and many; the command's own stay where they were.
func (p *box) argv(plan *backends.Plan, d *descriptors) (words []byte, argv []string, err error) {
	argv = []string{"bwrap", "--args", strconv.Itoa(d.number["args"])}
	inCommand := false
	for _, part := range plan.Parts {
		if part.Name == "end" {
			inCommand = true
		}
		if p.out(part.Name) {
			continue
		}
		for _, word := range part.Words {
			if inCommand {
				argv = append(argv, word)
				continue
			}
			if name, ok := strings.CutPrefix(word, "@"); ok && part.Words[0] != setEnv {
				n, ok := d.number[name]
				if !ok {
					return nil, nil, fmt.Errorf("bubblewrap: start: no descriptor %q (a bug of kgate's)", name)
				}
				word = strconv.Itoa(n)
			}
			words = append(append(words, word...), 0)
		}
	}
	return words, argv, nil
}
