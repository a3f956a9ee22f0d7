package hostfilter

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/kgate-dev/kgate/backends/tied"
)

// startTied starts a process that dies with this one, out of reach of the
// terminal's signals.
func startTied(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var err error
	tied.Do(func() { err = cmd.Start() })
	return err
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
