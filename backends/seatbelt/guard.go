//go:build unix

package seatbelt

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// guard is a shell that waits outside the box for kgate to say that all is
// cleaned up. When kgate ends without saying so, by SIGKILL for one, it ends the
// box and removes the launch's directory. A Mac has no signal on a parent's
// death.
type guard struct {
	shell *exec.Cmd
	say   io.WriteCloser
}

// guardScript takes the box's process group and the launch's directory.
const guardScript = `read -r all_is_clean && exit
kill -KILL -- "-$1" 2>/dev/null
chmod -R u+rwx -- "$2" 2>/dev/null
rm -rf -- "$2"`

func watch(group int, dir string) (*guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	g := &guard{shell: exec.Command("/bin/sh", "-c", guardScript, "kgate-guard", strconv.Itoa(group), dir), say: w}
	g.shell.Dir = "/"
	g.shell.Env = []string{"PATH=/usr/bin:/bin"}
	g.shell.Stdin = r
	g.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := g.shell.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard of the launch: %w", err)
	}
	return g, nil
}

// dismiss ends the guard.
func (g *guard) dismiss() {
	io.WriteString(g.say, "yes\n")
	g.say.Close()
	g.shell.Wait()
}
