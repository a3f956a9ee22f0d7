//go:build linux

package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/verify/probe"
)

func TestMain(m *testing.M) {
	if status, ok := probe.Main(os.Args); ok {
		os.Exit(status)
	}
	if status, ok := Stage(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// start returns a lab, or skips the test where there can be none.
func start(t *testing.T, o Options) *Lab {
	t.Helper()
	l, err := Start(o)
	if err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "lab") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// run runs a command on the machine.
func run(t *testing.T, l *Lab, argv ...string) (int, string) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	j, err := l.Start(Command{Argv: argv, Dir: t.TempDir(), Env: os.Environ(), Files: [3]*os.File{null, out, out}})
	if err != nil {
		t.Fatal(err)
	}
	status, err := j.Wait()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return status, string(text)
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestInternet asks everything that the lab offers, from its machine.
func TestInternet(t *testing.T) {
	l := start(t, Options{})
	for _, tc := range []struct {
		probe  string
		status int
		want   string
	}{
		{"tcp 203.0.113.10 9999", 0, "hello from 203.0.113.10:9999"},
		{"tcp 203.0.113.10 80", 0, "hello from 203.0.113.10:80"},
		{"http http://allowed.test/", 0, ":80"},
		{"http http://allowed.test:8080/bytes/100000", 0, "100000 bytes"},
		{"tcp 203.0.113.20 7 echoed", 0, "echoed"},
		{"udp 203.0.113.20 5000 what", 0, "reply from 203.0.113.20:5000: what"},
		{"tcp 203.0.113.20 81", 1, "refused"},
		{"tcp 2001:db8:77::20 443", 0, "hello from [2001:db8:77::20]:443"},
		{"udp 2001:db8:77::20 5000", 0, "reply from [2001:db8:77::20]:5000"},
		{"knock 203.0.113.10 5001", 0, "stranger from 203.0.113.40:5001"},
		{"knock 2001:db8:77::10 5001", 0, "stranger from [2001:db8:77::20]:5001"},
		{"dns@2001:db8:77::54 other.test", 0, "203.0.113.20"},
		{"tcp 127.0.0.1 8099", 0, "machine-service 127.0.0.1:8099"},
		{"tcp 203.0.113.2 8099", 0, "machine-service 203.0.113.2:8099"},
		{"udp 127.0.0.1 8099", 0, "machine-service 127.0.0.1:8099"},
		{"dns allowed.test", 0, "allowed.test. 60 IN A 203.0.113.10"},
		{"dns allowed.test AAAA", 0, "2001:db8:77::10"},
		{"dns@203.0.113.54 other.test", 0, "203.0.113.20"},
		{"dns@203.0.113.53 -tcp other.test", 0, "203.0.113.20"},
		{"dns cname.test", 0, "CNAME allowed.test."},
		{"dns six.test", 1, "no A record"},
		{"dns nowhere.test", 1, "NXDOMAIN"},
		{"dns broken.test", 1, "SERVFAIL"},
		{"-t 300ms dns silent.test", 1, "timeout"},
		{"dns a.b.wild.test", 0, "203.0.113.40"},
		{"dns wild.test", 1, "NXDOMAIN"},
		{"dns secret.attacker.test", 0, "203.0.113.20"},
		{"dns two.shared.test", 0, "203.0.113.30"},
		{"nonsense 1 2", 2, "usage"},
	} {
		status, out := run(t, l, append([]string{self(t), probe.Stage}, strings.Fields(tc.probe)...)...)
		if status != tc.status || !strings.Contains(out, tc.want) {
			t.Errorf("%s: status %d, want %d: %s", tc.probe, status, tc.status, out)
		}
	}
	for name, words := range map[string][]string{
		"one":  {"proto=tcp", "dst=203.0.113.10", "port=9999"},
		"dns":  {"proto=dns", "text=^secret.attacker.test A$"},
		"udp":  {"proto=udp", "dst=203.0.113.20", "text=what"},
		"http": {"port=80", "text=Host: allowed.test"},
		"self": {"dst=127.0.0.1", "port=8099", "proto=tcp"},
	} {
		if a, err := l.Sinks(words, true); err != nil || a.Count == 0 {
			t.Errorf("%s: no record of %q (%v)", name, words, err)
		}
	}
	if a, err := l.Packets("outer", []string{"proto=dns", "name=^secret.attacker.test$"}, true); err != nil || a.Count == 0 {
		t.Errorf("no packet with the name: %+v %v", a, err)
	}
	if a, err := l.Packets("outer", []string{"dst=203.0.113.11"}, false); err != nil || a.Count != 0 || a.Total == 0 {
		t.Errorf("packets nobody sent: %+v %v", a, err)
	}
	if _, err := l.Packets("box", nil, false); err == nil {
		t.Error("the captures speak of a box that never was")
	}
	if err := l.Mark(); err != nil {
		t.Fatal(err)
	}
	if a, err := l.Sinks(nil, false); err != nil || a.Total != 0 {
		t.Errorf("after a mark: %+v %v", a, err)
	}
}

func TestScriptedNames(t *testing.T) {
	l := start(t, Options{})
	first, second := "", ""
	_, first = run(t, l, self(t), probe.Stage, "dns", "rotate.test")
	_, second = run(t, l, self(t), probe.Stage, "dns", "rotate.test")
	if first == second || !strings.Contains(first, "IN A") {
		t.Errorf("no rotation: %q %q", first, second)
	}
	if err := l.DNS("new.test", []string{"a=203.0.113.11", "ttl=2"}); err != nil {
		t.Fatal(err)
	}
	if _, out := run(t, l, self(t), probe.Stage, "dns", "new.test"); !strings.Contains(out, "new.test. 2 IN A 203.0.113.11") {
		t.Errorf("got %q", out)
	}
	if err := l.DNS("new.test", []string{"a=nothing"}); err == nil {
		t.Error("a rule without an address was taken")
	}
	if err := l.DNS(".", []string{"silent"}); err != nil {
		t.Fatal(err)
	}
	if status, _ := run(t, l, self(t), probe.Stage, "-t", "200ms", "dns", "unknown.test"); status != 1 {
		t.Error("the server is not silent")
	}
}

// TestPerson shows that what runs on the machine has no more rights than the
// person who started the lab.
func TestPerson(t *testing.T) {
	l := start(t, Options{})
	status, out := run(t, l, "sh", "-c", "id -u; grep -E '^Cap(Inh|Amb)' /proc/self/status; echo $$")
	if status != 0 || !strings.HasPrefix(out, strconv.Itoa(os.Getuid())+"\n") {
		t.Fatalf("status %d: %s", status, out)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "Cap") && !strings.HasSuffix(line, "0000000000000000") {
			t.Error(line)
		}
	}
	if os.Getuid() != 0 {
		if _, out := run(t, l, "grep", "^CapEff", "/proc/self/status"); !strings.Contains(out, "0000000000000000") {
			t.Error(out)
		}
	}
}

// TestBareBox sees a box without a filter come and go, and its packets.
func TestBareBox(t *testing.T) {
	if err := ProbeFilter(); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "hostfilter") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	l := start(t, Options{})
	status, out := run(t, l, self(t), StageBare, "-6", "--", self(t), probe.Stage, "tcp", "other.test", "9999")
	if status != 0 || !strings.Contains(out, "203.0.113.20") {
		t.Fatalf("status %d: %s", status, out)
	}
	// The box has its IPv6 address up to some seconds after the other one.
	status, out = run(t, l, self(t), StageBare, "-6", "--", "sh", "-c",
		"for i in $(seq 100); do "+self(t)+" "+probe.Stage+" tcp 2001:db8:77::20 9999 && exit 0; sleep 0.1; done; exit 1")
	if status != 0 || !strings.Contains(out, "hello from [2001:db8:77::20]:9999") {
		t.Fatalf("IPv6: status %d: %s", status, out)
	}
	for _, words := range []string{"proto=tcp dst=203.0.113.20", "proto=dns name=other.test dst=10.0.2.3", "proto=ip6"} {
		if a, err := l.Packets("box", strings.Fields(words), true); err != nil || a.Count == 0 {
			t.Errorf("%s not seen on the box's interface: %v", words, err)
		}
	}
	if a, err := l.Packets("box", []string{"dst=203.0.113.10"}, false); err != nil || a.Count != 0 {
		t.Errorf("%+v %v", a, err)
	}
	file := filepath.Join(t.TempDir(), "box.pcap")
	if n, err := l.Pcap("box", file); err != nil || n == 0 {
		t.Errorf("pcap: %d %v", n, err)
	}
	if left, err := l.Processes(); err != nil || len(left) > 0 {
		t.Errorf("left: %q %v", left, err)
	}
}

