package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
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

// portOf has the gate ask its resolver, sees in the box's own table of sockets from
// which port, and uses that port when the gate has done with it.
func portOf(name, other string) error {
	question := func(name string) []byte {
		wire, _ := query(name, dns.TypeA).Pack()
		return wire
	}
	to := netip.AddrPortFrom(DNS, gatePort)
	c, err := net.Dial("udp", to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write(question(name)); err != nil {
		return err
	}
	var port uint64
	for end := time.Now().Add(time.Second); port == 0 && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		table, err := os.ReadFile("/proc/net/udp")
		if err != nil {
			return err
		}
		own := fmt.Sprintf(":%04X ", c.LocalAddr().(*net.UDPAddr).Port)
		for line := range strings.Lines(string(table)) {
			if f := strings.Fields(line); strings.HasSuffix(f[2], ":0035") && !strings.Contains(line, own) {
				_, hex, _ := strings.Cut(f[1], ":")
				port, _ = strconv.ParseUint(hex, 16, 16)
			}
		}
	}
	if port == 0 {
		return errors.New("the gate's socket was not seen")
	}
	c.SetReadDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Read(make([]byte, 512)); err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	return sendAs(controlled(func(int) error { return nil }), netip.AddrPortFrom(Guest, uint16(port)), to, string(question(other)))
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
