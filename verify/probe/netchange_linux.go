package probe

import (
	"context"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
)

// networkAttacks change a box's network from inside. Each asks for what does no
// harm to a box in which it succeeds.
func networkAttacks() map[string]attack {
	return map[string]attack{
		"net-route": onLink(func(l netlink.Link) error {
			return netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: network("198.51.100.0/24")})
		}),
		"net-address": onLink(func(l netlink.Link) error {
			return netlink.AddrReplace(l, &netlink.Addr{IPNet: network("198.51.100.1/32")})
		}),
		"net-device": onLink(func(l netlink.Link) error { return netlink.LinkSetMTU(l, l.Attrs().MTU) }),
		"net-neighbour": onLink(func(l netlink.Link) error {
			return netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: net.IPv4(10, 0, 2, 99), HardwareAddr: wayOut[:]})
		}),
		"net-rule": onLink(func(netlink.Link) error {
			r := netlink.NewRule()
			r.Family, r.Table, r.Priority = netlink.FAMILY_V4, 254, 40000
			return netlink.RuleAdd(r)
		}),
		"net-settings": func(context.Context, string) error {
			return anyOpens("/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ping_group_range",
				"/proc/sys/net/ipv4/conf/"+device+"/route_localnet", "/proc/sys/net/ipv4/conf/all/accept_source_route")
		},
	}
}

// onLink looks a box's device up and changes something of it.
func onLink(change func(netlink.Link) error) attack {
	return func(context.Context, string) error {
		if err := boxed(); err != nil {
			return unready(err)
		}
		l, err := netlink.LinkByName(device)
		if err != nil {
			return fmt.Errorf("look for %s: %w", device, err)
		}
		return change(l)
	}
}

// network is a prefix with the address that it was written with.
func network(s string) *net.IPNet {
	ip, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	n.IP = ip
	return n
}