func TestJobs(t *testing.T) {
	l := start(t, Options{})
	if status, _ := run(t, l, "sh", "-c", "exit 9"); status != 9 {
		t.Errorf("status %d", status)
	}
	if status, _ := run(t, l, "sh", "-c", "kill -TERM $$"); status != 143 {
		t.Errorf("status %d", status)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	j, err := l.Start(Command{Argv: []string{"sleep", "30"}, Dir: "/", Env: os.Environ(), Files: [3]*os.File{null, null, null}})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := l.Processes(); err != nil || len(left) != 1 {
		t.Errorf("processes: %q %v", left, err)
	}
	if err := j.Signal(syscall.SIGTERM, false); err != nil {
		t.Error(err)
	}
	if status, err := j.Wait(); status != 143 || err != nil {
		t.Errorf("status %d %v", status, err)
	}
	if _, err := l.Start(Command{Argv: []string{"no-such-program"}, Dir: "/", Env: os.Environ(), Files: [3]*os.File{null, null, null}}); err == nil {
		t.Error("started what is not there")
	}
}

// TestEndsWithParent kills the process that holds a lab, and looks for what is
// left of it.
func TestEndsWithParent(t *testing.T) {
	if os.Getenv("KGATE_LAB_HOLDER") != "" {
		l := start(t, Options{})
		null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if _, err := l.Start(Command{Argv: []string{"sleep", "54321"}, Dir: "/", Env: os.Environ(), Files: [3]*os.File{null, null, null}}); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("up\n")
		time.Sleep(time.Minute)
		return
	}
	start(t, Options{}).Close()
	marker := "KGATE_LAB_HOLDER=" + t.TempDir()
	cmd := exec.Command(self(t), "-test.run=^TestEndsWithParent$")
	tmp := t.TempDir()
	cmd.Env = append(os.Environ(), marker, "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 3)); n != 3 {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	count := func() (n int) {
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, d := range dirs {
			env, _ := os.ReadFile(d + "/environ")
			if strings.Contains(string(env), marker) || strings.Contains(string(env), "KGATE_LAB_OWNER="+strconv.Itoa(pid)+"\x00") {
				n++
			}
		}
		return n
	}
	if n := count(); n < 3 {
		t.Fatalf("only %d processes of the lab are seen", n)
	}
	cmd.Process.Kill()
	cmd.Wait()
	for end := time.Now().Add(5 * time.Second); count() > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d processes are left", count())
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
