package terminal

import (
	"os/exec"
	"strings"
	"testing"
)

// program returns a screen, or skips when the program is not there.
func program(t *testing.T, name string) *screenTest {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	return newScreen(t)
}

func TestVim(t *testing.T) {
	s := program(t, "vim")
	s.enter("echo before; L vim -u NONE -N file.txt")
	s.shows("~\n~", `"file.txt" [New`)
	s.typ("ihello from vim")
	s.shows("hello from vim")
	s.key("Escape")
	s.key("C-z")
	s.shows("before", "Stopped", "ready>")
	s.enter("fg")
	s.shows("hello from vim\n~")
	s.enter(":wq")
	s.shows("before\n")
	s.status(0)
	s.sane()
	s.enter("cat file.txt")
	s.shows("hello from vim\nready>")
}

func TestLess(t *testing.T) {
	s := program(t, "less")
	s.enter("seq 500 >n; clear; L less n")
	s.shows("1\n2\n3", "23")
	s.key("Space")
	s.shows("24\n25")
	s.tmux("resize-window", "-x", "60", "-y", "10")
	s.key("g")
	s.shows("1\n2\n", "9")
	s.key("q")
	s.status(0)
	s.sane()
}

func TestTop(t *testing.T) {
	s := program(t, "top")
	s.enter("L top")
	s.shows("PID", "COMMAND")
	s.key("q")
	s.status(0)
	s.sane()
}

func TestPython(t *testing.T) {
	s := program(t, "python3")
	s.enter("L env TERM=dumb python3 -q")
	s.shows(">>>")
	s.enter("6*7")
	s.shows(">>> 6*7\n42\n>>>")
	s.enter("input('name: ')")
	s.shows("name:")
	s.enter("x")
	s.shows("'x'\n>>>")
	s.key("C-d")
	s.status(0)
	s.sane()
}

func TestTmux(t *testing.T) {
	s := newScreen(t)
	inner := s.dir() + "/inner"
	s.enter("L env -u TMUX tmux -f /dev/null -S " + inner + " new-session env PS1='in> ' sh")
	t.Cleanup(func() { exec.Command("tmux", "-S", inner, "kill-server").Run() })
	s.shows("in>", "[0]")
	s.enter("echo $((6*7))")
	s.shows("\n42\n")
	s.tmux("resize-window", "-x", "70", "-y", "20")
	s.enter("clear; stty size")
	s.shows("19 70")
	s.enter("exit")
	s.wait("the end", func(text string) bool { return strings.Contains(text, "[exited]") })
	s.status(0)
	s.sane()
}
