package hostfilter

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kgate-dev/kgate/backends"
)

// script makes a program out of a shell script.
func script(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for d := filepath.Dir(name); strings.Contains(d, "Test"); d = filepath.Dir(d) {
		os.Chmod(d, 0o755)
	}
	return name
}

// leftovers are the processes of the filter that are still there, those of this
// test's process alone.
func leftovers() []string {
	out, _ := exec.Command("ps", "-eo", "pid,stat,args").Output()
	var left []string
	own, _ := os.Readlink("/proc/self/ns/mnt")
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 3 || strings.HasPrefix(f[1], "Z") {
			continue
		}
		ns, err := os.Readlink("/proc/" + f[0] + "/ns/mnt")
		args := strings.Join(f[2:], " ")
		if err == nil && ns == own && f[0] != fmt.Sprint(os.Getpid()) && !strings.HasPrefix(args, "ps ") ||
			strings.Contains(args, "still-here-marker") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left
}

// nothingLeft fails if a process of a launch outlives it for long.
func nothingLeft(t testing.TB) {
	t.Helper()
	var left []string
	for range 100 {
		if left = leftovers(); len(left) == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
}

// A launch that cannot be filtered does not run, says why, and leaves nothing.
func TestNoFilterNoCommand(t *testing.T) {
	needLab(t)
	good := FindTools(OnPath)
	with := func(f func(*Tools)) Tools {
		c := good
		c.Restore, c.Restore6 = slices.Clone(c.Restore), slices.Clone(c.Restore6)
		f(&c)
		return c
	}
	silent := func(dns.Question, bool) ([]string, int, time.Duration) { return nil, -1, 0 }
	answer := func(rrs ...string) finder { return zone(append(rrs, abZone...)...) }
	ready := `for a; do case $a in --ready-fd=*) fd=${a#--ready-fd=};; esac; done; eval "printf 1 >&$fd"; `
	tests := []struct {
		name   string
		hosts  []string
		answer finder
		orders launchOrders
		resolv string
		want   string // a regular expression
	}{
		{name: "a name does not exist", hosts: []string{"allowed.test", "other.test", "missing.test", "alias.test", "big.test"},
			want: `^kgate: hosts: missing\.test does not exist \(NXDOMAIN\)`},
		{name: "no IPv4 address", hosts: []string{"allowed.test", "six.test"}, want: `hosts: six\.test has no IPv4 address`},
		{name: "no IPv4 address, IPv6 on", hosts: []string{"six.test"}, orders: launchOrders{Config: Config{IPv6: true}}, want: `hosts: six\.test has no IPv4 address`},
		{name: "an alias of nothing", hosts: []string{"dangling.test"}, answer: answer("dangling.test. 60 CNAME nothing.test."), want: `hosts: dangling\.test (does not exist|has no IPv4 address)`},
		{name: "an alias of itself", hosts: []string{"loop.test"}, answer: answer("loop.test. 60 CNAME loop.test."), want: `hosts: loop\.test has no IPv4 address`},
		{name: "the resolver fails", hosts: []string{"allowed.test"}, answer: func(dns.Question, bool) ([]string, int, time.Duration) { return nil, dns.RcodeServerFailure, 0 },
			want: `hosts: allowed\.test does not resolve: the resolver says SERVFAIL`},
		{name: "loopback", hosts: []string{"loop.wild.test"}, want: `hosts: loop\.wild\.test: the answer 127\.0\.0\.1 is a loopback address`},
		{name: "metadata", hosts: []string{"meta.wild.test"}, want: `hosts: meta\.wild\.test: the answer 169\.254\.169\.254 is a link-local address`},
		{name: "the machine itself", hosts: []string{"own.wild.test"}, want: `hosts: own\.wild\.test: the answer 203\.0\.113\.1 is an address of this machine`},
		{name: "a silent resolver", hosts: []string{"allowed.test", "other.test"}, answer: silent, want: `resolver: allowed\.test: no answer within 2s; other\.test: no answer within 2s`},
		{name: "no resolver there", hosts: []string{"allowed.test"}, resolv: "nameserver 203.0.113.10\n", want: `resolver: allowed\.test: no answer within 2s`},
		{name: "::1 alone", hosts: []string{"allowed.test"}, resolv: "nameserver ::1\n", want: `resolver: .*::1, the machine's own IPv6 loopback`},
		{name: "::1 alone, IPv6 on", hosts: []string{"allowed.test"}, resolv: "nameserver ::1\n", orders: launchOrders{Config: Config{IPv6: true}}, want: `resolver: .*::1, the machine's own IPv6 loopback`},
		{name: "a resolver with IPv6 alone", hosts: []string{"allowed.test"}, resolv: "nameserver 2001:db8:113::53\n", want: `resolver: .*2001:db8:113::53, and IPv6 is off`},
		{name: "no resolver", hosts: []string{"allowed.test"}, resolv: "# nothing\n", want: `resolver: .*names no name server`},
		{name: "an address of slirp4netns", hosts: []string{"10.0.2.2:80"}, want: `10\.0\.2\.2 .*slirp4netns' own`},
		{name: "an IPv6 address with IPv6 off", hosts: []string{"2001:db8:113::10"}, want: `needs ipv6: true`},
		{name: "no slirp4netns", orders: launchOrders{Config: Config{Tools: with(func(t *Tools) { t.Slirp = "" })}}, want: `slirp4netns: not installed \(install the package slirp4netns\)`},
		{name: "no nsenter", orders: launchOrders{Config: Config{Tools: with(func(t *Tools) { t.Nsenter = "" })}}, want: `nsenter: not installed`},
		{name: "no iptables", orders: launchOrders{Config: Config{Tools: with(func(t *Tools) { t.Restore = nil })}}, want: `iptables: not installed`},
		{name: "no ip6tables, IPv6 on", orders: launchOrders{Config: Config{IPv6: true, Tools: with(func(t *Tools) { t.Restore6 = nil })}}, want: `ip6tables: not installed`},
		{name: "slirp4netns fails", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, "echo something is wrong >&2; exit 3") })}},
			want: `slirp4netns: it ended before it was ready: something is wrong \(exit status 3\)`},
		{name: "slirp4netns ends well", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, "exit 0") })}}, want: `slirp4netns: it ended before it was ready`},
		{name: "slirp4netns is too old", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) {
			c.Slirp = script(t, "echo \"slirp4netns: unrecognized option '--userns-path=x'\" >&2; exit 1")
		})}}, want: `slirp4netns: .*unrecognized option.*\(install slirp4netns`},
		{name: "slirp4netns closes the ready descriptor", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, "exec 3>&-; sleep 0.3; exit 1") })}},
			want: `slirp4netns: it ended before it was ready`},
		{name: "slirp4netns says ready and is not", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, ready+"exec sleep 5") })}}, want: `find tap0`},
		{name: "slirp4netns says ready and dies", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, ready+"exit 1") })}}, want: `(slirp4netns: it ended|find tap0)`},
		{name: "slirp4netns hangs", orders: launchOrders{Waits: times{Attach: 700 * time.Millisecond, Resolve: time.Second, Sweep: time.Second},
			Config: Config{Tools: with(func(c *Tools) { c.Slirp = script(t, "exec sleep 60") })}}, want: `not complete after 700ms`},
		{name: "iptables fails", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) {
			c.Restore = []string{script(t, "cat >/dev/null; echo iptables-restore: table problem >&2; exit 1")}
		})}}, want: `iptables: .*table problem`},
		{name: "iptables does nothing", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Restore = []string{script(t, "cat >/dev/null; exit 0")} })}},
			want: `iptables: the packet filter was installed and lets everything out`},
		{name: "iptables hangs", orders: launchOrders{Waits: times{Attach: 700 * time.Millisecond, Resolve: time.Second, Sweep: time.Second},
			Config: Config{Tools: with(func(c *Tools) { c.Restore = []string{script(t, "exec sleep 60")} })}}, want: `not complete after 700ms`},
		{name: "nsenter fails", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) { c.Nsenter = script(t, "echo nsenter: no >&2; exit 1") })}}, want: `nsenter: it ended before the filter was complete: nsenter: no`},
		{name: "nsenter does not enter", orders: launchOrders{Config: Config{Tools: with(func(c *Tools) {
			c.Nsenter = script(t, "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"")
		})}}, want: `the gate is not in the box's network namespace`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.answer == nil {
				tt.answer = zone(abZone...)
			}
			answers(t, tt.answer)
			if tt.resolv != "" {
				resolvConf(t, tt.resolv)
			}
			if tt.hosts == nil {
				tt.hosts = []string{"allowed.test"}
			}
			tt.orders.Config.Hosts = hosts(t, tt.hosts...)
			if tt.orders.Waits == (times{}) {
				tt.orders.Waits = quick
			}
			r := launch(t, false, tt.orders, "sent")
			if r.code != 125 || r.out != "" {
				t.Errorf("status %d, the command said %q", r.code, r.out)
			}
			last := strings.TrimSpace(r.errs[strings.LastIndex(strings.TrimSpace(r.errs), "\n")+1:])
			if !regexp.MustCompile(tt.want).MatchString(last) {
				t.Errorf("got %q, want %s", last, tt.want)
			}
			nothingLeft(t)
		})
	}
}

