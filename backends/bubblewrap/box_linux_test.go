package bubblewrap

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// ordinary is the user whom root's test run becomes as well: one that no host
// has, so that nothing is his but what the tests make.
const ordinary = 54322

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hostfilter.GateName {
		os.Exit(hostfilter.Gate())
	}
	if run := os.Getenv("KGATE_TEST_LAUNCH"); run != "" {
		os.Exit(launchAndDie(run))
	}
	os.Exit(m.Run())
}

// TestAsUser runs everything again as an ordinary user. A run by an ordinary
// user has done that already.
func TestAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the tests ran as an ordinary user")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "kgate-user-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "bubblewrap.test")
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(binary, data, 0o755)
	}
	home := filepath.Join(dir, "home")
	for _, err := range []error{err, os.Chmod(dir, 0o755), os.Mkdir(home, 0o700), os.Chown(home, ordinary, ordinary)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-test.v=true"}
	for _, a := range os.Args[1:] {
		if strings.HasPrefix(a, "-test.run=") || strings.HasPrefix(a, "-test.short") {
			args = append(args, a)
		}
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || testing.Verbose() {
		t.Logf("as uid %d:\n%s", ordinary, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "--- PASS: Test") {
		t.Fatalf("no test ran as uid %d", ordinary)
	}
}

// site is a home with a project in it.
type site struct {
	t       testing.TB
	home    string
	project string
	policy  *policy.Policy
	env     []string
	backend *Backend
}

func newSite(t testing.TB) *site {
	t.Helper()
	needBox(t)
	// Not t.TempDir: its name holds the test's, which may be odd on purpose.
	top, err := os.MkdirTemp("", "kgate-box-")
	if err != nil {
		t.Fatal(err)
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		exec.Command("chmod", "-R", "u+rwX", top).Run()
		os.RemoveAll(top)
	})
	s := &site{t: t, home: top + "/home", project: top + "/home/src/project", backend: New(ThisHost())}
	if err := os.MkdirAll(s.project, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(s.home+"/.kgate/run", 0o700); err != nil {
		t.Fatal(err)
	}
	s.policy = &policy.Policy{
		Home: s.home, Homes: []string{s.home}, Project: s.project, Dir: s.project,
		Network: policy.Mode{Value: policy.Off},
	}
	s.env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.home, "LC_ALL=C"}
	return s
}

// needBox is the condition of a test that needs the kernel: that a box can be
// made is found out by making one.
func needBox(t testing.TB) {
	t.Helper()
	out, err := exec.Command("bwrap", "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "true").CombinedOutput()
	if err == nil {
		return
	}
	if strings.Contains(os.Getenv("KGATE_MUST"), "userns") {
		t.Fatalf("bwrap cannot make a box here: %v: %s", err, out)
	}
	t.Skipf("bwrap cannot make a box here: %v: %s", err, out)
}

// write makes a file with all its directories; names are in the project unless
// they are absolute or start with ~.
func (s *site) write(name, content string) string {
	s.t.Helper()
	path := s.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *site) path(name string) string {
	if rest, ok := strings.CutPrefix(name, "~"); ok {
		return s.home + rest
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.project, name)
}

func (s *site) mkdir(name string) string {
	s.t.Helper()
	if err := os.MkdirAll(s.path(name), 0o700); err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

func (s *site) symlink(target, name string) {
	s.t.Helper()
	if err := os.Symlink(target, s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) allow(name string, write bool) {
	s.policy.Paths = append(s.policy.Paths, policy.Path{Name: s.path(name), Write: write, From: policy.Origin{Kind: policy.FromFlag, Key: "--allow-path"}})
}

func (s *site) deny(name string) {
	s.policy.DenyRead = append(s.policy.DenyRead, policy.Path{Name: s.path(name), From: policy.Origin{Kind: policy.FromUser, Key: "deny.read"}})
}

// git runs git on the host, outside any box.
func (s *site) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.project
	cmd.Env = append([]string{"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@test",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null"}, s.env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *site) plan(argv ...string) *backends.Plan {
	s.t.Helper()
	plan, err := s.backend.Plan(s.policy, backends.Command{Argv: argv, Dir: s.policy.Dir, Env: s.env})
	if err != nil {
		s.t.Fatal(err)
	}
	return plan
}

// result is how a launch ended.
type result struct {
	status    int
	out, errs string
	err       error
}

func (r result) String() string {
	return fmt.Sprintf("status %d, error %v\nstdout: %s\nstderr: %s", r.status, r.err, r.out, r.errs)
}

// launch is a launch that is running.
type launch struct {
	t         testing.TB
	proc      backends.Process
	out, errs chan string
}

func (s *site) start(plan *backends.Plan, in *os.File) (*launch, error) {
	s.t.Helper()
	l := &launch{t: s.t}
	var outW, errW *os.File
	l.out, outW = drain(s.t)
	l.errs, errW = drain(s.t)
	var err error
	l.proc, err = s.backend.Start(plan, backends.Stdio{In: in, Out: outW, Err: errW})
	outW.Close()
	errW.Close()
	return l, err
}

func drain(t testing.TB) (chan string, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := make(chan string, 1)
	go func() {
		data, _ := io.ReadAll(r)
		r.Close()
		c <- string(data)
	}()
	return c, w
}

func (l *launch) wait() result {
	l.t.Helper()
	timer := time.AfterFunc(60*time.Second, func() {
		l.t.Error("the launch took more than a minute")
		l.proc.Kill()
	})
	defer timer.Stop()
	exit, err := l.proc.Wait()
	return result{exit.Status(), <-l.out, <-l.errs, err}
}

// run launches a command and waits for it.
func (s *site) run(argv ...string) result {
	s.t.Helper()
	l, err := s.start(s.plan(argv...), nil)
	if err != nil {
		return result{-1, <-l.out, <-l.errs, err}
	}
	return l.wait()
}

// sh runs a script in the box. It must be launched; how it ends is for the
// caller.
func (s *site) sh(script string) result {
	s.t.Helper()
	r := s.run("sh", "-c", script)
	if r.err != nil {
		s.t.Fatalf("%s\n%v", script, r)
	}
	return r
}

// works and fails are scripts that end well and do not.
func (s *site) works(script string) string {
	s.t.Helper()
	r := s.sh(script)
	if r.status != 0 {
		s.t.Errorf("must work in the box: %s\n%v", script, r)
	}
	return r.out
}

func (s *site) fails(script string) result {
	s.t.Helper()
	r := s.sh(script)
	if r.status == 0 {
		s.t.Errorf("must fail in the box: %s\n%v", script, r)
	}
	return r
}

// snapshot is every name below a directory with its kind and content.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b bytes.Buffer
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		spare := filepath.Join(".kgate", "spare")
		if info.IsDir() && (strings.HasSuffix(path, spare) || strings.HasSuffix(filepath.Dir(path), spare)) {
			return nil // kept for the next launch, with nothing in it
		}
		fmt.Fprintf(&b, "%s %v", strings.TrimPrefix(path, dir), info.Mode())
		if info.Mode().IsRegular() && !strings.Contains(path, "/.git/") {
			data, _ := os.ReadFile(path)
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
