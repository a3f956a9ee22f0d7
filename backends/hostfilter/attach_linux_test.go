package hostfilter

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// host parses an entry as the host list writes it.
func host(t testing.TB, s string) policy.Host {
	t.Helper()
	var h policy.Host
	if a, err := netip.ParseAddr(s); err == nil {
		return policy.Host{Addr: a}
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return policy.Host{Addr: ap.Addr(), Port: ap.Port()}
	}
	name, port, ok := strings.Cut(s, ":")
	if ok {
		n, err := netip.ParseAddrPort("0.0.0.0:" + port)
		if err != nil {
			t.Fatal(err)
		}
		h.Port = n.Port()
	}
	h.Name, h.Wildcard = strings.CutPrefix(name, "*.")
	return h
}

func hosts(t testing.TB, all ...string) []policy.Host {
	var hs []policy.Host
	for _, s := range all {
		hs = append(hs, host(t, s))
	}
	return hs
}

// launched is what came of a launch.
type launched struct {
	out, errs string
	code      int
	took      time.Duration
}

// asUser makes a command run as an ordinary user of the lab's machine, who has
// no capability over its network.
func asUser(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
	}
}

func self(t testing.TB) string {
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch launches the client with the steps on the lab's machine, as an
// ordinary user unless root is set.
func launch(t testing.TB, root bool, o launchOrders, steps ...string) launched {
	t.Helper()
	o.Argv = append([]string{self(t), "client"}, steps...)
	cmd := launchCommand(t, root, o)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	cmd.Run()
	return launched{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(began)}
}

func launchCommand(t testing.TB, root bool, o launchOrders) *exec.Cmd {
	t.Helper()
	o.Verbose = true
	arg, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t), "launch", string(arg))
	if !root {
		asUser(cmd)
	}
	return cmd
}

type finder = func(dns.Question, bool) ([]string, int, time.Duration)

// answers sets what the resolver says and forgets what it was asked.
func answers(t testing.TB, f finder) {
	t.Helper()
	theLab.mu.Lock()
	defer theLab.mu.Unlock()
	theLab.answer = f
	theLab.queries, theLab.datagram = nil, nil
}

func (l *lab) saw() (queries, datagrams string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.queries, "\n"), strings.Join(l.datagram, "\n")
}

// resolvConf sets the machine's resolv.conf for one test.
func resolvConf(t testing.TB, text string) {
	t.Helper()
	name := filepath.Join(theLab.dir, "resolv.conf")
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(name, old, 0o644) })
}

// step is one thing the command does and what must come of it.
type step struct{ do, want string }

// scene is one launch and what must come of it.
type scene struct {
	name     string
	hosts    []string
	answer   finder
	orders   launchOrders
	steps    []step
	refused  []string // what run -v says, as regular expressions
	unasked  []string // what the resolver was not asked
	unsent   []string // what no sink got
	bothWays bool     // as root as well
}

var abZone = []string{
	"allowed.test. 60 A " + webAddr, "other.test. 60 A " + otherAddr, "deep.sub.wild.test. 60 A " + thirdAddr,
	"wild.test. 60 A " + otherAddr, "secret.attacker.test. 60 A " + otherAddr,
	"alias.test. 60 CNAME middle.cdn.test.", "middle.cdn.test. 60 CNAME end.cdn.test.", "end.cdn.test. 60 A " + thirdAddr,
	"allowed.test. 60 AAAA 2001:db8:113::10", "six.test. 60 AAAA 2001:db8:113::20",
	"loop.wild.test. 60 A 127.0.0.1", "meta.wild.test. 60 A 169.254.169.254", "own.wild.test. 60 A " + machineAddr,
	"mixed.wild.test. 60 A " + machineAddr, "mixed.wild.test. 60 A " + webAddr, "slirp.wild.test. 60 A 10.0.2.2",
	"big.test. 60 A " + webAddr,
}

const (
	reset      = "^error: connection refused$"
	prohibited = "^error: (operation not permitted|no route to host|permission denied)$"
	noHost     = "^error: no such host"
)

