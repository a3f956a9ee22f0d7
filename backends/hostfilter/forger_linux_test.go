package hostfilter

import (
	"context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// onDevice binds a socket to a device, which needs no right over it.
func onDevice(name string) func(string, string, syscall.RawConn) error {
	return controlled(func(fd int) error { return unix.BindToDevice(fd, name) })
}

func controlled(set func(fd int) error) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			if err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err == nil {
				err = set(int(fd))
			}
		}); e != nil {
			return e
		}
		return os.NewSyscallError("setsockopt", err)
	}
}

// sendAs sends a datagram from an address that need not be the box's.
func sendAs(control func(string, string, syscall.RawConn) error, from, to netip.AddrPort, text string) error {
	l := net.ListenConfig{Control: control}
	c, err := l.ListenPacket(context.Background(), "udp", from.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WriteTo([]byte(text), net.UDPAddrFromAddrPort(to))
	return err
}

// familiar sends to the stranger on the loopback, where nobody hears it, and then
// has a listed host make the stranger write.
func familiar(listed, unlisted string) error {
	to := netip.MustParseAddrPort(unlisted)
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	own := netip.AddrPortFrom(Guest, uint16(c.LocalAddr().(*net.UDPAddr).Port))
	c.Close()
	if err := sendAs(onDevice("lo"), own, to, "secret"); err != nil {
		return err
	}
	if err := sendAs(controlled(func(int) error { return nil }), own, netip.MustParseAddrPort(listed), "stranger"); err != nil {
		return err
	}
	time.Sleep(300 * time.Millisecond)
	return sendAs(controlled(func(int) error { return nil }), own, to, "secret")
}

// forged sends to one address in another's name, which may make what is sent the
// other way look like an answer.
func forged(own, to netip.AddrPort) error {
	free := controlled(func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1) })
	if err := sendAs(free, to, own, "hello"); err != nil {
		return err
	}
	return sendAs(free, own, to, "secret")
}
