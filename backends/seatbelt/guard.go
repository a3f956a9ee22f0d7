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

// guardScript takes the launch's directory as its argument, then reads the number
// of the box's process group and that all is clean. The shell's kill need not
// know "--": dash takes it for a number.
const guardScript = `read -r group || group=
read -r all_is_clean && exit
case $group in ''|*[!0-9]*) ;; *) kill -KILL "-$group" ;; esac
chmod -R u+rwx "$1"
rm -rf "$1"`

// watch starts the guard of a launch whose directory is absolute.
func watch(dir string) (*guard, error) {
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
	argv := []string{"sh", "-c", guardScript, "kgate-guard", dir}
	shell, err := os.StartProcess("/bin/sh", argv, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{r, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start the guard of the launch: %w", err)
	}
	return &guard{shell: shell, say: w}, nil
}

// over tells the guard which process group is the box's.
func (g *guard) over(group int) error {
	_, err := io.WriteString(g.say, strconv.Itoa(group)+"\n")
	return err
}

// dismiss ends the guard.
func (g *guard) dismiss() {
	io.WriteString(g.say, "\nyes\n")
	g.say.Close()
	g.shell.Wait()
}
