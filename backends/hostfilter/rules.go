package hostfilter

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// Rule is one line of the packet filter.
type Rule struct {
	Name   string // stable and unique; a mutant leaves out one
	Family int    // 4 or 6
	Table  string // "nat", "mangle" or "filter"
	Spec   string // a line for iptables-restore(8)
	Why    string
	From   policy.Origin // the entry that asked for it; zero: every filter has it
}

// The chains that listed addresses are added to.
const (
	chainPort = "KGATE-PORT" // one address, one port
	chainAny  = "KGATE-HOST" // one address, any port but 53
)

// omit leaves out a rule or an argument by name. Only the mutants' build sets it.
var omit = func(name string) bool { return false }

// leaveOut makes omit leave out the names. The shipped build does not know how.
var leaveOut = func(names []string) {}

// Rules is the whole packet filter before any name is resolved, in order.
// Addresses that names resolve to are added to its two chains by the gate.
func Rules(c Config) []Rule {
	rules := family(4, true, DNS)
	rules = append(rules, family(6, c.IPv6, DNS6)...)
	for _, h := range c.Hosts {
		if !h.Addr.IsValid() {
			continue
		}
		for _, k := range keys(h.Addr.Unmap(), h.Port) {
			rules = append(rules, Rule{
				Name: "listed:" + label(h) + k.suffix(), Family: k.family(), Table: "filter",
				Spec: "-A " + k.spec(), Why: "listed as an address", From: h.From,
			})
		}
	}
	kept := rules[:0]
	for _, r := range rules {
		if !omit(r.Name) {
			kept = append(kept, r)
		}
	}
	return kept
}

// family is the filter of one address family. A family that is off keeps only
// the loopback.
func family(f int, on bool, dns netip.Addr) []Rule {
	var rules []Rule
	tag := fmt.Sprintf("v%d-", f)
	add := func(name, table, spec, why string) {
		rules = append(rules, Rule{Name: tag + name, Family: f, Table: table, Spec: spec, Why: why})
	}
	adm, loopback, inside, guest := "icmp-admin-prohibited", "127.0.0.1", "127.0.0.0/8", Guest
	if f == 6 {
		adm, loopback, inside, guest = "icmp6-adm-prohibited", "::1", "::1", Guest6
	}
	unmarked := fmt.Sprintf("-m mark ! --mark %#x", mark)
	if on {
		for _, p := range []string{"udp", "tcp"} {
			add("gate-"+p, "nat", fmt.Sprintf("-A OUTPUT -d %s -p %s --dport %d %s -j REDIRECT", dns, p, gatePort, unmarked),
				"names are asked of the gate, which alone may ask the resolver")
		}
		// A redirected packet still goes by the device that its socket is bound to,
		// and slirp4netns would hand it to the loopback of the machine.
		add("loopback-stays", "mangle", fmt.Sprintf("-A POSTROUTING ! -o lo -d %s -j DROP", inside),
			"what is for the loopback leaves by no other device")
	}
	add("policy-output", "filter", ":OUTPUT DROP [0:0]", "what no rule lets out stays in")
	add("policy-input", "filter", ":INPUT DROP [0:0]", "nobody is heard who was not spoken to")
	add("input-loopback", "filter", "-A INPUT -i lo -j ACCEPT", "the box's own loopback")
	if on {
		add("chain-port", "filter", ":"+chainPort+" - [0:0]", "addresses listed with a port")
		add("chain-host", "filter", ":"+chainAny+" - [0:0]", "addresses listed without a port")
		add("input-established", "filter", "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", "answers to what was let out")
		// First, because nearly every packet of a long transfer is this one. Only
		// what the box began: a socket may have any IPv6 address as its own, and
		// what it sends in a stranger's name would make the packet to the stranger
		// an answer.
		add("established", "filter", "-A OUTPUT -m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL -j ACCEPT", "connections that were let out live on")
	}
	// Only to the box's own addresses: a socket that is bound to the loopback device
	// may send to any, and what was let out there once makes whoever has that
	// address no stranger any more.
	add("loopback", "filter", fmt.Sprintf("-A OUTPUT -o lo -d %s -j ACCEPT", inside), "the box's own loopback")
	if on {
		add("loopback-own", "filter", fmt.Sprintf("-A OUTPUT -o lo -d %s -j ACCEPT", guest), "the gate's answers, and this filter's refusals on their way to the command")
		if f == 6 {
			// slirp4netns learns the box's address from the question, so it
			// need not ask in turn; and the box needs no router's advertisement.
			add("ask-neighbour", "filter", "-A OUTPUT -p ipv6-icmp --icmpv6-type neighbour-solicitation -j ACCEPT", "the box asks where slirp4netns is")
			add("hear-neighbour", "filter", "-A INPUT -p ipv6-icmp --icmpv6-type neighbour-advertisement -j ACCEPT", "slirp4netns answers")
		}
		// A redirected packet still carries the device it was meant for.
		for _, p := range []string{"udp", "tcp"} {
			add("asked-"+p, "filter", fmt.Sprintf("-A OUTPUT -d %s -p %s --dport %d -j ACCEPT", loopback, p, gatePort),
				"lookups on their way to the gate")
		}
		for _, p := range []string{"udp", "tcp"} {
			add("resolver-"+p, "filter", fmt.Sprintf("-A OUTPUT -d %s -p %s --dport %d -m mark --mark %#x -j ACCEPT", dns, p, gatePort, mark),
				"the gate's own queries")
		}
		add("to-port", "filter", "-A OUTPUT -j "+chainPort, "hosts listed with a port")
		for _, p := range []string{"udp", "tcp"} {
			with := adm
			if p == "tcp" {
				with = "tcp-reset"
			}
			add("port53-"+p, "filter", fmt.Sprintf("-A OUTPUT -p %s --dport %d -j REJECT --reject-with %s", p, gatePort, with),
				"port 53 is a way out for data: only an entry that names the port opens it")
		}
		add("to-host", "filter", "-A OUTPUT -j "+chainAny, "hosts listed without a port")
	}
	add("refuse-tcp", "filter", "-A OUTPUT -p tcp -j REJECT --reject-with tcp-reset", "refused at once, not after a timeout")
	add("refuse-udp", "filter", "-A OUTPUT -p udp -j REJECT --reject-with "+adm, "refused at once, and said so")
	return rules
}

