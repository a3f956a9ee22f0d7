package hostfilter

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
)

// Resolver is the name server of the host that the box's lookups end at.
// slirp4netns forwards to the first one of each address family in the host's
// /etc/resolv.conf and never tries a second.
type Resolver struct {
	V4, V6 netip.Addr // the first name server of each family; zero: none
}

// HostResolver reads the host's /etc/resolv.conf.
func HostResolver() (Resolver, error) {
	const name = "/etc/resolv.conf"
	data, err := os.ReadFile(name)
	if err != nil {
		return Resolver{}, fmt.Errorf("read the host's name servers: %w", err)
	}
	return parseResolvers(string(data)), nil
}

// parseResolvers reads resolv.conf(5) as slirp4netns' library does: lines that start with
// "nameserver", one address each, a zone cut off.
func parseResolvers(text string) Resolver {
	var r Resolver
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		host, _, _ := strings.Cut(f[1], "%")
		a, err := netip.ParseAddr(host)
		switch {
		case err != nil:
		case a.Is4() && !r.V4.IsValid():
			r.V4 = a
		case a.Is6() && !r.V6.IsValid():
			r.V6 = a
		}
	}
	return r
}

// reach is the address in the box that leads to the resolver, or why none does.
// An IPv6 loopback address is behind the loopback that the box must not reach,
// and slirp4netns would drop every query in silence
// (rootless-containers/slirp4netns#93).
func (r Resolver) reach(ipv6 bool) (netip.Addr, error) {
	switch {
	case r.V4.IsValid():
		return DNS, nil
	case !r.V6.IsValid():
		return netip.Addr{}, errors.New("/etc/resolv.conf names no name server")
	case r.V6.IsLoopback():
		return netip.Addr{}, fmt.Errorf("the only name server in /etc/resolv.conf is %s, the machine's own IPv6 loopback, which slirp4netns cannot reach with the host's loopback closed", r.V6)
	case !ipv6:
		return netip.Addr{}, fmt.Errorf("the only name server in /etc/resolv.conf is %s, and IPv6 is off", r.V6)
	}
	return DNS6, nil
}
