package lab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The two ends of the link between the machine and the internet.
const (
	outerLink = "up0"
	innerLink = "net0"
)

var (
	machineAddrs = []string{"203.0.113.2/24", "2001:db8:77::2/64"}
	gateway      = netip.MustParseAddr("203.0.113.1")
	gateway6     = netip.MustParseAddr("2001:db8:77::1")
	resolvers    = mustAddrs("203.0.113.53", "203.0.113.54", "2001:db8:77::54")
	hosts        = mustAddrs("203.0.113.10", "203.0.113.11", "203.0.113.20", "203.0.113.30", "203.0.113.40",
		"2001:db8:77::10", "2001:db8:77::20")
)

// markerPort is where the lab's own markers go: a packet to it tells the
// captures that everything sent before has been seen.
const markerPort = 65000

func mustAddrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

// network makes the internet, joins the machine to it, and starts the servers
// and the captures.
func (m *machine) network() error {
	if err := up("lo"); err != nil {
		return err
	}
	internet, err := newNamespace()
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = outerLink
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: innerLink, PeerNamespace: netlink.NsFd(internet.Fd())}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make the veth pair: %w", err)
	}
	inside := []string{gateway.String() + "/24", gateway6.String() + "/64"}
	for _, a := range append(append([]netip.Addr(nil), hosts...), resolvers...) {
		inside = append(inside, netip.PrefixFrom(a, a.BitLen()).String())
	}
	if err := inNamespace(int(internet.Fd()), func() error {
		if err := up("lo"); err != nil {
			return err
		}
		if err := address(innerLink, inside); err != nil {
			return err
		}
		if err := up(innerLink); err != nil {
			return err
		}
		// Nobody reads what comes here, but nothing refuses it either.
		if m.marks, err = net.ListenUDP("udp", &net.UDPAddr{IP: gateway.AsSlice(), Port: markerPort}); err != nil {
			return err
		}
		return m.servers.internet(hosts, resolvers)
	}); err != nil {
		return fmt.Errorf("the internet: %w", err)
	}
	if err := address(outerLink, machineAddrs); err != nil {
		return err
	}
	if err := up(outerLink); err != nil {
		return err
	}
	for _, gw := range []netip.Addr{gateway, gateway6} {
		if err := netlink.RouteAdd(&netlink.Route{Gw: gw.AsSlice(), LinkIndex: index(outerLink)}); err != nil {
			return fmt.Errorf("route by %s: %w", gw, err)
		}
	}
	if err := m.servers.machine(mustAddrs("127.0.0.1", "203.0.113.2", "::1", "2001:db8:77::2")); err != nil {
		return fmt.Errorf("the machine's services: %w", err)
	}
	m.watch, err = newWatch(internet)
	return err
}

// newNamespace makes a network namespace and returns the file that stands for it.
func newNamespace() (*os.File, error) {
	type made struct {
		f   *os.File
		err error
	}
	c := make(chan made, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- made{nil, os.NewSyscallError("unshare CLONE_NEWNET", err)}
			return
		}
		f, err := os.Open("/proc/thread-self/ns/net")
		c <- made{f, err}
	}()
	got := <-c
	return got.f, got.err
}

func index(name string) int {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return -1
	}
	return link.Attrs().Index
}

func up(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// address gives a link its addresses, for use at once: nobody else is there to
// have the same.
func address(name string, addrs []string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, s := range addrs {
		a, err := netlink.ParseAddr(s)
		if err != nil {
			return err
		}
		a.Flags |= unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, a); err != nil {
			return fmt.Errorf("address %s of %s: %w", s, name, err)
		}
	}
	return nil
}