// key is one opened address: with a port and its protocol, or without.
type key struct {
	addr  netip.Addr
	port  uint16
	proto string // "" when port is 0
}

// keys are the rules that one address with one port (0: any) takes.
func keys(a netip.Addr, port uint16) []key {
	if port == 0 {
		return []key{{addr: a}}
	}
	return []key{{a, port, "tcp"}, {a, port, "udp"}}
}

// fixed are the rules of the entries that are addresses.
func (c Config) fixed() []key {
	var all []key
	for _, h := range c.Hosts {
		if h.Addr.IsValid() {
			all = append(all, keys(h.Addr.Unmap(), h.Port)...)
		}
	}
	return all
}

func (k key) family() int {
	if k.addr.Is4() {
		return 4
	}
	return 6
}

func (k key) suffix() string {
	if k.proto == "" {
		return ""
	}
	return "/" + k.proto
}

// spec is the rule without its -A or -D.
func (k key) spec() string {
	if k.port == 0 {
		return fmt.Sprintf("%s -d %s -j ACCEPT", chainAny, k.addr)
	}
	return fmt.Sprintf("%s -d %s -p %s --dport %d -j ACCEPT", chainPort, k.addr, k.proto, k.port)
}

// batch is how many rules one transaction holds. An ordinary user's netlink
// message must fit its socket's send buffer: 1,000 rules do not.
const batch = 250

// restoreText is what iptables-restore reads for one family: first all tables at
// once, then, to be added with --noflush, what no one transaction holds. A program
// that fails at the second table has left no half of the filter behind, which the
// next one's would be added to: the first tables' rules harm nobody twice.
func restoreText(rules []Rule, f int) (first, rest string) {
	var whole, more strings.Builder
	for _, table := range []string{"nat", "mangle", "filter"} {
		var lines []string
		for _, r := range rules {
			if r.Family == f && r.Table == table {
				lines = append(lines, r.Spec)
			}
		}
		n := min(batch, len(lines))
		writeTable(&whole, table, lines[:n])
		writeTable(&more, table, lines[n:])
	}
	return whole.String(), more.String()
}

// changeText is what iptables-restore --noflush reads to open or close
// addresses ("-A" or "-D").
func changeText(op string, ks []key) string {
	var b strings.Builder
	lines := make([]string, len(ks))
	for i, k := range ks {
		lines[i] = op + " " + k.spec()
	}
	writeTable(&b, "filter", lines)
	return b.String()
}

func writeTable(b *strings.Builder, table string, lines []string) {
	for len(lines) > 0 {
		n := min(batch, len(lines))
		b.WriteString("*" + table + "\n")
		for _, l := range lines[:n] {
			b.WriteString(l + "\n")
		}
		b.WriteString("COMMIT\n")
		lines = lines[n:]
	}
}
