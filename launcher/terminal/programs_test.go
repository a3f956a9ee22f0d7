package terminal

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/launcher/terminal/tmux"
)

// program returns a screen, or skips when the program is not there.
func program(t *testing.T, name string) *tmux.Screen {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	return newScreen(t)
}

func TestVim(t *testing.T) {
	s := program(t, "vim")
	s.Enter("echo before; L vim -u NONE -N file.txt")
	s.Shows("~\n~", `"file.txt" [New`)
	s.Type("ihello from vim")
	s.Shows("hello from vim")
	s.Key("Escape")
	s.Key("C-z")
	s.Shows("before", "Stopped", "ready>")
	s.Enter("fg")
	s.Shows("hello from vim\n~")
	s.Enter(":wq")
	s.Shows("before\n")
	s.Status(0)
	s.Sane()
	s.Enter("cat file.txt")
	s.Shows("hello from vim\nready>")
}

func TestLess(t *testing.T) {
	s := program(t, "less")
	s.Enter("seq 500 >n; clear; L less n")
	s.Shows("1\n2\n3", "23")
	s.Key("Space")
	s.Shows("24\n25")
	s.Run("resize-window", "-x", "60", "-y", "10")
	s.Shows("24\n25", "32\n:") // a key that comes with the signal is lost in less itself
	s.Key("g")
	s.Shows("1\n2\n", "9")
	s.Key("q")
	s.Status(0)
	s.Sane()
}

func TestTop(t *testing.T) {
	s := program(t, "top")
	s.Enter("L top")
	s.Shows("PID", "COMMAND")
	s.Key("q")
	s.Status(0)
	s.Sane()
}

func TestPython(t *testing.T) {
	s := program(t, "python3")
	s.Enter("L env TERM=dumb python3 -q")
	s.Shows(">>>")
	s.Enter("6*7")
	s.Shows(">>> 6*7\n42\n>>>")
	s.Enter("input('name: ')")
	s.Shows("name:")
	s.Enter("x")
	s.Shows("'x'\n>>>")
	s.Key("C-d")
	s.Status(0)
	s.Sane()
}

func TestTmux(t *testing.T) {
	s := newScreen(t)
	inner := s.Dir() + "/inner"
	s.Enter("L env -u TMUX tmux -f /dev/null -S " + inner + " new-session env PS1='in> ' sh")
	t.Cleanup(func() { exec.Command("tmux", "-S", inner, "kill-server").Run() })
	s.Shows("in>", "[0]")
	s.Enter("echo $((6*7))")
	s.Shows("\n42\n")
	s.Run("resize-window", "-x", "70", "-y", "20")
	s.Enter("clear; stty size")
	s.Shows("19 70")
	s.Enter("exit")
	s.Wait("the end", func(text string) bool { return strings.Contains(text, "[exited]") })
	s.Status(0)
	s.Sane()
}
