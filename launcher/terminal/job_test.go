package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStatus(t *testing.T) {
	s := newScreen(t)
	os.WriteFile(s.Dir()+"/script", []byte("echo from a script; exit 6\n"), 0o700)
	for _, tt := range []struct {
		command string
		shows   string
		status  int
	}{
		{"true", "", 0},
		{"sh -c 'exit 7'", "", 7},
		{"sh -c 'kill -TERM $$'", "", 143},
		{"sh -c 'kill -KILL $$'", "", 137},
		{"sh -c 'kill -SEGV $$'", "", 139},
		{"no-such-program", "no such file or directory", 127},
		{"./no-such-program", "no such file or directory", 127},
		{"/etc/passwd", "permission denied", 126},
		{s.Dir() + "/script", "from a script", 6},
	} {
		s.Enter("L " + tt.command + `; echo "status=$?."`)
		s.Shows(tt.shows, fmt.Sprintf("\nstatus=%d.", tt.status))
		s.Sane()
	}
}

func TestStreams(t *testing.T) {
	s := newScreen(t)
	s.Enter(`L sh -c 'tty >/dev/null && test -t 0 && test -t 1 && test -t 2 && echo all three; ls -l /proc/self/fd | grep -c -- "->"'`)
	// Three, and the directory that ls reads.
	s.Shows("all three\n4\nready>")
	s.Enter("clear; L sh -c 'ps -o pid=,pgid=,tpgid= -p $$' | awk '{print ($1==$2 && $2==$3) ? \"its own\" \" group\" : \"other\"}'")
	s.Prompt()
	s.Enter("clear; L sh -c 'ps -o pid=,pgid=,tpgid= -p $$ >/tmp/out.$$; awk \"{print (\\$1==\\$2 && \\$2==\\$3) ? 1 : 0}\" /tmp/out.$$; rm /tmp/out.$$'")
	s.Shows("1\nready>")
}

func TestColours(t *testing.T) {
	s := newScreen(t)
	s.Enter(`L sh -c 'printf "\033[31mred\033[0m plain\n"'`)
	s.Shows("red plain\nready>")
	if got := s.Styled(); !strings.Contains(got, "\x1b[31mred") {
		t.Errorf("no red: %q", got)
	}
}

func TestMasked(t *testing.T) {
	s := newScreen(t)
	s.Enter(`L sh -c 'echo "see ghp_""0123456789abcdefghijABCDEFGHIJ012345."; printf "ask: sk"; read x; echo "got $x"'`)
	s.Shows("see [masked: github-token]\nask: sk")
	s.Enter("yes")
	s.Shows("ask: skyes\ngot yes\nready>")
	// Slowly, in pieces.
	s.Enter(`clear; L sh -c 'for c in g h p _ 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n; do printf $c; sleep 0.01; done; echo .'`)
	s.Wait("a mask", func(text string) bool { return strings.Contains(text, "[masked: github-token]\nready>") })
	if text := s.Text(); strings.Contains(text, "456789") || strings.Contains(text, "ijklmn") {
		t.Errorf("shown:\n%s", text)
	}
}

func TestResize(t *testing.T) {
	s := newScreen(t)
	s.Enter("L stty size")
	s.Shows("24 80")
	s.Launch(`sh -c 'trap "stty size; exit" WINCH; echo waiting; while :; do sleep 0.05; done'`)
	s.Shows("waiting")
	s.Run("resize-window", "-x", "100", "-y", "30")
	s.Shows("30 100")
	s.Status(0)
}

