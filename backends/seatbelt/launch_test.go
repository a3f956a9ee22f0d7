//go:build unix

package seatbelt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case StageName:
			os.Exit(Stage(os.Args[2:]))
		case "abandon":
			abandon(os.Args[2])
		}
	}
	os.Exit(m.Run())
}

// here are facts of this machine, whatever it is, with this program as kgate.
func here(t testing.TB) Facts {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := Elsewhere()
	f.Follow = func(name string) Real { return follow(name, nil) }
	f.Kgate, f.UserTemp, f.Temp = self, tmp, filepath.Join(tmp, "kgate-1")
	return f
}

// tool writes a program that stands for sandbox-exec: a shell script that gets
// the profile's path as $2.
func tool(t testing.TB, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// passes does what sandbox-exec does but for enforcing anything.
const passes = `test "$1" = -f && test "$3" = -- && test -r "$2" || exit 99
shift 3
exec "$@"
`

func planFor(t testing.TB, f Facts, tool string, argv ...string) *backends.Plan {
	t.Helper()
	p := base(project(t.TempDir()))
	pl, err := New(f).Plan(p, backends.Command{Argv: argv, Dir: p.Dir, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	pl.Parts[0].Words[0] = tool
	return pl
}

func TestArgv(t *testing.T) {
	pl := plan(t, mac(nil), base())
	want := []string{"/usr/bin/sandbox-exec", "-f", testTemp + "/profile.sb", "--", "/usr/local/bin/kgate", "seatbelt-stage", "plain", "true"}
	if got := pl.Argv(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("argv %q, want %q", got, want)
	}
	if f := pl.Files[0]; f.Mode != 0o600 || f.Name != testTemp+"/profile.sb" || string(f.Content) != profileOf(pl).Text() {
		t.Errorf("profile %v %o", f.Name, f.Mode)
	}
	if env := pl.Command.Env; env[len(env)-1] != "TMPDIR="+testTemp+"/tmp" {
		t.Errorf("environment %q", env)
	}
	b := New(mac(nil))
	b.Terminal = []string{"terminal-stage", "3"}
	pl, err := b.Plan(base(), backends.Command{Argv: []string{"vi", "x"}, Terminal: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(pl.Argv()[4:], " "); got != "/usr/local/bin/kgate seatbelt-stage control /usr/local/bin/kgate terminal-stage 3 vi x" {
		t.Errorf("with a terminal: %s", got)
	}
}

func TestOutcome(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	plainFile := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plainFile, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	noFirstLine := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(noFirstLine, []byte("exit 4\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		tool   string
		argv   []string
		status int    // of a command that ran
		err    string // part of the error, "" when the command ran
		exit   int    // the status that kgate ends with because of it
	}{
		{"success", passes, []string{"true"}, 0, "", 0},
		{"the command's own status", passes, []string{"sh", "-c", "exit 7"}, 7, "", 0},
		{"the command's own 65", passes, []string{"sh", "-c", "echo sandbox-exec: sandbox_apply >&2; exit 65"}, 65, "", 0},
		{"the command's own 71", passes, []string{"sh", "-c", "exit 71"}, 71, "", 0},
		{"the command's own 125", passes, []string{"sh", "-c", "exit 125"}, 125, "", 0},
		{"a signal", passes, []string{"sh", "-c", "kill -SEGV $$"}, 139, "", 0},
		{"a script without a first line", passes, []string{noFirstLine}, 4, "", 0},
		// opencode-swarm#2590
		{"the profile does not compile", "echo 'sandbox-exec: unbound variable: x' >&2; exit 65\n", []string{"true"}, 0, "does not compile: unbound variable: x", 125},
		// sandbox-runtime#67
		{"already in a sandbox", "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71\n", []string{"true"}, 0, "already inside a sandbox", 125},
		{"the stage cannot be executed", "echo \"sandbox-exec: execvp() of 'kgate' failed: Operation not permitted\" >&2; exit 71\n", []string{"true"}, 0, "cannot execute kgate's own file", 125},
		{"refused in other words", "echo 'sandbox-exec: no' >&2; exit 71\n", []string{"true"}, 0, "cannot be applied: no", 125},
		{"it dies", "kill -ABRT $$\n", []string{"true"}, 0, "could not make the box: it ended with aborted", 0},
		{"it ends well without a box", "exit 0\n", []string{"true"}, 0, "could not make the box: it ended with status 0", 0},
		{"not found", passes, []string{"no-such-program"}, 0, "not found in the box", 127},
		{"not found by path", passes, []string{missing}, 0, "not found in the box", 127},
		{"not executable", passes, []string{plainFile}, 0, "cannot be executed", 126},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := here(t)
			pl := planFor(t, f, tool(t, tt.tool), tt.argv...)
			box, err := launch(pl, backends.Stdio{})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := box.Wait()
			switch {
			case tt.err == "" && (err != nil || exit.Status() != tt.status):
				t.Errorf("status %d, %v, want %d", exit.Status(), err, tt.status)
			case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("%v, want %q", err, tt.err)
			}
			if tt.err != "" {
				if got := statusOf(err); got != tt.exit {
					t.Errorf("kgate would end with %d, want %d", got, tt.exit)
				}
			}
			if _, err := os.Lstat(f.Temp); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the launch's directory is left: %v", err)
			}
		})
	}
}

// statusOf is what cmd/kgate makes of an error; 0 where it is the default.
func statusOf(err error) int {
	var blocked *backends.BlockedError
	var missing *backends.NotFoundError
	var own interface{ ExitStatus() int }
	switch {
	case errors.As(err, &missing):
		return 127
	case errors.As(err, &blocked):
		return 125
	case errors.As(err, &own):
		return own.ExitStatus()
	}
	return 0
}

// The streams are the command's alone: what sandbox-exec says is not among them,
// and the command has no descriptors but its own.
func TestStreams(t *testing.T) {
	f := here(t)
	pl := planFor(t, f, tool(t, "echo noise >&2\n"+passes), "sh", "-c", `echo out; echo err >&2; cat; for d in 3 4 5 6 7; do eval "true >&$d" 2>/dev/null && echo leak $d; done; echo tmp $TMPDIR; echo x >$TMPDIR/f`)
	in, say, _ := os.Pipe()
	say.WriteString("in\n")
	say.Close()
	outR, outW, _ := os.Pipe()
	errR, errW, _ := os.Pipe()
	box, err := launch(pl, backends.Stdio{In: in, Out: outW, Err: errW})
	outW.Close()
	errW.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := readAll(outR)
	errs, _ := readAll(errR)
	if exit, err := box.Wait(); err != nil || exit.Status() != 0 {
		t.Errorf("%v %v", exit, err)
	}
	if want := "out\nin\ntmp " + f.Temp + "/tmp\n"; out != want {
		t.Errorf("stdout %q, want %q", out, want)
	}
	if errs != "err\n" {
		t.Errorf("stderr %q", errs)
	}
}

func readAll(f *os.File) (string, error) {
	defer f.Close()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := f.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String(), err
		}
	}
}

func TestFilesOfALaunch(t *testing.T) {
	f := here(t)
	pl := planFor(t, f, tool(t, `stat -c %a "$2" "$(dirname "$2")" "$(dirname "$2")/tmp" 2>/dev/null || stat -f %Lp "$2" "$(dirname "$2")" "$(dirname "$2")/tmp"
`+passes), "sh", "-c", "mkdir -p $TMPDIR/a/b; chmod 0 $TMPDIR/a")
	r, w, _ := os.Pipe()
	box, err := launch(pl, backends.Stdio{Out: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	out, _ := readAll(r)
	if _, err := box.Wait(); err != nil {
		t.Error(err)
	}
	if out != "600\n700\n700\n" {
		t.Errorf("modes %q", out)
	}
	if exists(f.Temp) {
		t.Error("the launch's directory is left")
	}
	// A directory that is there already is another's.
	if err := os.Mkdir(f.Temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := launch(pl, backends.Stdio{}); err == nil || !exists(f.Temp) {
		t.Errorf("a launch in another's directory: %v", err)
	}
}

func TestSignals(t *testing.T) {
	f := here(t)
	pl := planFor(t, f, tool(t, passes), "sh", "-c", "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done")
	r, w, _ := os.Pipe()
	box, err := launch(pl, backends.Stdio{Out: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	r.Read(buf)
	if err := box.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if exit, err := box.Wait(); err != nil || exit.Status() != 9 {
		t.Errorf("its own trap: %v, %v", exit, err)
	}
	if err := box.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("after the end: %v", err)
	}
	r.Close()

	// Before there is a command a signal ends the launch.
	f = here(t)
	pl = planFor(t, f, tool(t, "exec sleep 20\n"), "true")
	if box, err = launch(pl, backends.Stdio{}); err != nil {
		t.Fatal(err)
	}
	box.Signal(syscall.SIGTERM)
	if exit, err := box.Wait(); err != nil || exit.Status() != 143 {
		t.Errorf("before the command: %v, %v", exit, err)
	}

	f = here(t)
	pl = planFor(t, f, tool(t, passes), "sh", "-c", "sleep 20 & sleep 20")
	if box, err = launch(pl, backends.Stdio{}); err != nil {
		t.Fatal(err)
	}
	box.Kill()
	if exit, err := box.Wait(); err != nil || exit.Status() != 137 {
		t.Errorf("kill: %v, %v", exit, err)
	}
}

// When kgate is killed the box ends and nothing is left behind.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "abandon", dir)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var temp string
	if _, err := fmt.Fscan(out, &pid, &temp); err != nil {
		t.Fatal(err)
	}
	if !exists(temp) || !alive(pid) {
		t.Fatalf("the box did not stand: %d %s", pid, temp)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for end := time.Now().Add(30 * time.Second); exists(temp) || alive(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			shown, _ := exec.Command("ps", "-o", "pid,ppid,pgid,sess,stat,args", "-p", fmt.Sprint(pid)).Output()
			t.Fatalf("left behind: directory %v, process %s", exists(temp), shown)
		}
	}
}

// alive reports whether a process is there and has not ended: an orphan that
// nobody waits for stays as a zombie.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// abandon is another process that starts a box and waits to be killed.
func abandon(dir string) {
	self, _ := os.Executable()
	f := Elsewhere()
	f.Follow = func(name string) Real { return follow(name, nil) }
	f.Kgate, f.UserTemp, f.Temp = self, dir, filepath.Join(dir, "kgate-1")
	script := filepath.Join(dir, "tool")
	os.WriteFile(script, []byte("#!/bin/sh\n"+passes), 0o755)
	pl, err := New(f).Plan(base(project(dir)), backends.Command{Argv: []string{"sh", "-c", "echo up >$TMPDIR/up; sleep 60"}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}})
	if err == nil {
		pl.Parts[0].Words[0] = script
		var b *box
		if b, err = launch(pl, backends.Stdio{}); err == nil {
			for !exists(filepath.Join(f.Temp, "tmp/up")) {
				time.Sleep(5 * time.Millisecond)
			}
			fmt.Println(b.process.Pid, f.Temp)
			time.Sleep(time.Minute)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// gitmoot#1215: that the tool exists says nothing.
func TestProbe(t *testing.T) {
	p := base(func(p *policy.Policy) { p.Project, p.Dir = "/", "/" })
	for _, tt := range []struct{ name, tool, status, reason string }{
		{"it does not enforce", passes, "BLOCKED", "does not enforce"},
		{"it does not run", "exit 71\n", "BLOCKED", "cannot be applied"},
		{"already in a sandbox", "echo 'sandbox-exec: sandbox_apply: Operation not permitted' >&2; exit 71\n", "BLOCKED", "already inside a sandbox"},
		{"it enforces too much", "exec /bin/true\n", "BLOCKED", "could not make the box"},
		{"it hides and denies", `shift 3
case "$*" in *hidden*) rm -r hidden ../home ;; esac
exec "$@"
`, "READY", "marker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := New(here(t)).probe(p, tool(t, tt.tool))
			if len(got) == 0 || string(got[0].Status) != tt.status || !strings.Contains(got[0].Reason, tt.reason) {
				t.Errorf("%+v, want %s %q", got, tt.status, tt.reason)
			}
		})
	}
}
