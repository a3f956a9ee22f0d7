package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
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

func TestJudge(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7"), netip.MustParseAddr("fe80::7%eth0")}
	for addr, bad := range map[string]bool{
		"203.0.113.10": false, "10.1.2.3": false, "192.168.1.1": false, "100.64.0.1": false, "2001:db8::8": false, "fd12::1": false,
		"0.0.0.0": true, "0.1.2.3": true, "127.0.0.1": true, "127.8.9.1": true, "169.254.169.254": true, "224.0.0.1": true, "255.255.255.255": true,
		"192.0.2.7": true, "2001:db8::7": true, "10.0.2.2": true, "10.0.2.3": true, "10.0.2.100": true, "fd00::2": true,
		"::": true, "::1": true, "fe80::1": true, "ff02::1": true,
		"::ffff:127.0.0.1": true, "::ffff:192.0.2.7": true, "::ffff:203.0.113.10": false, "::127.0.0.1": true,
		"64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true, "64:ff9b::cb00:710a": false, "64:ff9b:1::a9fe:a9fe": true, "64:ff9b:1::cb00:710a": false, "2002:7f00:1::1": true, "2002:cb00:710a::1": false,
	} {
		if got := judge(netip.MustParseAddr(addr), own); (got != "") != bad {
			t.Errorf("judge(%s) = %q, want bad %v", addr, got, bad)
		}
	}
}

