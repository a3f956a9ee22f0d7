package hostfilter

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// starter runs functions on one thread that lives as long as this process. A
// child's death signal comes when the thread that started it ends.
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

// startTied starts a process that dies with this one, out of reach of the
// terminal's signals.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// child is a helper process of one filter.
type child struct {
	name   string
	cmd    *exec.Cmd
	stderr tail
	gone   chan struct{} // closed when the process has been waited for
}

// start starts a helper that dies with this process.
func start(name string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: name, cmd: cmd, gone: make(chan struct{})}
	cmd.Stderr = &c.stderr
	cmd.WaitDelay = time.Second
	if err := startTied(cmd); err != nil {
		return nil, fault(name, "", "start: %w", err)
	}
	go func() {
		cmd.Wait()
		close(c.gone)
	}()
	return c, nil
}

// fault says how the process ended, in its own words where it left any.
func (c *child) fault(before string) error {
	how := c.cmd.ProcessState.String()
	if said := words(c.stderr.String()); said != "" {
		return fmt.Errorf("it ended %s: %s (%s)", before, said, how)
	}
	return fmt.Errorf("it ended %s: %s", before, how)
}

// end kills the process and waits for it.
func (c *child) end() {
	c.cmd.Process.Signal(os.Kill)
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
