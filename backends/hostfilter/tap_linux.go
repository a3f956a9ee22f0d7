package hostfilter

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
)

// configure gives the device its addresses and routes and sets it up. Nothing
// can leave the namespace before this.
func configure(mtu int, ipv6 bool) error {
	link, err := netlink.LinkByName(Device)
	if err != nil {
		return fmt.Errorf("find %s: %w", Device, err)
	}
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return fmt.Errorf("set the mtu of %s to %d: %w", Device, mtu, err)
	}
	if err := addAddress(link, netip.PrefixFrom(Guest, Subnet.Bits()), 0); err != nil {
		return err
	}
	if ipv6 {
		// A fixed address: waiting for slirp4netns' advertisement takes seconds.
		if err := sysctl("net/ipv6/conf/"+Device+"/accept_ra", "0"); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", Device, err)
	}
	if err := addRoute(link, Gateway); err != nil {
		return err
	}
	if !ipv6 {
		return nil
	}
	const noDAD = 0x02 // IFA_F_NODAD: nobody else is on this link
	if err := addAddress(link, netip.PrefixFrom(Guest6, Subnet6.Bits()), noDAD); err != nil {
		return err
	}
	return addRoute(link, Gateway6)
}

func addAddress(link netlink.Link, p netip.Prefix, flags int) error {
	a := &netlink.Addr{
		IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())},
		Flags: flags,
	}
	if err := netlink.AddrAdd(link, a); err != nil {
		return fmt.Errorf("give %s the address %v: %w", Device, p, err)
	}
	return nil
}

func addRoute(link netlink.Link, via netip.Addr) error {
	all := &net.IPNet{IP: make(net.IP, via.BitLen()/8), Mask: net.CIDRMask(0, via.BitLen())}
	r := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: all, Gw: via.AsSlice()}
	if err := netlink.RouteAdd(r); err != nil {
		return fmt.Errorf("route through %v: %w", via, err)
	}
	return nil
}

// sysctl writes one of the network namespace's settings and reads it back.
func sysctl(name, value string) error {
	path := "/proc/sys/" + name
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("set %s: %w", name, err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read %s back: %w", name, err)
	}
	if strings.TrimSpace(string(got)) != value {
		return fmt.Errorf("%s is %q after %q was written", name, strings.TrimSpace(string(got)), value)
	}
	return nil
}

// withoutIPv6 turns IPv6 off for a device that does not exist yet or is not up.
// It is what a host without ip6tables gets.
func withoutIPv6(device string) error {
	if _, err := os.Stat("/proc/sys/net/ipv6"); os.IsNotExist(err) {
		return nil // a kernel without IPv6
	}
	return sysctl("net/ipv6/conf/"+device+"/disable_ipv6", "1")
}