func TestInterrupt(t *testing.T) {
	s := newScreen(t)
	s.Launch(`sh -c 'trap "echo trapped; exit 3" INT; echo waiting; while :; do sleep 0.05; done'`)
	s.Shows("waiting")
	s.Key("C-c")
	s.Shows("^Ctrapped")
	s.Status(3)
	s.Launch(`sh -c 'echo waiting; sleep 100'`)
	s.Shows("waiting")
	s.Key("C-c")
	s.Status(130)
	s.Sane()
	s.Launch(`sh -c 'echo waiting; sleep 100'`)
	s.Shows("waiting")
	s.Key(`C-\`)
	s.Status(131)
	s.Sane()
}

func TestEndOfFile(t *testing.T) {
	s := newScreen(t)
	s.Launch("cat")
	s.Enter("a line")
	s.Shows("a line\na line")
	s.Key("C-d")
	s.Status(0)
	s.Sane()
}

func TestSuspend(t *testing.T) {
	for _, command := range []string{"cat", "sh -c 'cat; echo after'"} {
		t.Run(command, func(t *testing.T) {
			s := newScreen(t)
			s.Launch(command)
			s.Enter("one")
			s.Shows("one\none")
			s.Key("C-z")
			s.Shows("Stopped")
			s.Sane()
			s.Enter("fg")
			s.Taken()
			s.Enter("two")
			s.Shows("two\ntwo")
			s.Key("C-z")
			s.Shows("Stopped")
			s.Sane()
			// In the background it stops for want of the terminal.
			s.Enter("bg")
			s.Wait("a stop", func(string) bool {
				s.Enter("clear; jobs")
				s.Prompt()
				return strings.Contains(s.Text(), "Stopped")
			})
			s.Sane()
			s.Enter("fg")
			s.Taken()
			s.Enter("three")
			s.Shows("three\nthree")
			s.Key("C-d")
			s.Prompt()
			if strings.HasPrefix(command, "sh") {
				s.Shows("after")
			}
			s.Status(0)
			s.Sane()
		})
	}
}

// A command that does not read goes on in the background.
func TestBackground(t *testing.T) {
	s := newScreen(t)
	s.Launch("sh -c 'while ! test -e go; do sleep 0.05; done; echo went on'")
	s.Key("C-z")
	s.Shows("Stopped")
	s.Prompt()
	s.Enter("bg; touch go; wait %1; echo status=$?.")
	s.Shows("went on", "status=0.")
	s.Sane()
	s.Enter("rm go; L sh -c 'while ! test -e go; do sleep 0.05; done; read x; echo got $x' & ")
	s.Shows("[1]")
	s.Enter("touch go")
	s.Wait("a stop", func(string) bool {
		s.Enter("clear; jobs")
		s.Prompt()
		return strings.Contains(s.Text(), "Stopped")
	})
	s.Enter("fg")
	s.Taken()
	s.Enter("a line")
	s.Shows("got a line")
	s.Sane()
}

// An inner shell does its own job control.
func TestInnerShell(t *testing.T) {
	s := newScreen(t)
	s.Launch("env PS1='inner> ' bash --noprofile --norc -i")
	s.Shows("inner>")
	// A shell that edits its line takes what is typed ahead with other modes.
	s.Enter("echo on; cat")
	s.Shows("\non")
	s.Enter("one")
	s.Shows("one\none")
	s.Key("C-z")
	s.Shows("Stopped", "inner>")
	s.Enter("fg")
	s.Shows("fg\ncat")
	s.Enter("two")
	s.Shows("two\ntwo")
	s.Key("C-c")
	s.Enter("exit 4")
	s.Status(4)
	s.Sane()
}

// Whatever ends the command or asks kgate to end, the terminal comes back.
func TestRestored(t *testing.T) {
	for _, tt := range []struct {
		name, kill string
		status     int
	}{
		{"the command is killed", "kill -KILL $(cat pid)", 137},
		{"the stage is killed", "kill -KILL $(ps -o ppid= -p $(cat pid))", -1},
		{"SIGTERM to kgate", "kill -TERM $(ps -o ppid= -p $(ps -o ppid= -p $(cat pid)))", 143},
		{"SIGHUP to kgate", "kill -HUP $(ps -o ppid= -p $(ps -o ppid= -p $(cat pid)))", 129},
		{"SIGINT to kgate", "kill -INT $(ps -o ppid= -p $(ps -o ppid= -p $(cat pid)))", 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScreen(t)
			// In raw modes on the alternate screen without a cursor, as an editor is.
			s.Enter(`L sh -c 'stty raw -echo; printf "\033[?1049h\033[?25lfull screen"; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done'`)
			s.Wait("the full screen", func(text string) bool { return strings.TrimSpace(text) == "full screen" })
			s.Run("run-shell", "-b", "cd "+s.Dir()+"; while ! test -e pid; do sleep 0.01; done; "+tt.kill)
			s.Shows("ready> L sh", "ready>")
			if tt.status >= 0 {
				s.Status(tt.status)
			}
			s.Sane()
			if got := strings.TrimSpace(s.Run("display-message", "-p", "#{cursor_flag} #{alternate_on}")); got != "1 0" {
				t.Errorf("cursor and alternate screen: %q", got)
			}
		})
	}
}

// What shares the terminal with the command keeps it.
func TestPipeline(t *testing.T) {
	s := newScreen(t)
	s.Enter("L seq 500 | less")
	s.Shows("1\n2\n3", ":")
	s.Key("G")
	s.Shows("499\n500\n(END)")
	s.Key("q")
	s.Status(0)
	s.Sane()
	s.Enter("seq 500 | L less")
	s.Shows("1\n2\n3", ":")
	s.Key("G")
	s.Shows("499\n500\n(END)")
	s.Key("q")
	s.Status(0)
	s.Sane()
	s.Launch("cat | sed 's/^/got /'")
	s.Enter("a line")
	s.Key("C-d")
	s.Shows("got a line", "ready>") // the echo goes another way than what sed prints
	s.Sane()
	s.Enter("L sh -c 'echo waiting >&2; sleep 100' | cat")
	s.Shows("\nwaiting")
	s.Key("C-c")
	s.Prompt()
	s.Sane()
}

// A terminal that goes away ends a command that is stopped, too: it does not wait
// for ever for somebody to continue it.
func TestHangUpOfAStoppedCommand(t *testing.T) {
	s := newScreen(t)
	s.Enter("echo $$ >shell")
	s.Enter(`L sh -c 'echo $$ >pid; exec sleep 500'`)
	s.Wait("the command", func(string) bool { _, err := os.Stat(filepath.Join(s.Dir(), "pid")); return err == nil })
	s.Key("C-z")
	s.Shows("Stopped", "ready>")
	number := func(name string) int {
		text, err := os.ReadFile(filepath.Join(s.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	command, shell := number("pid"), number("shell")
	if err := syscall.Kill(shell, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(10 * time.Second); syscall.Kill(command, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			syscall.Kill(command, syscall.SIGKILL)
			t.Fatal("the stopped command is still there")
		}
	}
}
