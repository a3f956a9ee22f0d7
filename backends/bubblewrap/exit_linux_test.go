package bubblewrap

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
)

// The command's own status and kgate's are told apart by bwrap's status stream
// (netblue30/firejail#4474 for the signals).
func TestExit(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		script string
		want   int
	}{
		{"true", 0}, {"exit 1", 1}, {"exit 7", 7}, {"exit 125", 125}, {"exit 255", 255},
		{"kill -SEGV $$", 139}, {"kill -TERM $$", 143}, {"kill -KILL $$", 137},
	} {
		if r := s.sh(c.script); r.status != c.want || r.errs != "" {
			t.Errorf("%s: want %d: %v", c.script, c.want, r)
		}
	}
}

func TestCommandThatCannotRun(t *testing.T) {
	s := newSite(t)
	s.write("plain", "no program\n")
	s.write("script", "#!/no/such/interpreter\n")
	os.Chmod(s.path("script"), 0o755)
	s.write("~/tool", "#!/bin/sh\n")
	os.Chmod(s.path("~/tool"), 0o755)
	for _, c := range []struct {
		name, word string
		missing    bool
	}{
		{"no-such-program", "not found", true},
		{"", "not found", true},
		{"echo one\necho two: three\n", "not found", true},
		{"\xff: x\x1b", "not found", true},
		{"./nothing", "not found", true},
		{"./plain", "permission denied", false},
		{"./script", "/no/such/interpreter", true},
		{s.path("~/tool"), "not in the box", true},
		{s.project, "permission denied", false},
	} {
		r := s.run(c.name)
		var missing *backends.NotFoundError
		var status interface{ ExitStatus() int }
		if errors.As(r.err, &missing) != c.missing || errors.As(r.err, &status) == c.missing || r.err == nil || !strings.Contains(r.err.Error(), c.word) {
			t.Errorf("%s: %v", c.name, r)
		}
		if r.out != "" || r.errs != "" {
			t.Errorf("%s: bwrap's words are shown: %v", c.name, r)
		}
	}
}

