package terminal

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	s := newScreen(t)
	os.WriteFile(s.socket+".script", []byte("echo from a script; exit 6\n"), 0o700)
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
		{s.socket + ".script", "from a script", 6},
	} {
		s.enter("L " + tt.command + `; echo "status=$?."`)
		s.shows(tt.shows, fmt.Sprintf("\nstatus=%d.", tt.status))
		s.sane()
	}
}

func TestStreams(t *testing.T) {
	s := newScreen(t)
	s.enter(`L sh -c 'tty >/dev/null && test -t 0 && test -t 1 && test -t 2 && echo all three; ls -l /proc/self/fd | grep -c -- "->"'`)
	// Three, and the directory that ls reads.
	s.shows("all three\n4\nready>")
	s.enter("clear; L sh -c 'ps -o pid=,pgid=,tpgid= -p $$' | awk '{print ($1==$2 && $2==$3) ? \"its own\" \" group\" : \"other\"}'")
	s.prompt()
	s.enter("clear; L sh -c 'ps -o pid=,pgid=,tpgid= -p $$ >/tmp/out.$$; awk \"{print (\\$1==\\$2 && \\$2==\\$3) ? 1 : 0}\" /tmp/out.$$; rm /tmp/out.$$'")
	s.shows("1\nready>")
}

func TestColours(t *testing.T) {
	s := newScreen(t)
	s.enter(`L sh -c 'printf "\033[31mred\033[0m plain\n"'`)
	s.shows("red plain\nready>")
	if got := s.styled(); !strings.Contains(got, "\x1b[31mred") {
		t.Errorf("no red: %q", got)
	}
}

func TestMasked(t *testing.T) {
	s := newScreen(t)
	s.enter(`L sh -c 'echo "see ghp_""0123456789abcdefghijABCDEFGHIJ012345."; printf "ask: sk"; read x; echo "got $x"'`)
	s.shows("see [masked: github-token]\nask: sk")
	s.enter("yes")
	s.shows("ask: skyes\ngot yes\nready>")
	// Slowly, in pieces.
	s.enter(`clear; L sh -c 'for c in g h p _ 0 1 2 3 4 5 6 7 8 9 a b c d e f g h i j k l m n; do printf $c; sleep 0.01; done; echo .'`)
	s.wait("a mask", func(text string) bool { return strings.Contains(text, "[masked: github-token]\nready>") })
	if text := s.text(); strings.Contains(text, "456789") || strings.Contains(text, "ijklmn") {
		t.Errorf("shown:\n%s", text)
	}
}

func TestResize(t *testing.T) {
	s := newScreen(t)
	s.enter("L stty size")
	s.shows("24 80")
	s.launch(`sh -c 'trap "stty size; exit" WINCH; echo waiting; while :; do sleep 0.05; done'`)
	s.shows("waiting")
	s.tmux("resize-window", "-x", "100", "-y", "30")
	s.shows("30 100")
	s.status(0)
}

