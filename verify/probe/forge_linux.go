package probe

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// reuse lets several sockets have one port, and onLoopback keeps a socket's
// packets on the loopback device, wherever they go.
var (
	reuse      = set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	onLoopback = word(unix.SOL_SOCKET, unix.SO_BINDTODEVICE, "lo")
	onDevice   = word(unix.SOL_SOCKET, unix.SO_BINDTODEVICE, device)
)

// free lets a socket have an address that is not the machine's: ip(7).
func free(fd int, s shot) error {
	return either(s, set(unix.IPPROTO_IP, unix.IP_FREEBIND, 1), set(unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1))(fd, s)
}

// either is the first step for a shot of IPv4, and the second for one of IPv6.
func either(s shot, four, six step) step {
	if s.to.Addr().Is4() {
		return four
	}
	return six
}

// forge makes a packet look like an answer: one in the place's name, which goes
// no further than the loopback, is tracked as the first of a connection. With
// before there is one to the place on the loopback device first.
func forge(before bool) sender {
	return func(_ context.Context, s shot) error {
		own, err := s.own()
		if err != nil {
			return err
		}
		if before {
			if err := datagram(s, reuse, onLoopback, from(own)); err != nil {
				return fmt.Errorf("on the loopback: %w", err)
			}
		}
		back := s
		back.to = own
		if err := datagram(back, free, reuse, from(s.to)); err != nil {
			return fmt.Errorf("in the place's name: %w", err)
		}
		return datagram(s, reuse, from(own))
	}
}

func datagram(s shot, steps ...step) error {
	return through(unix.SOCK_DGRAM, 0, steps...)(context.Background(), s)
}

// pivot does so by way of a listed host, in whose name the shot then leaves.
func pivot(_ context.Context, s shot) error {
	listed := s.listed(5000)
	listed.text = []byte("hello")
	if err := datagram(listed, free, reuse, from(s.to)); err != nil {
		return fmt.Errorf("in the place's name: %w", err)
	}
	return datagram(s, free, reuse, from(listed.to))
}

// stranger has the place answer a listed host's datagram. What it sends is an
// answer if the place was spoken to before, be it on the loopback device, and so
// is then what is sent to it. See lab for the port that makes it do so.
func stranger(_ context.Context, s shot) error {
	own, err := s.own()
	if err != nil {
		return err
	}
	if err := datagram(s, reuse, onLoopback, from(own)); err != nil {
		return fmt.Errorf("on the loopback: %w", err)
	}
	knock := s.listed(5001)
	knock.text = []byte("knock")
	return datagram(s, reuse, from(own), func(fd int, _ shot) error { return answered(fd, knock) })
}

// answered sends a shot and waits a moment for whatever comes.
func answered(fd int, s shot) error {
	_, where := sockaddr(s.to)
	if err := unix.Sendto(fd, s.text, 0, where); err != nil {
		return err
	}
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, err := unix.Poll(fds, 300)
	return err
}

// samePort leaves by the port that a listed host has answered at, and that stays
// open.
func samePort(_ context.Context, s shot) error {
	own, err := s.own()
	if err != nil {
		return err
	}
	listed := s.listed(5000)
	listed.text = []byte("hello")
	return datagram(s, reuse, from(own), func(fd int, _ shot) error { return answered(fd, listed) })
}

// sameConnectedPort does it with a connection.
func sameConnectedPort(_ context.Context, s shot) error {
	domain, where := sockaddr(s.listed(9999).to)
	return with(domain, unix.SOCK_STREAM, 0, s, []step{reuse, func(fd int, s shot) error {
		if err := connected(fd, where); err != nil {
			return err
		}
		name, err := unix.Getsockname(fd)
		if err != nil {
			return err
		}
		return with(domain, unix.SOCK_STREAM, 0, s, []step{reuse, func(fd int, _ shot) error { return unix.Bind(fd, name) }, connect})
	}})
}

// reconnect takes a socket from a listed host to the place: connect(2) says that
// AF_UNSPEC ends an association.
func reconnect(kind int, port uint16) sender {
	return func(ctx context.Context, s shot) error {
		return through(kind, 0, func(fd int, s shot) error {
			_, where := sockaddr(s.listed(port).to)
			if err := connected(fd, where); err != nil {
				return err
			}
			none := unix.RawSockaddr{Family: unix.AF_UNSPEC}
			return call(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&none)), unsafe.Sizeof(none))
		}, connect)(ctx, s)
	}
}

// gatePort uses the port of one of the name gate's own questions when it is over: the
// filter knows the gate's packets by a mark, but those of a connection that was let
// out once by the connection. The box's table of sockets names the port.
func gatePort(ctx context.Context, s shot) error {
	return datagram(s, func(fd int, s shot) error {
		slow := s
		slow.text = append(header(0, 1), entry(1, 1, labels("slow", "test"))...)
		_, where := sockaddr(s.to)
		if err := unix.Sendto(fd, slow.text, 0, where); err != nil {
			return err
		}
		port := asking(ctx)
		if port == 0 {
			return errors.New("no socket of the gate's was seen")
		}
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, 2000); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		s.text = plainQuestion("leak-" + s.name)
		return done(datagram(s, from(s.any(port))))
	})
}

// asking waits a second for a socket that is connected to a port 53, and returns
// its own port.
func asking(ctx context.Context) uint16 {
	for end := time.Now().Add(time.Second); ctx.Err() == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		table, _ := os.ReadFile("/proc/net/udp")
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) < 3 || !strings.HasSuffix(f[2], ":0035") {
				continue
			}
			_, port, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(port, 16, 16); err == nil {
				return uint16(n)
			}
		}
	}
	return 0
}

// any is a port of the box's, whatever its address.
func (s shot) any(port uint16) netip.AddrPort {
	if s.to.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), port)
}
