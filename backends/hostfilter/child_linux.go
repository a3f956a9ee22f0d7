package hostfilter

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends/tied"
)

// command is what a helper is started from.
type command struct {
	argv  []string // the first is the program's path
	env   []string
	in    *os.File   // nil: nothing
	files []*os.File // its descriptors from 3 on
}

// child is a helper process of one filter.
type child struct {
	name   string
	stderr tail
	gone   chan struct{}      // closed when the process has been waited for
	status syscall.WaitStatus // from then on

	mu     sync.Mutex
	pid    int
	reaped bool
}

// start starts a helper that dies with this process, out of reach of the
// terminal's signals. What it prints on stderr is kept, as far as it is short.
func start(name string, cmd command) (*child, error) {
	c := &child{name: name, gone: make(chan struct{})}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fault(name, "", "start: %w", err)
	}
	defer null.Close()
	errs, errsW, err := os.Pipe()
	if err != nil {
		return nil, fault(name, "", "start: %w", err)
	}
	defer errsW.Close()
	if cmd.in == nil {
		cmd.in = null
	}
	files := append([]*os.File{cmd.in, null, errsW}, cmd.files...)
	tied.Do(func() {
		c.pid, err = tied.Fork(cmd.argv[0], cmd.argv, cmd.env, files, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true})
	})
	if err != nil {
		errs.Close()
		return nil, fault(name, "", "start %s: %w", cmd.argv[0], err)
	}
	go c.wait(errs)
	return c, nil
}

// wait sees the process to its end. What it has started itself may hold its
// stderr longer, which is not waited for.
func (c *child) wait(errs *os.File) {
	copied := make(chan struct{})
	go func() { io.Copy(&c.stderr, errs); close(copied) }()
	for unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	c.mu.Lock()
	c.status, _ = tied.Wait(c.pid)
	c.reaped = true
	c.mu.Unlock()
	select {
	case <-copied:
	case <-time.After(time.Second):
	}
	errs.Close()
	close(c.gone)
}

// fault says how the process ended, in its own words where it left any.
func (c *child) fault(before string) error {
	how := fmt.Sprintf("exit status %d", c.status.ExitStatus())
	if c.status.Signaled() {
		how = "signal: " + c.status.Signal().String()
	}
	if said := words(c.stderr.String()); said != "" {
		return fmt.Errorf("it ended %s: %s (%s)", before, said, how)
	}
	return fmt.Errorf("it ended %s: %s", before, how)
}

// kill ends the process; its number is nobody else's while it is not reaped.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		syscall.Kill(c.pid, syscall.SIGKILL)
	}
}

// end kills the process and waits for it.
func (c *child) end() {
	c.kill()
	<-c.gone
}

// tail keeps the first bytes of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4096 - t.buf.Len(); room > 0 {
		t.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}
