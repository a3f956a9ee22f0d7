package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// screenTest is a tmux server of its own with a shell in it. Everything is
// waited for with a deadline, never slept for.
type screenTest struct {
	t      *testing.T
	socket string
}

const deadline = 20 * time.Second

// newScreen starts a shell with a plain prompt in a terminal of 80 by 24. L
// stands for the launching program.
func newScreen(t *testing.T) *screenTest {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "tmux") {
			t.Fatal("tmux is not installed, and KGATE_MUST asks for it")
		}
		t.Skip("tmux is not installed")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	script := "PS1='ready> '\nPS2=\nset +o history\nL() { " + exe + " launch \"$@\"; }\nunset PROMPT_COMMAND\ncd " + dir + "\n"
	if err := os.WriteFile(rc, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &screenTest{t, filepath.Join(dir, "tmux")}
	s.tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "env", "LC_ALL=C.UTF-8", "bash", "--noprofile", "--rcfile", rc, "-i")
	t.Cleanup(func() {
		exec.Command("tmux", "-S", s.socket, "kill-server").Run()
	})
	s.wait("the shell", func(text string) bool { return strings.HasSuffix(text, "ready>") })
	return s
}

func (s *screenTest) tmux(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// text is what the screen shows, without the blanks at its end.
func (s *screenTest) text() string {
	return strings.TrimRight(s.tmux("capture-pane", "-p"), "\n ")
}

// styled is the same with the colours as escape sequences.
func (s *screenTest) styled() string { return s.tmux("capture-pane", "-p", "-e") }

// typ types text as it is; key presses a key by tmux's name for it.
func (s *screenTest) typ(text string) { s.t.Helper(); s.tmux("send-keys", "-l", "--", text) }
func (s *screenTest) key(name string) { s.t.Helper(); s.tmux("send-keys", name) }
func (s *screenTest) enter(line string) {
	s.t.Helper()
	s.typ(line)
	s.key("Enter")
}

// wait waits until the screen satisfies ok.
func (s *screenTest) wait(what string, ok func(text string) bool) {
	s.t.Helper()
	until := time.Now().Add(deadline)
	text := ""
	for time.Now().Before(until) {
		if text = s.text(); ok(text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("waited for %s; the screen shows:\n%s", what, text)
}

// shows waits until the screen has each text, in this order.
func (s *screenTest) shows(texts ...string) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%q", texts), func(screen string) bool {
		for _, want := range texts {
			i := strings.Index(screen, want)
			if i < 0 {
				return false
			}
			screen = screen[i+len(want):]
		}
		return true
	})
}

// taken waits until kgate has the terminal: what is typed before is the shell's
// to echo. A shell that edits a line leaves the keys that make signals alone.
func (s *screenTest) taken() {
	s.t.Helper()
	tty := strings.TrimSpace(s.tmux("display-message", "-p", "#{pane_tty}"))
	s.wait("raw modes", func(string) bool {
		out, _ := exec.Command("stty", "-F", tty, "-a").Output()
		return strings.Contains(string(out), "-isig")
	})
}

// launch runs a command line that begins with kgate, on a clear screen.
func (s *screenTest) launch(line string) {
	s.t.Helper()
	s.enter("clear; L " + line)
	s.taken()
}

// prompt waits for the shell's prompt on the last line.
func (s *screenTest) prompt() {
	s.t.Helper()
	s.wait("the prompt", func(text string) bool { return strings.HasSuffix(text, "ready>") })
}

// status checks the exit status of the last command.
func (s *screenTest) status(want int) {
	s.t.Helper()
	s.prompt()
	s.enter(`echo "status=$?."`)
	s.shows(fmt.Sprintf("\nstatus=%d.", want))
	s.prompt()
}

// sane checks that the person's terminal has the modes it had.
func (s *screenTest) sane() {
	s.t.Helper()
	s.prompt()
	file := filepath.Join(s.dir(), "modes")
	os.Remove(file)
	s.enter("stty -a >modes.new; mv modes.new modes; clear")
	s.wait("a clear screen", func(text string) bool { return text == "ready>" })
	modes, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	have := " " + strings.Join(strings.Fields(string(modes)), " ") + " "
	for _, mode := range []string{"icanon", "isig", "iexten", "echo", "opost", "icrnl", "ixon"} {
		if !strings.Contains(have, " "+mode+" ") {
			s.t.Fatalf("the terminal is left without %s:\n%s", mode, modes)
		}
	}
}

// dir is the shell's directory.
func (s *screenTest) dir() string { return filepath.Dir(s.socket) }
