//go:build unix

package seatbelt

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// guard is a shell that waits outside the box for kgate to say that all is
// cleaned up. When kgate ends without saying so, by SIGKILL for one, it ends the
// box and removes the launch's directory. A Mac has no signal on a parent's
// death.
type guard struct {
	shell *os.Process
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
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, err
	}
	defer null.Close()
	argv := []string{"sh", "-c", guardScript, "kgate-guard", strconv.Itoa(group), dir}
	shell, err := os.StartProcess("/bin/sh", argv, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{r, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard of the launch: %w", err)
	}
	return &guard{shell: shell, say: w}, nil
}

// dismiss ends the guard.
func (g *guard) dismiss() {
	io.WriteString(g.say, "yes\n")
	g.say.Close()
	g.shell.Wait()
}
