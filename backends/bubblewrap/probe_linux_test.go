package bubblewrap

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// fakeTool puts a shell script in front of PATH under the name of a tool.
func fakeTool(t *testing.T, name, script string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kgate-tool-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func row(findings []backends.Finding, name string) backends.Finding {
	for _, f := range findings {
		if f.Row == name {
			return f
		}
	}
	return backends.Finding{}
}

func TestProbe(t *testing.T) {
	s := newSite(t)
	before := snapshot(t, s.home)
	began := time.Now()
	rows := s.backend.Probe(s.policy)
	t.Logf("%v: %v", time.Since(began), rows)
	for _, name := range []string{"bubblewrap", "namespaces", "markers"} {
		if r := row(rows, name); r.Status != backends.Ready || r.Reason == "" || r.Mend != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if after := snapshot(t, s.home); after != before {
		t.Errorf("the home changed:\n%s", after)
	}
}

// gitmoot#1215: a tool that is there, says a good version, runs what it is given
// and enforces nothing.
func TestProbeOfToolsThatDoNotEnforce(t *testing.T) {
	s := newSite(t)
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	version := "[ \"$1\" = --version ] && { echo bubblewrap 0.11.0; exit 0; }\n"
	for _, c := range []struct{ name, script, row, word string }{
		{"runs without a box", version + `while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "markers", "denied"},
		{"boxes and shows all", version + `while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; exec ` + real + ` --bind / / --unshare-net "$@"`, "markers", "denied"},
		{"is another program", "echo GNU bash 5", "bubblewrap", "not bubblewrap's"},
		{"is old", "[ \"$1\" = --version ] && { echo bubblewrap 0.4.1; exit 0; }; echo 'bwrap: Unknown option --perms' >&2; exit 1", "bubblewrap", "too old"},
		{"cannot make namespaces", version + "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "namespaces", "uid map"},
		{"fails", version + "echo 'bwrap: no such luck' >&2; exit 1", "namespaces", "no such luck"},
		{"does nothing", version + "exit 0", "namespaces", "said nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeTool(t, "bwrap", c.script)
			rows := s.backend.Probe(s.policy)
			if r := row(rows, c.row); r.Status != backends.Blocked || !strings.Contains(r.Reason, c.word) {
				t.Errorf("%+v", rows)
			}
			if r := row(rows, "markers"); r.Status == backends.Ready {
				t.Errorf("%+v", r)
			}
		})
	}
}

// sandbox-runtime#74 without a machine that has AppArmor: the limit on user
// namespaces is set in a namespace of its own.
func TestWhereNamespacesAreRefused(t *testing.T) {
	s := newSite(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh", self, "-test.run=^TestReportRefusal$", "-test.v")
	cmd.Env = append(os.Environ(), "KGATE_TEST_REFUSAL="+s.home)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "BLOCKED namespaces") || !strings.Contains(string(out), "sudo sysctl user.max_user_namespaces") ||
		!strings.Contains(string(out), "run: namespaces: ") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Lstat(s.path("ran")); err == nil {
		t.Error("the command ran")
	}
}

func TestReportRefusal(t *testing.T) {
	home := os.Getenv("KGATE_TEST_REFUSAL")
	if home == "" {
		t.Skip("a part of TestWhereNamespacesAreRefused")
	}
	p := &policy.Policy{Home: home, Project: home + "/src/project", Dir: home + "/src/project", Network: policy.Mode{Value: policy.Off}}
	b := New(ThisHost())
	for _, f := range b.Probe(p) {
		fmt.Println(f.Status, f.Row, f.Reason, f.Mend)
	}
	plan, err := b.Plan(p, backends.Command{Argv: []string{"touch", "ran"}, Dir: p.Dir, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	proc, err := b.Start(plan, backends.Stdio{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = proc.Wait()
	fmt.Println("run:", err)
}

// needFilter is the condition of a test that needs the whole host filter.
func needFilter(t *testing.T, s *site) {
	t.Helper()
	s.policy.Network.Value = policy.Restricted
	s.policy.Hosts = []policy.Host{{Addr: netip.MustParseAddr("203.0.113.10")}}
	for _, f := range s.backend.Probe(s.policy) {
		if f.Status == backends.Blocked {
			if strings.Contains(os.Getenv("KGATE_MUST"), "hostfilter") {
				t.Fatalf("%+v", f)
			}
			t.Skipf("no host filter here: %+v", f)
		}
	}
}

func TestHostList(t *testing.T) {
	s := newSite(t)
	needFilter(t, s)
	out := s.works("cat /etc/resolv.conf; grep -c : /proc/net/dev; grep Cap /proc/self/status; ls -l /proc/self/fd | grep -c ' -> '")
	if !strings.Contains(out, "nameserver 10.0.2.3\n2\n") || strings.Count(out, "0000000000000000") != 5 || !strings.HasSuffix(out, "\n4\n") {
		t.Errorf("in the box: %s", out)
	}
}

// bubblejail#65: slirp4netns that fails to start, or ends before it is ready.
func TestHostListWithoutItsTools(t *testing.T) {
	s := newSite(t)
	needFilter(t, s)
	s.git("init", "-q")
	before := snapshot(t, s.project)
	for _, script := range []string{"exit 3", "echo 'cannot do it' >&2; exit 1", "kill -9 $$", "exec sleep 0.05"} {
		func() {
			old := os.Getenv("PATH")
			defer os.Setenv("PATH", old)
			fakeTool(t, "slirp4netns", script)
			r := s.run("sh", "-c", "echo ran; touch ran")
			if r.err == nil || !strings.Contains(r.err.Error(), "slirp4netns") || r.out != "" || r.errs != "" {
				t.Errorf("%s: %v", script, r)
			}
		}()
		if after := snapshot(t, s.project); after != before {
			t.Errorf("%s: left behind:\n%s", script, after)
		}
	}
}

func TestPaste(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	s.write("it's $HOME", "x")
	s.deny("it's $HOME")
	s.env = append(s.env, "ADDED=a b")
	const look = `pwd; id -u; ls -A / ~ . .git; env | sort | grep -v -e ^_= -e ^OLDPWD=; cut -d' ' -f2-4 /proc/self/mounts; grep -e Cap -e NoNew /proc/self/status; cat it*; ls -l /proc/self/fd | wc -l`
	before := snapshot(t, s.project)
	plan := s.plan("sh", "-c", look+"; exit 7")
	boxed := s.run("sh", "-c", look+"; exit 7")
	if boxed.err != nil || boxed.status != 7 {
		t.Fatal(boxed)
	}
	cmd := exec.Command("sh", "-c", Paste(plan, append(os.Environ(), "SECRET_TOKEN=hunter2")))
	cmd.Env = append(os.Environ(), "SECRET_TOKEN=hunter2")
	cmd.Dir = "/"
	out, err := cmd.Output()
	if cmd.ProcessState.ExitCode() != 7 || string(out) != boxed.out {
		t.Errorf("%v\nby hand:\n%s\nby kgate:\n%s", err, out, boxed.out)
	}
	if strings.Contains(Paste(plan, []string{"SECRET_TOKEN=hunter2"}), "hunter2") {
		t.Error("a value that is taken out is shown")
	}
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}
}