func TestInterrupt(t *testing.T) {
	s := newScreen(t)
	s.launch(`sh -c 'trap "echo trapped; exit 3" INT; echo waiting; while :; do sleep 0.05; done'`)
	s.shows("waiting")
	s.key("C-c")
	s.shows("^Ctrapped")
	s.status(3)
	s.launch(`sh -c 'echo waiting; sleep 100'`)
	s.shows("waiting")
	s.key("C-c")
	s.status(130)
	s.sane()
	s.launch(`sh -c 'echo waiting; sleep 100'`)
	s.shows("waiting")
	s.key(`C-\`)
	s.status(131)
	s.sane()
}

func TestEndOfFile(t *testing.T) {
	s := newScreen(t)
	s.launch("cat")
	s.enter("a line")
	s.shows("a line\na line")
	s.key("C-d")
	s.status(0)
	s.sane()
}

func TestSuspend(t *testing.T) {
	for _, command := range []string{"cat", "sh -c 'cat; echo after'"} {
		t.Run(command, func(t *testing.T) {
			s := newScreen(t)
			s.launch(command)
			s.enter("one")
			s.shows("one\none")
			s.key("C-z")
			s.shows("Stopped")
			s.sane()
			s.enter("fg")
			s.taken()
			s.enter("two")
			s.shows("two\ntwo")
			s.key("C-z")
			s.shows("Stopped")
			s.sane()
			// In the background it stops for want of the terminal.
			s.enter("bg")
			s.wait("a stop", func(string) bool {
				s.enter("clear; jobs")
				s.prompt()
				return strings.Contains(s.text(), "Stopped")
			})
			s.sane()
			s.enter("fg")
			s.taken()
			s.enter("three")
			s.shows("three\nthree")
			s.key("C-d")
			s.prompt()
			if strings.HasPrefix(command, "sh") {
				s.shows("after")
			}
			s.status(0)
			s.sane()
		})
	}
}

// A command that does not read goes on in the background.
func TestBackground(t *testing.T) {
	s := newScreen(t)
	s.launch("sh -c 'while ! test -e go; do sleep 0.05; done; echo went on'")
	s.key("C-z")
	s.shows("Stopped")
	s.prompt()
	s.enter("bg; touch go; wait %1; echo status=$?.")
	s.shows("went on", "status=0.")
	s.sane()
	s.enter("rm go; L sh -c 'while ! test -e go; do sleep 0.05; done; read x; echo got $x' & ")
	s.shows("[1]")
	s.enter("touch go")
	s.wait("a stop", func(string) bool {
		s.enter("clear; jobs")
		s.prompt()
		return strings.Contains(s.text(), "Stopped")
	})
	s.enter("fg")
	s.taken()
	s.enter("a line")
	s.shows("got a line")
	s.sane()
}

// An inner shell does its own job control.
func TestInnerShell(t *testing.T) {
	s := newScreen(t)
	s.launch("env PS1='inner> ' bash --noprofile --norc -i")
	s.shows("inner>")
	s.enter("cat")
	s.enter("one")
	s.shows("one\none")
	s.key("C-z")
	s.shows("Stopped", "inner>")
	s.enter("fg")
	s.enter("two")
	s.shows("two\ntwo")
	s.key("C-c")
	s.enter("exit 4")
	s.status(4)
	s.sane()
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
			s.enter(`L sh -c 'stty raw -echo; printf "\033[?1049h\033[?25lfull screen"; echo $$ >pid.new; mv pid.new pid; while :; do sleep 0.05; done'`)
			s.wait("the full screen", func(text string) bool { return strings.TrimSpace(text) == "full screen" })
			s.tmux("run-shell", "-b", "cd "+s.dir()+"; while ! test -e pid; do sleep 0.01; done; "+tt.kill)
			s.shows("ready> L sh", "ready>")
			if tt.status >= 0 {
				s.status(tt.status)
			}
			s.sane()
			if got := strings.TrimSpace(s.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}")); got != "1 0" {
				t.Errorf("cursor and alternate screen: %q", got)
			}
		})
	}
}

// What shares the terminal with the command keeps it.
func TestPipeline(t *testing.T) {
	s := newScreen(t)
	s.enter("L seq 500 | less")
	s.shows("1\n2\n3", ":")
	s.key("G")
	s.shows("499\n500\n(END)")
	s.key("q")
	s.status(0)
	s.sane()
	s.enter("seq 500 | L less")
	s.shows("1\n2\n3", ":")
	s.key("G")
	s.shows("499\n500\n(END)")
	s.key("q")
	s.status(0)
	s.sane()
	s.launch("cat | sed 's/^/got /'")
	s.enter("a line")
	s.key("C-d")
	s.shows("got a line\nready>")
	s.sane()
	s.enter("L sh -c 'echo waiting >&2; sleep 100' | cat")
	s.shows("\nwaiting")
	s.key("C-c")
	s.prompt()
	s.sane()
}