// Whatever of the tools can be missing or odd without harm.
func TestOtherTools(t *testing.T) {
	needLab(t)
	good := FindTools(OnPath)
	legacy, legacy6 := OnPath("iptables-legacy-restore"), OnPath("ip6tables-legacy-restore")
	if legacy == "" || legacy6 == "" {
		t.Fatal("iptables-legacy-restore is not installed here, so nothing is shown of it")
	}
	bad := script(t, "cat >/dev/null; exit 1")
	tests := []struct {
		name  string
		tools func(*Tools)
		scene []string
	}{
		{"legacy", func(c *Tools) { c.Restore, c.Restore6 = []string{legacy}, []string{legacy6} },
			[]string{"a name", "a port", "query types", "rotation", "IPv6", "the kernel's own packets", "a stranger's datagram"}},
		{"the first one fails", func(c *Tools) {
			c.Restore, c.Restore6 = append([]string{bad}, c.Restore...), append([]string{bad}, c.Restore6...)
		}, []string{"a name", "rotation"}},
		{"no ip6tables", func(c *Tools) { c.Restore6 = nil }, []string{"a name", "the kernel's own packets"}},
		{"ip6tables fails", func(c *Tools) { c.Restore6 = []string{bad} }, []string{"the kernel's own packets"}},
	}
	for _, tt := range tests {
		for _, name := range tt.scene {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				i := slices.IndexFunc(scenes(), func(s scene) bool { return s.name == name })
				for _, root := range []bool{false, true} {
					s := scenes()[i]
					s.orders.Config.Tools = good
					tt.tools(&s.orders.Config.Tools)
					for _, p := range s.play(t, root) {
						t.Errorf("as root %v: %s", root, p)
					}
				}
			})
		}
	}
	nothingLeft(t)
}

