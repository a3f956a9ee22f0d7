// Package hostfilter lets a box with no network reach the hosts on a list and
// nothing else. Around one network namespace it puts three things: slirp4netns,
// which carries packets without any privilege on the host; a packet filter in
// the namespace, installed with iptables; and a name gate, a DNS forwarder that
// answers for listed names alone and opens their addresses in the filter
// before it hands them out.
//
// The order is what makes it hold. slirp4netns makes its device but does not
// configure it: the gate does that, and only after both output policies are
// DROP, so no moment exists in which the namespace has a usable device and no
// filter. The command is released last. Whatever dies on the way leaves a
// namespace that is closed.
//
// The gate runs in the user namespace that owns the network namespace. The
// command is in that namespace's child, or in it without any capability, and
// can undo nothing.
package hostfilter

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// The addresses in the namespace: slirp4netns' documented defaults
// (slirp4netns(1), section DESCRIPTION).
var (
	Subnet  = netip.MustParsePrefix("10.0.2.0/24")
	Guest   = netip.MustParseAddr("10.0.2.100")
	Gateway = netip.MustParseAddr("10.0.2.2")
	DNS     = netip.MustParseAddr("10.0.2.3")

	Subnet6  = netip.MustParsePrefix("fd00::/64")
	Guest6   = netip.MustParseAddr("fd00::100")
	Gateway6 = netip.MustParseAddr("fd00::2")
	DNS6     = netip.MustParseAddr("fd00::3")
)

// Device is the name of the network device in the namespace.
const Device = "tap0"

// mark is on the gate's own packets. Setting it takes a capability over the
// network namespace, so the command cannot.
const mark = 0x6b67

// gatePort is the gate's port on the namespace's loopback. Ports below 1024
// take a capability over the namespace, so no command can sit there instead.
const gatePort = 53

// times are the durations that a filter keeps to.
type times struct {
	// Grace is how long an address stays open after its TTL has run out: the
	// time between a program's lookup and its connection.
	Grace time.Duration
	// Sweep is how often addresses whose time is over are closed.
	Sweep time.Duration
	// Resolve bounds the lookups of a launch, all of them together, and each
	// lookup of the command.
	Resolve time.Duration
	// Attach bounds the making of the filter: a tool that hangs must not hang
	// the launch.
	Attach time.Duration
}

// The times of every filter. A test hook: the gate gets them with its orders.
var filterTimes = times{Grace: 60 * time.Second, Sweep: 5 * time.Second, Resolve: 5 * time.Second, Attach: 30 * time.Second}

// Config is what one filter is made from.
type Config struct {
	Hosts    []policy.Host
	IPv6     bool
	Resolver Resolver  // see HostResolver
	MTU      int       // of the device, in bytes; 0: policy.DefaultMTU
	Tools    Tools     // see FindTools
	Verbose  io.Writer // a line for each refusal; nil: none
}

func (c Config) mtu() int {
	if c.MTU == 0 {
		return policy.DefaultMTU
	}
	return c.MTU
}

// check returns an error for what no filter can be made from.
func (c Config) check() error {
	if c.mtu() < policy.MinMTU || c.mtu() > policy.MaxMTU {
		return fmt.Errorf("mtu %d: slirp4netns takes %d to %d", c.mtu(), policy.MinMTU, policy.MaxMTU)
	}
	for _, h := range c.Hosts {
		a := h.Addr.Unmap()
		if !a.IsValid() {
			continue
		}
		if Subnet.Contains(a) || Subnet6.Contains(a) {
			return fmt.Errorf("host %s (%s): the addresses in %v and %v are slirp4netns' own in the box, nothing of the machine's is reachable there", a, h.From, Subnet, Subnet6)
		}
		if a.Is6() && !c.IPv6 {
			return fmt.Errorf("host %s (%s): an IPv6 address needs ipv6: true", a, h.From)
		}
		if a.Zone() != "" {
			return fmt.Errorf("host %s (%s): an address with a zone means nothing in the box", a, h.From)
		}
	}
	return nil
}

// label is how messages name an entry of the host list.
func label(h policy.Host) string {
	s := h.Name
	switch {
	case h.Addr.IsValid() && h.Addr.Is6() && h.Port != 0:
		s = "[" + h.Addr.String() + "]"
	case h.Addr.IsValid():
		s = h.Addr.String()
	case h.Wildcard:
		s = "*." + h.Name
	}
	if h.Port != 0 {
		s += fmt.Sprintf(":%d", h.Port)
	}
	return s
}
