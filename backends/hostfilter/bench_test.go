package hostfilter

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// known answers each name at once.
type known struct{ records []dns.RR }

func (k known) ask(context.Context, string, uint16) (answer, error) {
	return answer{addrs: k.records, ttl: time.Minute}, nil
}

// ready opens nothing and has no time to lose.
type ready struct{}

func (ready) open([]netip.Addr, []uint16, time.Duration) error { return nil }

// What the gate itself takes to answer for a listed name and to refuse another.
func BenchmarkGate(b *testing.B) {
	record, err := dns.NewRR("h0.example.org. 60 A 203.0.113.10")
	if err != nil {
		b.Fatal(err)
	}
	for _, count := range []int{1, 1000} {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf("h%d.example.org", i))
		}
		n := newNames(Config{Hosts: hosts(b, all...)}, nil, known{[]dns.RR{record}}, ready{}, func(string, string) {})
		for what, name := range map[string]string{"listed": "h0.example.org.", "other": "attacker.example."} {
			q := new(dns.Msg)
			q.SetQuestion(name, dns.TypeA)
			b.Run(fmt.Sprintf("%s-of-%d", what, count), func(b *testing.B) {
				for b.Loop() {
					if m := n.reply(q); (m.Rcode == dns.RcodeSuccess) != (what == "listed") {
						b.Fatal(m)
					}
				}
			})
		}
	}
}