func scenes() []scene {
	return []scene{
		{
			name: "a name", hosts: []string{"allowed.test"}, bothWays: true,
			steps: []step{
				{"tcp allowed.test:80", "^" + webAddr + "$"}, {"tcp " + webAddr + ":443", "^" + webAddr + "$"}, {"udp " + webAddr + ":9000 hi", "^hi$"},
				{"tcp " + otherAddr + ":80", reset}, {"tcp " + resolverAddr + ":80", reset}, {"lookup other.test", noHost}, {"udp " + otherAddr + ":9000 leak", prohibited},
				{"tcp " + machineAddr + ":7777", reset}, {"tcp 10.0.2.2:7777", reset}, {"tcp 10.0.2.3:80", reset},
				{"lookup secret.attacker.test", noHost}, {"tcp6 [2001:db8:113::10]:80", "^error: (network is unreachable|connection refused|permission denied)$"},
			},
			refused: []string{`refused other\.test: not on the host list`, `refused secret\.attacker\.test`},
			unasked: []string{"other.test", "attacker"}, unsent: []string{"leak"},
		},
		{
			name: "a port", hosts: []string{"allowed.test:443", "203.0.113.20:80"},
			steps: []step{
				{"tcp allowed.test:443", "^" + webAddr + "$"}, {"tcp allowed.test:80", reset}, {"udp " + webAddr + ":9000 leak", prohibited},
				{"tcp " + otherAddr + ":80", "^" + otherAddr + "$"}, {"tcp " + otherAddr + ":443", reset}, {"udp " + otherAddr + ":80 hi", "^hi$"},
			},
			unsent: []string{"leak"},
		},
		{
			name: "port 53 only by name", hosts: []string{webAddr, otherAddr + ":53"},
			steps: []step{
				{"udp " + webAddr + ":9000 hi", "^hi$"}, {"udp " + webAddr + ":53 leak", prohibited}, {"tcp " + webAddr + ":53", "^error: (no route to host|permission denied)$"},
				{"udp " + otherAddr + ":53 hi", "^hi$"}, {"udp " + otherAddr + ":9000 leak", prohibited},
			},
			unsent: []string{"leak"},
		},
		{
			name: "a foreign resolver", hosts: []string{"allowed.test"},
			steps: []step{
				{"dns 10.0.2.3:53 udp allowed.test A", "^NOERROR allowed.test. 60 IN A " + webAddr + "$"}, {"dns 10.0.2.3:53 tcp allowed.test A", "^NOERROR .*" + webAddr + "$"},
				{"dns " + resolverAddr + ":53 udp direct.test A", prohibited}, {"dns " + resolverAddr + ":53 tcp direct.test A", "^error: (no route to host|permission denied)$"},
				{"dns 10.0.2.2:53 udp direct.test A", prohibited},
			},
			unasked: []string{"direct.test"},
		},
		{
			name: "query types", hosts: []string{"allowed.test", "*.wild.test"},
			steps: []step{
				{"dns 10.0.2.3:53 udp AlLoWeD.tEsT A", "^NOERROR AlLoWeD.tEsT. 60 IN A " + webAddr + "$"},
				{"dns 10.0.2.3:53 udp allowed.test AAAA", "^NOERROR$"}, {"dns 10.0.2.3:53 udp allowed.test HTTPS", "^NOERROR$"}, {"dns 10.0.2.3:53 udp allowed.test TXT", "^NOERROR$"},
				{"dns 10.0.2.3:53 udp allowed.test ANY", "^REFUSED$"}, {"dns 10.0.2.3:53 tcp allowed.test AXFR", "^REFUSED$"}, {"dns 10.0.2.3:53 udp 10.113.0.203.in-addr.arpa PTR", "^NXDOMAIN$"},
				{"dns 10.0.2.3:53 udp none.wild.test A", "^NXDOMAIN$"}, {"dns 10.0.2.3:53 udp . NS", "^NXDOMAIN$"},
			},
			unasked: []string{"AAAA", "HTTPS", "TXT", "ANY", "AXFR", "arpa", "NS"},
		},
		{
			name: "names below a name", hosts: []string{"*.wild.test"},
			steps: []step{
				{"tcp " + thirdAddr + ":80", reset}, {"tcp deep.sub.wild.test:80", "^" + thirdAddr + "$"}, {"tcp " + thirdAddr + ":443", "^" + thirdAddr + "$"},
				{"lookup wild.test", noHost}, {"lookup notwild.test", noHost}, {"lookup wild.test.attacker.test", noHost},
				{"lookup loop.wild.test", "^error: "}, {"lookup meta.wild.test", "^error: "}, {"lookup own.wild.test", "^error: "}, {"lookup slirp.wild.test", "^error: "},
				{"lookup mixed.wild.test", "^" + webAddr + "$"}, {"tcp " + machineAddr + ":7777", reset},
			},
			refused: []string{`loop\.wild\.test: the answer 127\.0\.0\.1 is a loopback address`, `meta\.wild\.test: the answer 169\.254\.169\.254 is a link-local`,
				`own\.wild\.test: the answer ` + machineAddr + ` is an address of this machine`, `mixed\.wild\.test: the answer ` + machineAddr, `slirp\.wild\.test: .*box's own`},
			unasked: []string{"attacker", "notwild"},
		},
		{
			name: "the machine's own address, listed", hosts: []string{machineAddr + ":7777", "*.wild.test"},
			steps: []step{
				{"tcp " + machineAddr + ":7777", "^machine$"}, {"tcp " + machineAddr + ":7778", reset},
				{"lookup own.wild.test", "^" + machineAddr + "$"}, {"tcp " + machineAddr + ":7778", reset},
			},
		},
		{
			name: "an alias", hosts: []string{"alias.test"},
			steps: []step{
				{"tcp alias.test:80", "^" + thirdAddr + "$"}, {"dns 10.0.2.3:53 udp alias.test A", "^NOERROR alias.test. 60 IN CNAME middle.cdn.test. middle.cdn.test. 60 IN CNAME end.cdn.test. end.cdn.test. 60 IN A " + thirdAddr + "$"},
				{"lookup end.cdn.test", noHost},
			},
		},
		{
			name: "a resolver that stops at the alias", hosts: []string{"alias.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, d := zone(abZone...)(q, tcp)
				return rrs[:min(1, len(rrs))], code, d
			},
			steps: []step{{"tcp alias.test:80", "^" + thirdAddr + "$"}},
		},
		{
			name: "an answer that needs tcp", hosts: []string{"big.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, d := zone(abZone...)(q, tcp)
				if !tcp {
					return []string{"TRUNCATE"}, code, d
				}
				return rrs, code, d
			},
			steps: []step{{"tcp big.test:80", "^" + webAddr + "$"}},
		},
		{
			name: "an answer about something else", hosts: []string{"allowed.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, d := zone(abZone...)(q, tcp)
				return append(rrs, "other.test. 60 A "+otherAddr, "allowed.test. 60 TXT smuggled"), code, d
			},
			steps: []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"tcp " + otherAddr + ":80", reset}, {"dns 10.0.2.3:53 udp allowed.test A", "^NOERROR allowed.test. 60 IN A " + webAddr + "$"}},
		},
		{
			name: "a stranger's datagram", hosts: []string{"203.0.113.10"},
			steps:  []step{{"udp " + webAddr + ":9000 hi", "^hi$"}, {"stranger " + webAddr + ":9000", ""}},
			unsent: []string{"secret"},
		},
		{
			name: "IPv6", hosts: []string{"allowed.test"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"tcp6 [2001:db8:113::10]:80", "^2001:db8:113::10$"}, {"tcp6 [2001:db8:113::20]:80", reset}, {"dns 10.0.2.3:53 udp allowed.test AAAA", "^NOERROR .*2001:db8:113::10$"},
				{"udp [2001:db8:113::20]:9000 leak", prohibited},
			},
			unsent: []string{"leak"},
		},
		{
			name: "the command's own loopback", hosts: []string{"allowed.test"},
			steps: []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"loopback 127.0.0.1:8080", "^hello$"}, {"loopback [::1]:8080", "^hello$"}},
		},
		{
			name: "nothing to undo it with", hosts: []string{"allowed.test"}, bothWays: true,
			steps: []step{
				{"sh grep ^Cap /proc/self/status | grep -c 0000000000000000", "^5$"},
				{"sh PATH=/usr/sbin:$PATH; iptables -P OUTPUT ACCEPT; iptables -F; ip link set tap0 down; true", "(?i)permission denied.*permission denied.*not permitted"},
				{"sh cat /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv4/ip_forward", "error"},
				{"tcp " + otherAddr + ":80", reset}, {"tcp allowed.test:80", "^" + webAddr + "$"},
			},
		},
	}
}