// A helper that dies while the command runs closes what it opened, and kgate
// hears of it.
func TestHelperDies(t *testing.T) {
	needLab(t)
	tests := []struct {
		name, victim string
		want         []string // in the command's output
		said         string
	}{
		{"slirp4netns", "slirp4netns ", []string{"tcp " + webAddr + ":443 => error: network is unreachable", "lookup allowed.test => error:"}, "done: slirp4netns: it ended while the command ran: signal: killed: the command has no network any more"},
		{"gate", GateName, []string{"tcp " + otherAddr + ":80 => error: connection refused", "lookup allowed.test => error:", "tcp " + webAddr + ":443 => " + webAddr}, "done: the gate: it ended while the command ran"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answers(t, zone(abZone...))
			cmd := launchCommand(t, false, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")},
				Argv: []string{self(t), "client", "tcp " + webAddr + ":80", "sleep 1s", "tcp " + webAddr + ":443", "tcp " + otherAddr + ":80", "lookup allowed.test"}})
			var out, errs strings.Builder
			cmd.Stderr = &errs
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(pipe)
			line, err := r.ReadString('\n')
			if err != nil || !strings.HasSuffix(line, webAddr+"\n") {
				t.Fatalf("the command says %q", line)
			}
			if !killOne(tt.victim) {
				t.Error("nobody to kill")
			}
			io.Copy(&out, r)
			cmd.Wait()
			for _, w := range tt.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("the command's output lacks %q:\n%s", w, out.String())
				}
			}
			if !strings.Contains(errs.String(), tt.said) {
				t.Errorf("said %q, want %q", errs.String(), tt.said)
			}
			nothingLeft(t)
		})
	}
}

