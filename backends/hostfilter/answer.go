package hostfilter

import (
	"errors"
	"net/netip"
	"time"

	"github.com/miekg/dns"
)

var errSilent = errors.New("the resolver does not answer")

// depth is how many CNAME records a chain may have.
const depth = 12

// answer is what the resolver said about one name and type.
type answer struct {
	chain []dns.RR      // the CNAME records from the name on, in order
	addrs []dns.RR      // the A or AAAA records at the chain's end
	last  string        // the chain's end
	ttl   time.Duration // the least TTL of all of them
	code  int
}

// read follows the chain from name through a reply's answer section. Records
// that are not on it are not taken.
func read(m *dns.Msg, name string, qtype uint16) answer {
	a := answer{last: plain(name), code: m.Rcode}
	least := uint32(1<<31 - 1)
	for len(a.chain) <= depth {
		next := ""
		for _, rr := range m.Answer {
			if c, ok := rr.(*dns.CNAME); ok && plain(c.Hdr.Name) == a.last && c.Hdr.Class == dns.ClassINET {
				next = plain(c.Target)
				least = min(least, c.Hdr.Ttl)
				a.chain = append(a.chain, c)
				break
			}
		}
		if next == "" {
			break
		}
		a.last = next
	}
	for _, rr := range m.Answer {
		h := rr.Header()
		if h.Rrtype == qtype && h.Class == dns.ClassINET && plain(h.Name) == a.last && address(rr).IsValid() {
			least = min(least, h.Ttl)
			a.addrs = append(a.addrs, rr)
		}
	}
	a.ttl = time.Duration(least) * time.Second
	return a
}

// address is the address of an A or AAAA record; invalid for any other.
func address(rr dns.RR) netip.Addr {
	switch rr := rr.(type) {
	case *dns.A:
		a, _ := netip.AddrFromSlice(rr.A.To4())
		return a
	case *dns.AAAA:
		a, _ := netip.AddrFromSlice(rr.AAAA.To16())
		return a
	}
	return netip.Addr{}
}

// matches says whether m is the reply to q: the resolver's words about
// anything else are not heard.
func matches(m, q *dns.Msg) bool {
	return m.Response && m.Id == q.Id && m.Opcode == dns.OpcodeQuery && len(m.Question) == 1 &&
		plain(m.Question[0].Name) == plain(q.Question[0].Name) &&
		m.Question[0].Qtype == q.Question[0].Qtype && m.Question[0].Qclass == q.Question[0].Qclass
}

// query is a question for the resolver. Nothing of the command's own question
// goes into it but the name and the type.
func query(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(dns.Fqdn(name), qtype)
	m.SetEdns0(1232, false)
	return m
}

// result says in words what became of a name that has no address.
func (a answer) result(qtype uint16) string {
	switch {
	case a.code == dns.RcodeNameError:
		return "does not exist (NXDOMAIN)"
	case a.code != dns.RcodeSuccess:
		return "does not resolve: the resolver says " + dns.RcodeToString[a.code]
	case qtype == dns.TypeA:
		return "has no IPv4 address"
	}
	return "has no IPv6 address"
}