func TestScenes(t *testing.T) {
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			s.play(t, false)
			if s.bothWays {
				s.play(t, true)
			}
		})
	}
}

// play launches a scene and checks what came of it.
func (s scene) play(t *testing.T, root bool) {
	t.Helper()
	if s.answer == nil {
		s.answer = zone(abZone...)
	}
	answers(t, s.answer)
	s.orders.Config.Hosts = hosts(t, s.hosts...)
	var do []string
	for _, st := range s.steps {
		do = append(do, st.do)
	}
	r := launch(t, root, s.orders, do...)
	if r.code != 0 {
		t.Fatalf("launch as root %v: status %d\n%s%s", root, r.code, r.out, r.errs)
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	for i, st := range s.steps {
		_, got, _ := strings.Cut(lines[i], " => ")
		if !regexp.MustCompile(st.want).MatchString(got) {
			t.Errorf("as root %v: %s: got %q, want %s", root, st.do, got, st.want)
		}
	}
	for _, want := range s.refused {
		if !regexp.MustCompile(want).MatchString(r.errs) {
			t.Errorf("as root %v: run -v does not say %s:\n%s", root, want, r.errs)
		}
	}
	queries, datagrams := theLab.saw()
	for _, bad := range s.unasked {
		if strings.Contains(queries, bad) {
			t.Errorf("as root %v: the resolver was asked %s:\n%s", root, bad, queries)
		}
	}
	for _, bad := range s.unsent {
		if strings.Contains(datagrams, bad) {
			t.Errorf("as root %v: %s got out:\n%s", root, bad, datagrams)
		}
	}
	if t.Failed() {
		t.Logf("%s%s", r.out, r.errs)
	}
}