func TestListPorts(t *testing.T) {
	l := newList(hosts(t, "allowed.test", "allowed.test:443", "*.wild.test:80", "*.test:1", "203.0.113.9"))
	for name, want := range map[string][]uint16{
		"allowed.test.": {0, 443, 1}, "ALLOWED.Test": {0, 443, 1}, "a.wild.test": {80, 1}, "a.b.wild.test": {80, 1}, "wild.test": {1},
		"test": nil, "": nil, ".": nil, "allowed.test.evil.example": nil, "notallowed.tes": nil, "203.0.113.9": nil, "allowed.te\u017ft": nil,
		// One label with a dot in it is one below "test", or is a name of its own.
		`x\.wild.test.`: nil, `a.x\.wild.test.`: nil, `allowed\.test.`: nil, `\*.wild.test.`: nil,
	} {
		if got := l.ports(name); !slices.Equal(got, want) {
			t.Errorf("ports(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestParseResolvers(t *testing.T) {
	for text, want := range map[string]string{
		"nameserver 192.0.2.1\nnameserver 192.0.2.2\n":                "10.0.2.3",
		"nameserver ::1\nnameserver 127.0.0.53\n":                     "10.0.2.3",
		"# nameserver 192.0.2.1\nsearch x\n":                          "error: names no name server",
		"nameserver ::1\n":                                            "error: IPv6 loopback",
		"nameserver 2001:db8::1\n":                                    "error: IPv6 is off",
		"nameserver fe80::1%eth0\n":                                   "error: IPv6 is off",
		"nameserver\nnameserver here\n  nameserver\t192.0.2.1 junk\n": "10.0.2.3",
	} {
		got, err := parseResolvers(text).reach(false)
		word, isErr := strings.CutPrefix(want, "error: ")
		if isErr != (err != nil) || isErr && !strings.Contains(err.Error(), word) || !isErr && got.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	if got, err := parseResolvers("nameserver 2001:db8::1\n").reach(true); err != nil || got != DNS6 {
		t.Errorf("with IPv6: %v, %v", got, err)
	}
}

// slow is a resolver whose answers wait.
type slow struct {
	wait  chan struct{}
	asked chan string
}

func (s slow) ask(ctx context.Context, name string, _ uint16) (answer, error) {
	s.asked <- name
	select {
	case <-s.wait:
	case <-ctx.Done():
		return answer{}, errSilent
	}
	rr, err := dns.NewRR(name + ". 30 A 203.0.113.10")
	return answer{addrs: []dns.RR{rr}, ttl: 30 * time.Second}, err
}

type opened struct {
	err error
	log *[]string
}

func (o opened) open(addrs []netip.Addr, ports []uint16, ttl time.Duration) error {
	for _, a := range addrs {
		if o.log == nil {
			break
		}
		*o.log = append(*o.log, a.String()+" "+ttl.String())
	}
	return o.err
}

func TestLookupsAreBounded(t *testing.T) {
	s := slow{make(chan struct{}), make(chan string, 10000)}
	var refused int
	n := newNames(Config{Hosts: hosts(t, "*.wild.test")}, nil, s, opened{}, func(string, string) { refused++ })
	results := make(chan int, 1000)
	const waiting = maxQueries + maxWaiting
	for range waiting {
		go func() { results <- n.reply(query("x.wild.test", dns.TypeA)).Rcode }()
	}
	for len(n.queue) < waiting {
		time.Sleep(time.Millisecond)
	}
	if got := n.reply(query("one-more.wild.test", dns.TypeA)).Rcode; got != dns.RcodeServerFailure || refused != 1 {
		t.Errorf("one more: %s, %d refused", dns.RcodeToString[got], refused)
	}
	if len(s.asked) > maxQueries {
		t.Errorf("%d questions under way, want at most %d", len(s.asked), maxQueries)
	}
	close(s.wait)
	for range waiting {
		if got := <-results; got != dns.RcodeSuccess {
			t.Fatalf("one that waited: %s", dns.RcodeToString[got])
		}
	}
}

// What cannot be opened is not handed out.
func TestNoAnswerThatIsNotOpen(t *testing.T) {
	done := make(chan struct{})
	close(done)
	var log []string
	for _, err := range []error{nil, errors.New("iptables: no")} {
		n := newNames(Config{Hosts: hosts(t, "allowed.test")}, nil, slow{done, make(chan string, 9)}, opened{err, &log}, func(string, string) {})
		m := n.reply(query("Allowed.test", dns.TypeA))
		if (len(m.Answer) == 1) != (err == nil) || (m.Rcode == dns.RcodeSuccess) != (err == nil) {
			t.Errorf("opening says %v, the answer is %v", err, m)
		}
	}
	if want := []string{"203.0.113.10 30s", "203.0.113.10 30s"}; !slices.Equal(log, want) {
		t.Errorf("opened %v, want %v", log, want)
	}
}

// recorder is a filter that keeps what it is told.
type recorder struct {
	log []string
	err error
}

func (r *recorder) open(ks []key) error  { return r.add("-A", ks) }
func (r *recorder) close(ks []key) error { return r.add("-D", ks) }

func (r *recorder) add(op string, ks []key) error {
	r.log = append(r.log, strings.Split(strings.TrimSpace(changeText(op, ks)), "\n")...)
	return r.err
}

func TestTableHoldsForTTLAndGrace(t *testing.T) {
	r := &recorder{}
	now := time.Unix(1000, 0)
	a, b := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("203.0.113.20")
	tab := newTable(map[int]changer{4: r}, []key{{addr: b}}, func(err error) { t.Error(err) })
	tab.now = func() time.Time { return now }
	open := func(ttl time.Duration, addrs ...netip.Addr) {
		if err := tab.openAll([]openRequest{request(addrs, []uint16{0}, ttl)}); err != nil {
			t.Fatal(err)
		}
	}
	lines := func() string {
		var keep []string
		for _, l := range r.log {
			if strings.HasPrefix(l, "-") {
				keep = append(keep, l)
			}
		}
		r.log = nil
		return strings.Join(keep, "; ")
	}
	open(10*time.Second, a, b)
	if got, want := lines(), "-A KGATE-HOST -d 203.0.113.10 -j ACCEPT"; got != want {
		t.Errorf("opened %q, want %q", got, want)
	}
	now = now.Add(9 * time.Second)
	open(10*time.Second, a)
	now = now.Add(10*time.Second + filterTimes.Grace)
	tab.sweep()
	if got := lines(); got != "" {
		t.Errorf("while it holds: %q", got)
	}
	now = now.Add(time.Millisecond)
	tab.sweep()
	if got, want := lines(), "-D KGATE-HOST -d 203.0.113.10 -j ACCEPT"; got != want {
		t.Errorf("closed %q, want %q", got, want)
	}
	var many []netip.Addr
	for i := range limit + 1 {
		many = append(many, netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}))
	}
	if err := tab.openAll([]openRequest{request(many, []uint16{0}, 0)}); err == nil {
		t.Errorf("%d addresses were opened", len(many))
	}
}

// What explain prints is what is installed, in the same order.
func TestDescribedIsInstalled(t *testing.T) {
	c := Config{Hosts: hosts(t, "allowed.test:443", "*.wild.test", "203.0.113.9:53"), IPv6: true}
	c.Hosts[0].From = policy.Origin{Kind: policy.FromUser, File: "~/.kgate/config.yaml", Line: 7, Key: "allow.hosts[0]"}
	_, rules := Describe(c, policy.Origin{})
	var text strings.Builder
	for _, f := range []int{4, 6} {
		var described, installed []string
		for _, r := range rules {
			if r.Family == f && !strings.Contains(r.Spec, "ADDRESS") {
				described = append(described, r.Spec)
			}
			fmt.Fprintf(&text, "IPv%d %s # %s (%s)\n", r.Family, r.Spec, r.Why, r.From)
		}
		first, rest := restoreText(Rules(c), f)
		for l := range strings.Lines(first + rest) {
			if l = strings.TrimSpace(l); l[0] != '*' && l != "COMMIT" {
				installed = append(installed, l)
			}
		}
		if !slices.Equal(described, installed) {
			t.Errorf("IPv%d: described\n%q\ninstalled\n%q", f, described, installed)
		}
	}
	for _, want := range []string{
		"IPv4 -A KGATE-PORT -d ADDRESS -p PROTOCOL --dport 443 -j ACCEPT # for each address of allowed.test:443, before the command starts, and again at each lookup (~/.kgate/config.yaml:7: allow.hosts[0])",
		"IPv6 -A KGATE-HOST -d ADDRESS -j ACCEPT # for each address of *.wild.test, at each lookup",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &text)
		}
	}
	first, _ := restoreText(Rules(Config{}), 6)
	if strings.Contains(first, "KGATE") || strings.Contains(first, "53") || !strings.Contains(first, ":OUTPUT DROP") {
		t.Errorf("with IPv6 off:\n%s", first)
	}
}