// killOne kills one of this test's processes whose command line contains part.
func killOne(part string) bool {
	for _, line := range leftovers() {
		if f := strings.Fields(line); strings.Contains(line, part) {
			var pid int
			fmt.Sscan(f[0], &pid)
			return syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	return false
}

// SIGKILL of kgate or of a helper at any moment: nothing unlisted gets out, no
// process stays.
func TestKilledAtAnyMoment(t *testing.T) {
	needLab(t)
	answers(t, zone(abZone...))
	began := time.Now()
	if r := launch(t, false, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")}}, "udp "+webAddr+":9000 here"); r.code != 0 {
		t.Fatal(r.errs)
	}
	whole := time.Since(began)
	const rounds = 8
	for _, victim := range []string{" launch ", "slirp4netns ", GateName, "bwrap "} {
		for i := range rounds {
			cmd := launchCommand(t, false, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")},
				Argv: []string{self(t), "client", "udp " + webAddr + ":9000 here", "udp " + otherAddr + ":9000 leak", "udpread " + resolverAddr + ":53", "sleep 20s still-here-marker"}})
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(whole * time.Duration(i) / rounds)
			for end := time.Now().Add(whole); !killOne(victim) && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if victim == " launch " {
				cmd.Wait()
				nothingLeft(t)
				if t.Failed() {
					t.Fatalf("kgate was killed after %v", whole*time.Duration(i)/rounds)
				}
				continue
			}
			done := make(chan struct{})
			go func() { cmd.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(time.Second):
				// The command runs on in a network that is closed.
				cmd.Process.Kill()
				<-done
			}
			nothingLeft(t)
			if t.Failed() {
				t.Fatalf("%s was killed after %v", victim, whole*time.Duration(i)/rounds)
			}
		}
	}
	queries, datagrams := theLab.saw()
	if !strings.Contains(datagrams, "here") {
		t.Error("no command ever ran: nothing is shown")
	}
	if strings.Contains(datagrams, "leak") {
		t.Errorf("got out:\n%s", datagrams)
	}
	if strings.Contains(strings.ReplaceAll(queries, "allowed.test A", ""), "test") {
		t.Errorf("asked:\n%s", queries)
	}
}

func TestProbe(t *testing.T) {
	needLab(t)
	answers(t, zone(abZone...))
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		t.Fatal(err)
	}
	resolver, err := HostResolver()
	if err != nil {
		t.Fatal(err)
	}
	good := FindTools(OnPath)
	tests := []struct {
		name string
		c    Config
		row  string // the blocked one
		want string
	}{
		{"all is well", Config{Hosts: hosts(t, "allowed.test")}, "", ""},
		{"a name does not resolve", Config{Hosts: hosts(t, "missing.test")}, RowHosts, "missing.test does not exist"},
		{"iptables does nothing", Config{Hosts: hosts(t, "allowed.test"), Tools: func() Tools {
			c := good
			c.Restore = []string{script(t, "cat >/dev/null 2>&1; echo iptables v9; exit 0")}
			return c
		}()}, RowFilter, "lets everything out"},
		{"slirp4netns is too old", Config{Tools: func() Tools {
			c := good
			c.Slirp = script(t, "echo slirp4netns version 0.2; echo --mtu")
			return c
		}()}, RowSlirp, "too old"},
		{"slirp4netns is missing", Config{Tools: func() Tools { c := good; c.Slirp = ""; return c }()}, RowSlirp, "not installed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.c.Resolver = resolver
			rows := Probe(tt.c, bwrap)
			blocked := 0
			for _, r := range rows {
				if r.Status == backends.Blocked {
					blocked++
					if r.Row != tt.row || !strings.Contains(r.Reason, tt.want) || r.Mend == "" {
						t.Errorf("blocked: %+v", r)
					}
				} else if r.Reason == "" {
					t.Errorf("a row without a reason: %+v", r)
				}
			}
			if want := 0; tt.row == "" && blocked != want || tt.row != "" && blocked != 1 {
				t.Errorf("%d rows are blocked: %+v", blocked, rows)
			}
			nothingLeft(t)
		})
	}
}
