package hostfilter

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// prove finds out whether the rules that were accepted are also kept. A program
// may install nothing and succeed, a kernel may take rules and ignore them.
func (g *gate) prove() error {
	targets := []netip.Addr{Gateway, Gateway6}
	for i, a := range targets {
		// slirp4netns' own address: a packet that did get out goes no further.
		c, err := net.Dial("udp", netip.AddrPortFrom(a, 9).String())
		if err == nil {
			_, err = c.Write([]byte{0})
			c.Close()
		}
		if err == nil {
			row := []string{RowFilter, RowFilter6}[i]
			return fault(row, mendFilter, "the packet filter was installed and lets everything out")
		}
		if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) &&
			!errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EACCES) {
			return fault(RowFilter, mendFilter, "try the packet filter: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), filterTimes.Resolve)
	defer cancel()
	unmarked := &upstream{server: newUpstream(g.server()).server}
	m, err := unmarked.exchange(ctx, query(proofName, dns.TypeA))
	if err != nil {
		return fault(RowFilter, mendFilter, "lookups do not reach the name gate: %w", err)
	}
	if m.Rcode != dns.RcodeNameError {
		return fault(RowFilter, mendFilter, "lookups do not reach the name gate: something else answers with %s", dns.RcodeToString[m.Rcode])
	}
	return nil
}

// server is where lookups go.
func (g *gate) server() netip.Addr {
	if g.orders.Server.IsValid() {
		return g.orders.Server
	}
	return DNS
}
