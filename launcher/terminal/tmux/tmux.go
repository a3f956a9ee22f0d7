// Package tmux drives a shell in a terminal for tests: it types, and reads what
// the screen shows.
package tmux

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Screen is a tmux server of its own with a shell in it. Everything is waited
// for with a deadline, never slept for.
type Screen struct {
	t      *testing.T
	socket string
	dir    string
}

const deadline = 20 * time.Second

// New starts a shell with a plain prompt in a terminal of 80 by 24, in a
// directory of its own. In it, L runs program, a shell's words. The test is
// skipped where there is no tmux, unless KGATE_MUST asks for it.
func New(t *testing.T, program string) *Screen {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "tmux") {
			t.Fatal("tmux is not installed, and KGATE_MUST asks for it")
		}
		t.Skip("tmux is not installed")
	}
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(dir, "rc")
	script := "PS1='ready> '\nPS2=\nset +o history\nunset PROMPT_COMMAND\nL() { " + program + " \"$@\"; }\n"
	if err := os.WriteFile(rc, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Screen{t, filepath.Join(dir, "tmux"), project}
	s.Run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "-c", project,
		"env", "LC_ALL=C.UTF-8", "bash", "--noprofile", "--rcfile", rc, "-i")
	t.Cleanup(func() {
		exec.Command("tmux", "-S", s.socket, "kill-server").Run()
	})
	s.Wait("the shell", func(text string) bool { return strings.HasSuffix(text, "ready>") })
	return s
}

// Run calls tmux and returns what it says.
func (s *Screen) Run(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", s.socket}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// Text is what the screen shows, without the blanks at its end.
func (s *Screen) Text() string {
	return strings.TrimRight(s.Run("capture-pane", "-p"), "\n ")
}

// Styled is what the screen shows with the colours as escape sequences.
func (s *Screen) Styled() string { return s.Run("capture-pane", "-p", "-e") }

// Type types text as it is.
func (s *Screen) Type(text string) { s.t.Helper(); s.Run("send-keys", "-l", "--", text) }

// Key presses a key by tmux's name for it.
func (s *Screen) Key(name string) { s.t.Helper(); s.Run("send-keys", name) }

// Enter types a line.
func (s *Screen) Enter(line string) {
	s.t.Helper()
	s.Type(line)
	s.Key("Enter")
}

// Wait waits until the screen satisfies ok.
func (s *Screen) Wait(what string, ok func(text string) bool) {
	s.t.Helper()
	until := time.Now().Add(deadline)
	text := ""
	for time.Now().Before(until) {
		if text = s.Text(); ok(text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("waited for %s; the screen shows:\n%s", what, text)
}

// Shows waits until the screen has each text, in this order.
func (s *Screen) Shows(texts ...string) {
	s.t.Helper()
	s.Wait(fmt.Sprintf("%q", texts), func(screen string) bool {
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

// Taken waits until kgate has the terminal: what is typed before is the shell's
// to echo. A shell that edits a line leaves the keys that make signals alone.
func (s *Screen) Taken() {
	s.t.Helper()
	tty := strings.TrimSpace(s.Run("display-message", "-p", "#{pane_tty}"))
	s.Wait("raw modes", func(string) bool {
		out, _ := exec.Command("stty", "-F", tty, "-a").Output()
		return strings.Contains(string(out), "-isig")
	})
}

// Launch runs a command line that begins with kgate, on a clear screen.
func (s *Screen) Launch(line string) {
	s.t.Helper()
	s.Enter("clear; L " + line)
	s.Taken()
}

// Prompt waits for the shell's prompt on the last line.
func (s *Screen) Prompt() {
	s.t.Helper()
	s.Wait("the prompt", func(text string) bool { return strings.HasSuffix(text, "ready>") })
}

// Status checks the exit status of the last command.
func (s *Screen) Status(want int) {
	s.t.Helper()
	s.Prompt()
	s.Enter(`echo "status=$?."`)
	s.Shows(fmt.Sprintf("\nstatus=%d.", want))
	s.Prompt()
}

// Sane checks that the person's terminal has the modes it had.
func (s *Screen) Sane() {
	s.t.Helper()
	s.Prompt()
	file := filepath.Join(s.Dir(), "modes")
	os.Remove(file)
	s.Enter("stty -a >modes.new; mv modes.new modes; clear")
	s.Wait("a clear screen", func(text string) bool { return text == "ready>" })
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

// Dir is the shell's directory.
func (s *Screen) Dir() string { return s.dir }

// Child returns the process that the shell waits for or, when names are given,
// the one that is reached through children with those names.
func (s *Screen) Child(names ...string) string {
	s.t.Helper()
	pid := strings.TrimSpace(s.Run("display-message", "-p", "#{pane_pid}"))
	for _, name := range append([]string{""}, names...) {
		out, err := exec.Command("ps", "-o", "pid=,args=", "--ppid", pid).Output()
		if err != nil {
			s.t.Fatalf("find the children of %s: %v", pid, err)
		}
		found := ""
		for line := range strings.Lines(string(out)) {
			if f := strings.Fields(line); len(f) > 1 && (name == "" || f[1] == name) {
				found = f[0]
			}
		}
		if found == "" {
			s.t.Fatalf("process %s has no child %q:\n%s", pid, name, out)
		}
		pid = found
	}
	return pid
}
