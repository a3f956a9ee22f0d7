package hostfilter

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// The most of what one box's lookups may take at a time.
const (
	maxQueries = 64  // under way at the resolver
	maxWaiting = 256 // waiting for one of those places
)

// proofName is a name that the gate itself asks for, see prove. Its top-level
// domain is reserved to not exist (RFC 6761).
const proofName = "gate.kgate.invalid"

// asker asks the resolver; upstream is the one that does it with packets.
type asker interface {
	ask(ctx context.Context, name string, qtype uint16) (answer, error)
}

// opener opens addresses; table is the one that does it with iptables.
type opener interface {
	open(addrs []netip.Addr, ports []uint16, ttl time.Duration) error
}

// names is the name gate: a DNS handler that answers for listed names alone.
type names struct {
	list  *list
	ipv6  bool
	own   []netip.Addr // the host's own addresses
	up    asker
	opens opener
	// refuse reports what was refused, for run -v. It must not block.
	refuse func(name, reason string)

	slots, queue chan struct{}
}

func newNames(c Config, own []netip.Addr, up asker, opens opener, refuse func(name, reason string)) *names {
	return &names{
		list: newList(c.Hosts), ipv6: c.IPv6, own: own, up: up, opens: opens, refuse: refuse,
		slots: make(chan struct{}, maxQueries), queue: make(chan struct{}, maxQueries+maxWaiting),
	}
}

// ServeDNS answers one query.
func (n *names) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	limit := dns.MinMsgSize
	if w.LocalAddr().Network() == "tcp" {
		limit = dns.MaxMsgSize
	} else if o := q.IsEdns0(); o != nil {
		limit = min(1232, max(limit, int(o.UDPSize())))
	}
	m := n.reply(q)
	m.Compress = true
	m.Truncate(limit)
	w.WriteMsg(m)
}

// reply makes the answer to one query. When it holds addresses, they are open.
func (n *names) reply(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	m.RecursionAvailable = true
	if q.IsEdns0() != nil {
		m.SetEdns0(1232, false)
	}
	if q.Opcode != dns.OpcodeQuery || len(q.Question) != 1 {
		m.Rcode = dns.RcodeNotImplemented
		return m
	}
	question := q.Question[0]
	name := plain(question.Name)
	ports := n.list.ports(question.Name)
	switch {
	case name == proofName:
		return deny(m, dns.RcodeNameError, proofName)
	case len(ports) == 0:
		// Not REFUSED: a C library takes that for a fault of the server, asks
		// again, and calls the failure temporary.
		n.refuse(name, "not on the host list")
		return deny(m, dns.RcodeNameError, "not on the host list")
	case question.Qclass != dns.ClassINET:
		n.refuse(name, "a query of class "+dns.ClassToString[question.Qclass])
		return deny(m, dns.RcodeRefused, "only class IN is asked for")
	}
	switch t := question.Qtype; t {
	case dns.TypeA:
		return n.addresses(m, question.Name, t, ports)
	case dns.TypeAAAA:
		if n.ipv6 {
			return n.addresses(m, question.Name, t, ports)
		}
	case dns.TypeANY, dns.TypeAXFR, dns.TypeIXFR, dns.TypeMAILA, dns.TypeMAILB:
		n.refuse(name, "a query of type "+dns.TypeToString[t])
		return deny(m, dns.RcodeRefused, "only addresses are asked for")
	}
	// Every other type says "no such record": HTTPS and SVCB carry addresses
	// that would go round the filter's book-keeping, the rest is not needed to
	// reach a host.
	return m
}

// addresses asks the resolver, opens what it says and answers with that.
func (n *names) addresses(m *dns.Msg, asked string, qtype uint16, ports []uint16) *dns.Msg {
	name := plain(asked)
	ctx, cancel := context.WithTimeout(context.Background(), filterTimes.Resolve)
	defer cancel()
	select {
	case n.queue <- struct{}{}:
		defer func() { <-n.queue }()
	default:
		n.refuse(name, "too many lookups at once")
		return deny(m, dns.RcodeServerFailure, "too many lookups at once")
	}
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return deny(m, dns.RcodeServerFailure, "too many lookups at once")
	}
	a, err := n.up.ask(ctx, name, qtype)
	if err != nil {
		n.refuse(name, err.Error())
		return deny(m, dns.RcodeServerFailure, err.Error())
	}
	addrs, bad := n.sift(&a)
	for _, b := range bad {
		n.refuse(name, b)
	}
	if len(a.addrs) == 0 {
		m.Rcode = a.code
		if len(bad) > 0 {
			return deny(m, dns.RcodeSuccess, strings.Join(bad, "; "))
		}
		return m
	}
	if len(addrs) == 0 {
	} else if err := n.opens.open(addrs, ports, a.ttl); err != nil {
		n.refuse(name, err.Error())
		return deny(m, dns.RcodeServerFailure, err.Error())
	}
	m.Answer = append(append(m.Answer, a.chain...), a.addrs...)
	for _, rr := range m.Answer {
		if plain(rr.Header().Name) == name {
			rr.Header().Name = asked // with the asker's capitals
		}
	}
	return m
}

// sift takes the addresses out of an answer that no answer may have. It returns
// those that are to be opened, and what was wrong with the ones it took out.
func (n *names) sift(a *answer) (addrs []netip.Addr, bad []string) {
	var keep []dns.RR
	for _, rr := range a.addrs {
		addr := address(rr)
		switch what := judge(addr, n.own); {
		case what == "":
			addrs = append(addrs, addr)
		case n.list.addrs[addr.Unmap()]:
			// Open already, on the ports it is listed with and no others.
		default:
			bad = append(bad, fmt.Sprintf("the answer %s is %s", addr, what))
			continue
		}
		keep = append(keep, rr)
	}
	a.addrs = keep
	return addrs, bad
}

// deny answers without records and says why, to those who ask for reasons
// (RFC 8914).
func deny(m *dns.Msg, code int, why string) *dns.Msg {
	m.Rcode = code
	if o := m.IsEdns0(); o != nil {
		o.Option = append(o.Option, &dns.EDNS0_EDE{InfoCode: dns.ExtendedErrorCodeFiltered, ExtraText: "kgate: " + why})
	}
	return m
}
