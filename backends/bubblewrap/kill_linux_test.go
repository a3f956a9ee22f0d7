package bubblewrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// launchAndDie is a process that launches, to be killed in the middle of it. It
// says "started" when Start has returned.
func launchAndDie(orders string) int {
	var p policy.Policy
	if err := json.Unmarshal([]byte(orders), &p); err != nil {
		fmt.Println(err)
		return 1
	}
	b := New(ThisHost())
	plan, err := b.Plan(&p, backends.Command{
		Argv: []string{"sh", "-c", "setsid sleep 61 & touch ran; sleep 61"}, Dir: p.Dir,
		Env: []string{"PATH=/usr/bin:/bin", "KGATE_TEST_MARK=" + p.Home},
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	proc, err := b.Start(plan, backends.Stdio{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("started")
	exit, err := proc.Wait()
	fmt.Println(exit, err)
	return 0
}

// about returns the processes that have to do with a directory: in their
// arguments or in their environment.
func about(dir string) []string {
	var found []string
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		args, _ := os.ReadFile(proc + "/cmdline")
		env, _ := os.ReadFile(proc + "/environ")
		if filepath.Base(proc) != fmt.Sprint(os.Getpid()) && (bytes.Contains(args, []byte(dir)) || bytes.Contains(env, []byte(dir))) {
			found = append(found, fmt.Sprintf("%s: %q", filepath.Base(proc), args))
		}
	}
	return found
}

// Killed at any moment, a launch leaves no process and no file.
func TestKilledAtAnyMoment(t *testing.T) {
	moments := 40
	if testing.Short() {
		moments = 8
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range moments {
		s := newSite(t)
		s.git("init", "-q")
		before := snapshot(t, s.project)
		orders, _ := json.Marshal(s.policy)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "KGATE_TEST_LAUNCH="+string(orders))
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		if i == moments-1 {
			eventually(t, "the command ran", func() bool { _, err := os.Lstat(s.path("ran")); return err == nil })
			if len(about(s.home)) < 4 {
				t.Errorf("processes of a launch are not seen: %q", about(s.home))
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		// A process has no arguments for a moment while it becomes another program,
		// so that none is seen does not say yet that none is there.
		eventually(t, fmt.Sprintf("killed after %d ms, everything is gone", i), func() bool {
			os.Remove(s.path("ran"))
			return len(about(s.home)) == 0 && snapshot(t, s.project) == before
		})
		// A record that says that nothing was made may stay until the next launch.
		eventually(t, fmt.Sprintf("killed after %d ms, the records are gone", i), func() bool {
			sweepOthers(s.home + "/.kgate/run")
			left, _ := os.ReadDir(s.home + "/.kgate/run")
			return len(left) == 0
		})
	}
}

// What was left by a launch whose janitor was killed too is removed by the next
// launch, wherever that is.
func TestLeftBehindByAll(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	before := snapshot(t, s.project)
	h, err := hold(s.plan("true").Extra.(*own), nil)
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(h.janitor, syscall.SIGKILL)
	wait(h.janitor)
	for _, l := range h.ledgers {
		l.file.Close()
	}
	if snapshot(t, s.project) == before {
		t.Fatal("nothing was made")
	}
	s.project = s.mkdir("~/src/another")
	s.policy.Project, s.policy.Dir = s.project, s.project
	s.works("true")
	if after := snapshot(t, s.path("~/src/project")); after != before {
		t.Errorf("left behind:\n%s", after)
	}
}

// descendants returns the processes below one, each with the time it started at,
// so that a number that is used again is not taken for the same.
func descendants(pid int) []string {
	children := map[string][]string{}
	started := map[string]string{}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		data, _ := os.ReadFile(name)
		i := bytes.LastIndexByte(data, ')')
		if i < 0 {
			continue
		}
		f := strings.Fields(string(data[i+1:]))
		id := filepath.Base(filepath.Dir(name))
		children[f[1]] = append(children[f[1]], id)
		started[id] = f[19]
	}
	var out []string
	for queue := []string{fmt.Sprint(pid)}; len(queue) > 0; queue = queue[1:] {
		for _, c := range children[queue[0]] {
			out = append(out, c+" "+started[c])
			queue = append(queue, c)
		}
	}
	return out
}

func alive(processes []string) []string {
	var out []string
	for _, p := range processes {
		id, start, _ := strings.Cut(p, " ")
		data, err := os.ReadFile("/proc/" + id + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		if f[19] == start && f[0] != "Z" && f[0] != "X" {
			args, _ := os.ReadFile("/proc/" + id + "/cmdline")
			out = append(out, fmt.Sprintf("%s: %q", id, args))
		}
	}
	return out
}

// The same with a host list, which has three more helpers and holds the command
// back: killed before it is released, the command has never run.
func TestKilledAtAnyMomentWithHosts(t *testing.T) {
	moments := 30
	if testing.Short() {
		moments = 5
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for i := range moments {
		s := newSite(t)
		if i == 0 {
			needFilter(t, s)
		}
		s.policy.Network.Value = policy.Restricted
		s.policy.Hosts = []policy.Host{{Addr: netip.MustParseAddr("203.0.113.10")}}
		orders, _ := json.Marshal(s.policy)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "KGATE_TEST_LAUNCH="+string(orders))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if i < moments-1 {
			time.Sleep(time.Duration(i*8) * time.Millisecond)
		} else {
			eventually(t, "the command ran", func() bool { _, err := os.Lstat(s.path("ran")); return err == nil })
		}
		below := descendants(cmd.Process.Pid)
		_, err := os.Lstat(s.path("ran"))
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		var left []string
		for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			if left = append(alive(below), about(s.home)...); len(left) == 0 {
				break
			}
		}
		if len(left) > 0 {
			t.Fatalf("killed after %d ms, still there: %q", i*8, left)
		}
		if err == nil {
			ran++
		}
		os.Remove(s.path("ran"))
		if entries, _ := os.ReadDir(s.project); len(entries) != 0 {
			t.Errorf("killed after %d ms, left behind: %v", i*8, entries)
		}
	}
	if ran == 0 || ran == moments {
		t.Logf("the command ran in %d of %d", ran, moments)
	}
}

// Launches in one project share what holds absent names, and the last one to
// end takes it away, even when the first one is killed.
func TestLaunchesShare(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	before := snapshot(t, s.project)
	first, err := s.start(s.plan("sleep", "60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.path(".envrc")); err != nil {
		t.Fatal(err)
	}
	script := "mkdir .envrc/x || echo x >.envrc || echo y >.git/commondir || rm .git/commondir || mv .git/commondir z || ! rm -f z"
	second, err := s.start(s.plan("sh", "-c", script+"; touch ready; while [ ! -e go ]; do sleep 0.02; done; "+script), nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second command runs", func() bool { _, err := os.Lstat(s.path("ready")); return err == nil })
	first.proc.Kill()
	if r := first.wait(); r.status != 137 {
		t.Error(r)
	}
	if _, err := os.Lstat(s.path(".envrc")); err != nil {
		t.Error("gone while the second launch needs it")
	}
	s.write("go", "")
	if r := second.wait(); r.status == 0 || r.err != nil {
		t.Errorf("a held name could be made: %v", r)
	}
	os.Remove(s.path("go"))
	os.Remove(s.path("ready"))
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}
}

func TestManyLaunchesAtOnce(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	before := snapshot(t, s.project)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for range 5 {
				l, err := s.start(s.plan("sh", "-c", "! mkdir .vscode/x && ! touch .envrc 2>&1 | grep -q . || test ! -w .envrc"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if r := l.wait(); r.status != 0 || r.err != nil {
					t.Error(r)
				}
			}
		})
	}
	all.Wait()
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}
	if left, _ := os.ReadDir(s.home + "/.kgate/run"); len(left) != 0 {
		t.Errorf("left records: %v", left)
	}
}

// What somebody puts into a held name while a launch is there is his.
func TestHeldNameThatIsUsed(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	l, err := s.start(s.plan("sleep", "60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.write(".claude/settings.json", "{}")
	os.Remove(s.path(".git/commondir"))
	s.write(".git/commondir", "../elsewhere\n")
	l.proc.Kill()
	l.wait()
	for name, want := range map[string]string{".claude/settings.json": "{}", ".git/commondir": "../elsewhere\n"} {
		if data, err := os.ReadFile(s.path(name)); string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := os.Lstat(s.path(".vscode")); err == nil {
		t.Error(".vscode is left behind")
	}
}

// A directory of the person's own that is empty stays, and odd names are no
// trouble to the janitor.
func TestOddNames(t *testing.T) {
	s := newSite(t)
	s.project = s.project + "/a b\n'\"$(x)\xff -rf"
	s.mkdir(".vscode")
	s.policy.Project, s.policy.Dir = s.project, s.project
	before := snapshot(t, s.project)
	if out := s.works(`touch made && rm made && pwd`); !strings.HasPrefix(out, s.project) {
		t.Errorf("works in %q", out)
	}
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}
	h, err := hold(s.plan("true").Extra.(*own), nil)
	if err != nil {
		t.Fatal(err)
	}
	h.leash.Close()
	h.box.Close()
	wait(h.janitor)
	for _, l := range h.ledgers {
		l.file.Close()
	}
	if after := snapshot(t, s.project); after != before {
		t.Errorf("the janitor left behind:\n%s", after)
	}
}

// bwrap itself killed at any moment: the box ends with it, also while bwrap's
// first process in the box has not asked for that yet, and the launch says why.
func TestBwrapKilledAtAnyMoment(t *testing.T) {
	moments := 40
	if testing.Short() {
		moments = 12
	}
	for i := range moments {
		s := newSite(t)
		s.git("init", "-q")
		before := snapshot(t, s.project)
		l, err := s.start(s.plan("sleep", "60"), nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 250 * time.Microsecond)
		syscall.Kill(l.proc.(*box).bwrap, syscall.SIGKILL)
		r := l.wait()
		var ended *EndedError
		if !errors.As(r.err, &ended) || ended.ExitStatus() != 137 {
			t.Errorf("after %d quarters of a millisecond: %v, want the end of bwrap", i, r)
		}
		if pid := l.proc.(*box).init; pid != 0 && len(alive([]string{started(pid)})) > 0 {
			t.Errorf("after %d quarters of a millisecond: Wait has returned, and the box's first process is there", i)
		}
		if after := snapshot(t, s.project); after != before {
			t.Errorf("left behind:\n%s", after)
		}
	}
}

// started names a process as descendants does; "" when it is gone.
func started(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s", pid, strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))[19])
}