// Only the first part of the rules may begin with an empty table.
func TestRestoreTextOfManyHosts(t *testing.T) {
	var all []string
	for i := range 1000 {
		all = append(all, fmt.Sprintf("203.0.113.9:%d", i+1))
	}
	rules := Rules(Config{Hosts: hosts(t, all...)})
	first, rest := restoreText(rules, 4)
	if n := strings.Count(first, "*filter"); n != 1 || !strings.Contains(first, ":OUTPUT DROP") {
		t.Errorf("the first part begins the table %d times", n)
	}
	if strings.Contains(rest, "\n:") || !strings.HasSuffix(rest, "COMMIT\n") {
		t.Error("the rest makes chains again")
	}
	lines := 0
	for l := range strings.Lines(first + rest) {
		if !strings.HasPrefix(l, "*") && l != "COMMIT\n" {
			lines++
		}
	}
	want := 0
	for _, r := range rules {
		if r.Family == 4 {
			want++
		}
	}
	if lines != want {
		t.Errorf("%d lines of %d", lines, want)
	}
}

// The filter closes the host's loopback as well; slirp4netns is the second lock.
func TestSlirpArguments(t *testing.T) {
	for ipv6, want := range map[bool]string{
		false: "slirp4netns --disable-host-loopback --mtu=65520 --ready-fd=3 --exit-fd=4 --userns-path=/proc/self/fd/5 --netns-type=path /proc/self/fd/6 tap0",
		true:  "slirp4netns --disable-host-loopback --enable-ipv6 --mtu=65520 --ready-fd=3 --exit-fd=4 --userns-path=/proc/self/fd/5 --netns-type=path /proc/self/fd/6 tap0",
	} {
		helpers, _ := Describe(Config{IPv6: ipv6, Tools: Tools{Slirp: "slirp4netns"}}, policy.Origin{})
		if got := strings.Join(helpers[1].Words, " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Hosts: hosts(t, "203.0.113.9", "a.test")}, ""},
		{Config{MTU: 1279}, "mtu 1279"}, {Config{MTU: 65522}, "mtu 65522"}, {Config{MTU: 1500}, ""},
		{Config{Hosts: hosts(t, "10.0.2.3:53")}, "slirp4netns' own"}, {Config{Hosts: hosts(t, "::ffff:10.0.2.2")}, "slirp4netns' own"},
		{Config{IPv6: true, Hosts: hosts(t, "fd00::2")}, "slirp4netns' own"}, {Config{IPv6: true, Hosts: hosts(t, "fe80::1%eth0")}, "zone"},
		{Config{Hosts: hosts(t, "2001:db8::1")}, "ipv6: true"}, {Config{IPv6: true, Hosts: hosts(t, "2001:db8::1")}, ""},
	} {
		err := tt.c.check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}

func TestWordsStayBounded(t *testing.T) {
	if got := words("sent tapfd=5 for tap0\nreceived tapfd=5\n  open(\"/dev/net/tun\"): Permission denied\n"); got != `open("/dev/net/tun"): Permission denied` {
		t.Errorf("got %q", got)
	}
	if got := words(strings.Repeat("x", 9000)); len(got) > 500 {
		t.Errorf("%d bytes", len(got))
	}
}

// Whatever the resolver sends, an answer holds nothing but the chain from the
// name and the addresses at its end.
func FuzzRead(f *testing.F) {
	for _, rrs := range [][]string{{"a.test. 1 A 192.0.2.1"}, {"a.test. 1 CNAME b.test.", "b.test. 2 A 192.0.2.1"}, {"a.test. 1 CNAME a.test."}, {"c.test. 1 A 192.0.2.1"}} {
		m := query("a.test", dns.TypeA)
		m.Response = true
		for _, s := range rrs {
			rr, err := dns.NewRR(s)
			if err != nil {
				f.Fatal(err)
			}
			m.Answer = append(m.Answer, rr)
		}
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := new(dns.Msg)
		if m.Unpack(wire) != nil {
			return
		}
		a := read(m, "a.test", dns.TypeA)
		at := "a.test"
		for _, rr := range a.chain {
			c, ok := rr.(*dns.CNAME)
			if !ok || plain(c.Hdr.Name) != at {
				t.Fatalf("%v is not on the chain at %s", rr, at)
			}
			at = plain(c.Target)
		}
		for _, rr := range a.addrs {
			if plain(rr.Header().Name) != at || !address(rr).Is4() {
				t.Fatalf("%v is not at the chain's end %s", rr, at)
			}
		}
	})
}
