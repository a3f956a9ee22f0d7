package probe

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

func withPort(a netip.AddrPort, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr(), port)
}

// ping is an echo request (RFC 792, RFC 4443) with text in it.
func ping(kind int) sender {
	return func(ctx context.Context, s shot) error {
		proto, what := unix.IPPROTO_ICMP, byte(8)
		if !s.to.Addr().Is4() {
			proto, what = unix.IPPROTO_ICMPV6, 128
		}
		s.text = append([]byte{what, 0, 0, 0, 0, 0, 0, 0}, s.text...)
		binary.BigEndian.PutUint16(s.text[2:], checksum(s.text)) // over IPv6 the kernel makes it
		return through(kind, proto, portless)(ctx, s)
	}
}

// checksum is the Internet's (RFC 1071).
func checksum(text []byte) uint16 {
	var sum uint32
	for i, b := range text {
		sum += uint32(b) << (8 * (1 - i%2))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// part is one fragment: where it begins, in units of eight bytes, and whether
// more are to come.
type part struct {
	at   int
	more bool
	text []byte
}

// datagramOf is a UDP datagram without a checksum.
func datagramOf(s shot) []byte {
	head := binary.BigEndian.AppendUint16(nil, 5000)
	head = binary.BigEndian.AppendUint16(head, s.to.Port())
	head = binary.BigEndian.AppendUint16(head, uint16(8+len(s.text)))
	return append(append(head, 0, 0), s.text...)
}

func whole(s shot) []part { return []part{{0, false, datagramOf(s)}} }

// tiny has the first eight bytes alone, and so the port, in the first fragment.
func tiny(s shot) []part {
	all := datagramOf(s)
	return []part{{0, true, all[:8]}, {1, false, all[8:]}}
}

// overlapping begins with what seems to be for port 53 and writes the true port
// over it.
func overlapping(s shot) []part {
	all := datagramOf(s)
	other := append([]byte(nil), all[:16]...)
	other[3] = 53
	return []part{{0, true, other}, {0, true, all[:8]}, {1, false, all[8:]}}
}

// rawPackets sends IPv4 packets whose every byte is the sender's own: raw(7).
func rawPackets(cut func(shot) []part) sender {
	return func(ctx context.Context, s shot) error {
		own, err := s.own()
		if err != nil {
			return err
		}
		return through(unix.SOCK_RAW, unix.IPPROTO_RAW, func(fd int, s shot) error {
			_, where := sockaddr(withPort(s.to, 0))
			for _, p := range cut(s) {
				if err := unix.Sendto(fd, packetOf(own.Addr(), s.to.Addr(), p), 0, where); err != nil {
					return err
				}
			}
			return errSent
		})(ctx, s)
	}
}

// packetOf is an IPv4 packet (RFC 791).
func packetOf(from, to netip.Addr, p part) []byte {
	head := make([]byte, 20)
	head[0], head[8], head[9] = 0x45, 64, unix.IPPROTO_UDP
	binary.BigEndian.PutUint16(head[2:], uint16(20+len(p.text)))
	binary.BigEndian.PutUint16(head[4:], 0x6b67) // of all parts
	flags := uint16(p.at)
	if p.more {
		flags |= 0x2000
	}
	binary.BigEndian.PutUint16(head[6:], flags)
	copy(head[12:], from.AsSlice())
	copy(head[16:], to.AsSlice())
	binary.BigEndian.PutUint16(head[10:], checksum(head))
	return append(head, p.text...)
}

// wayOut is the hardware address of slirp4netns at 10.0.2.2, as its ARP answers
// give it.
var wayOut = [6]byte{0x52, 0x55, 10, 0, 2, 2}

// packetSocket puts an IPv4 packet on the device, past all filters of packets.
func packetSocket(kind int) sender {
	return func(_ context.Context, s shot) error {
		own, err := s.own()
		if err != nil {
			return err
		}
		frame := packetOf(own.Addr(), s.to.Addr(), whole(s)[0])
		if kind == unix.SOCK_RAW {
			frame = append(append(append(wayOut[:], hardware()...), 8, 0), frame...)
		}
		return putOnDevice(kind, unix.ETH_P_IP, frame, s)
	}
}

// gratuitous says on the link that an address of the box's network is the box's,
// with text behind.
func gratuitous(_ context.Context, s shot) error {
	frame := append(append([]byte{255, 255, 255, 255, 255, 255}, hardware()...), 8, 6, 0, 1, 8, 0, 6, 4, 0, 2)
	frame = append(append(frame, hardware()...), s.to.Addr().AsSlice()...)
	frame = append(append(frame, wayOut[:]...), 10, 0, 2, 2)
	return putOnDevice(unix.SOCK_RAW, unix.ETH_P_ARP, append(frame, s.text...), s)
}

// hardware is the device's own address.
func hardware() []byte {
	i, err := net.InterfaceByName(device)
	if err != nil || len(i.HardwareAddr) != 6 {
		return make([]byte, 6)
	}
	return i.HardwareAddr
}

func putOnDevice(kind int, proto uint16, frame []byte, s shot) error {
	proto = proto<<8 | proto>>8 // in the network's order
	return with(unix.AF_PACKET, kind, int(proto), s, []step{func(fd int, _ shot) error {
		where := &unix.SockaddrLinklayer{Protocol: proto, Ifindex: deviceNumber(device), Halen: 6}
		copy(where.Addr[:], wayOut[:])
		return done(unix.Sendto(fd, frame, 0, where))
	}})
}
