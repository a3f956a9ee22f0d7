package hostfilter

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// said is a resolver that answers everything, and remembers what it was asked.
type said struct{ names []string }

func (s *said) ask(_ context.Context, name string, qtype uint16) (answer, error) {
	s.names = append(s.names, name)
	text := name + " 30 A 203.0.113.10"
	if qtype == dns.TypeAAAA {
		text = name + " 30 AAAA 2001:db8:77::10"
	}
	rr, err := dns.NewRR(text)
	return answer{addrs: []dns.RR{rr}, ttl: 30 * time.Second}, err
}

// opens remembers what was opened.
type opens struct{ addrs []netip.Addr }

func (o *opens) open(addrs []netip.Addr, _ []uint16, _ time.Duration) error {
	o.addrs = append(o.addrs, addrs...)
	return nil
}

// Whatever packet a command sends to the gate, the resolver is asked for listed
// names alone, an answer holds no address that was not opened, and it can be
// sent.
func FuzzQuery(f *testing.F) {
	add := func(m *dns.Msg) {
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire)
	}
	for _, name := range []string{"Allowed.test", "x.wild.test", "wild.test", "secret.attacker.test", proofName, "a\\.allowed.test"} {
		for _, t := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeANY, dns.TypeAXFR, dns.TypeHTTPS, dns.TypePTR} {
			m := query(name, t)
			add(m)
			m.SetEdns0(4096, true)
			add(m)
		}
	}
	m := query("allowed.test", dns.TypeA)
	m.Question = append(m.Question, m.Question[0])
	add(m)
	m = query("allowed.test", dns.TypeA)
	m.Question[0].Qclass = dns.ClassCHAOS
	add(m)
	m = query("allowed.test", dns.TypeA)
	m.Opcode = dns.OpcodeUpdate
	add(m)
	f.Add([]byte{})
	f.Add([]byte("\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01")) // a name that points to itself

	list := hosts(f, "allowed.test", "*.wild.test:443")
	f.Fuzz(func(t *testing.T, wire []byte) {
		q := new(dns.Msg)
		if q.Unpack(wire) != nil {
			return // the server library answers that, or nothing does
		}
		up, open := &said{}, &opens{}
		n := newNames(Config{Hosts: list, IPv6: true}, nil, up, open, func(name, reason string) {
			if strings.ContainsAny(quote(name)+quote(reason), "\x1b\n\r") {
				t.Errorf("a refusal drives the terminal: %q %q", name, reason)
			}
		})
		m := n.reply(q)
		for _, name := range up.names {
			if name != "allowed.test" && !strings.HasSuffix(name, ".wild.test") {
				t.Errorf("the resolver was asked for %q", name)
			}
		}
		for _, rr := range m.Answer {
			switch rr.(type) {
			case *dns.A, *dns.AAAA:
				if !slices.Contains(open.addrs, address(rr)) {
					t.Errorf("%v is not open", rr)
				}
			}
		}
		m.Compress = true
		m.Truncate(dns.MinMsgSize)
		if out, err := m.Pack(); err != nil || len(out) > dns.MinMsgSize {
			t.Errorf("an answer of %d bytes: %v", len(out), err)
		}
	})
}

// Whatever /etc/resolv.conf holds, a name server comes out of it that can be
// asked, or a reason why none can.
func FuzzResolvers(f *testing.F) {
	for _, s := range []string{"nameserver 203.0.113.53\n", "nameserver ::1\n", "nameserver fe80::1%eth0\nnameserver 1.2.3.4 x", "nameserver\n# nameserver 1.1.1.1\n", "nameserver 0x7f.1\n", "search a\tb\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, six := range []bool{false, true} {
			r := parseResolvers(text)
			if a, err := r.reach(six); (err == nil) != (a == DNS || a == DNS6) {
				t.Errorf("%q: %v, %v", text, a, err)
			}
			if r.V4.IsValid() && !r.V4.Is4() || r.V6.IsValid() && (!r.V6.Is6() || r.V6.Zone() != "") {
				t.Errorf("%q: %v", text, r)
			}
		}
	})
}