// What the command says is its own, however it begins, and comes at once.
func TestCommandSpeaksLikeBwrap(t *testing.T) {
	s := newSite(t)
	r := s.sh("echo 'bwrap: execvp x: No such file or directory' >&2; exit 1")
	if r.status != 1 || r.errs != "bwrap: execvp x: No such file or directory\n" {
		t.Error(r)
	}
	plan := s.plan("sh", "-c", "printf 'bwrap: early' >&2; sleep 60")
	r0, w, _ := os.Pipe()
	defer r0.Close()
	p, err := s.backend.Start(plan, backends.Stdio{Err: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	r0.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, 100)
	n, err := r0.Read(buf)
	if string(buf[:n]) != "bwrap: early" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	p.Kill()
	p.Wait()
}

// Streams that are one file keep their order.
func TestOneFileForBothStreams(t *testing.T) {
	s := newSite(t)
	c, w := drain(t)
	p, err := s.backend.Start(s.plan("sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo out$i; echo err$i >&2; done"), backends.Stdio{Out: w, Err: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, n := range "12345678" {
		want += "out" + string(n) + "\nerr" + string(n) + "\n"
	}
	if got := <-c; got != want {
		t.Errorf("got %q", got)
	}
}

func TestStandardErrorToAFile(t *testing.T) {
	s := newSite(t)
	f, err := os.OpenFile(s.path("~/log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.backend.Start(s.plan("sh", "-c", "seq 20000 >&2"), backends.Stdio{Err: f})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(s.path("~/log"))
	if len(data) != 108894 || !strings.HasSuffix(string(data), "\n20000\n") {
		t.Errorf("%d bytes", len(data))
	}
}

// The command gets three descriptors, whatever kgate and bwrap have open.
func TestDescriptors(t *testing.T) {
	s := newSite(t)
	// What kgate itself was started with reaches nobody either.
	fd, err := syscall.Dup(2)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	r := s.run("/bin/ls", "-l", "/proc/self/fd")
	for line := range strings.Lines(r.out) {
		if _, target, ok := strings.Cut(line, " -> "); ok && strings.HasSuffix(target, "/fd\n") {
			continue // the directory that ls reads
		} else if name := strings.Fields(line); ok && strings.Trim(name[len(name)-3], "012") != "" {
			t.Errorf("open in the box: %s", line)
		}
	}
	if strings.Count(r.out, " -> ") != 4 {
		t.Errorf("want three descriptors and that of ls: %v", r)
	}
}

// bubblewrap#142: what is typed into the terminal that kgate was started from
// would be run outside. Without a terminal of its own the command has none at
// all.
func TestNoControllingTerminal(t *testing.T) {
	s := newSite(t)
	s.fails(": </dev/tty")
	s.fails("python3 -c 'import os; os.open(\"/dev/tty\", os.O_RDWR)'")
	if out := s.works("cut -d' ' -f7 /proc/self/stat"); out != "0\n" {
		t.Errorf("controlling terminal %s", out)
	}
}

func TestSignals(t *testing.T) {
	s := newSite(t)
	trap := `trap 'echo got TERM; exit 43' TERM; trap 'echo got INT; exit 42' INT; trap 'echo got USR1' USR1
touch ready; i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done; exit 9`
	for _, c := range []struct {
		sig    syscall.Signal
		status int
		out    string
	}{{syscall.SIGTERM, 43, "got TERM\n"}, {syscall.SIGINT, 42, "got INT\n"}, {syscall.SIGHUP, 129, ""}, {syscall.SIGKILL, 137, ""}} {
		os.Remove(s.path("ready"))
		l, err := s.start(s.plan("sh", "-c", trap), nil)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the command is there", func() bool { _, err := os.Lstat(s.path("ready")); return err == nil })
		if err := l.proc.Signal(c.sig); err != nil {
			t.Error(err)
		}
		if r := l.wait(); r.status != c.status || r.out != c.out {
			t.Errorf("%v: %v", c.sig, r)
		}
		if err := l.proc.Signal(c.sig); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("%v after the end: %v", c.sig, err)
		}
	}
}

// A signal at any moment of a launch ends it, the same as it would have ended
// the command, and leaves nothing.
func TestSignalAtAnyMoment(t *testing.T) {
	s := newSite(t)
	before := snapshot(t, s.project)
	for d := time.Duration(0); d < 24*time.Millisecond; d += 400 * time.Microsecond {
		l, err := s.start(s.plan("sleep", "60"), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(d)
		l.proc.Signal(syscall.SIGTERM)
		if r := l.wait(); r.status != 143 || r.errs != "" {
			t.Errorf("after %v: %v", d, r)
		}
		if after := snapshot(t, s.project); after != before {
			t.Errorf("after %v: left behind:\n%s", d, after)
		}
	}
}

func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}

// A signal ends the launch also when bwrap is stopped and cannot tell of the
// command's end.
func TestSignalWhileBwrapIsStopped(t *testing.T) {
	for _, who := range []string{"bwrap", "its first process in the box"} {
		s := newSite(t)
		l, err := s.start(s.plan("sleep", "60"), nil)
		if err != nil {
			t.Fatal(err)
		}
		p := l.proc.(*box)
		eventually(t, "the command runs", p.running)
		pid := p.bwrap
		if who != "bwrap" {
			pid = p.init
		}
		syscall.Kill(pid, syscall.SIGSTOP)
		l.proc.Signal(syscall.SIGTERM)
		ended := make(chan result, 1)
		go func() { ended <- l.wait() }()
		select {
		case r := <-ended:
			if r.status != 143 || r.err != nil {
				t.Errorf("%s is stopped: %v", who, r)
			}
		case <-time.After(4 * burial):
			t.Errorf("%s is stopped, and the launch does not end", who)
			l.proc.Kill()
			<-ended
		}
	}
}
