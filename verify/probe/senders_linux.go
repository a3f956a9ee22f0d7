package probe

import (
	"context"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Numbers that the system's package does not have: of protocols and families
// (IANA "Protocol Numbers", the kernel's include/linux/socket.h), and of options
// (include/uapi/linux).
const (
	protoUDPLite, protoDCCP, protoMPTCP, protoGRE = 136, 33, 262, 47
	kindDCCP, familySMC                           = 6, 43
	tcpRepair, udpSegment                         = 19, 103
	ipUnicastIf, ipv6UnicastIf                    = 50, 76
	ipv6MTU                                       = 24
)

// filterMark is on the filter's own queries, as its source says.
const filterMark = 0x6b67

// senders are the ways to send something, by their names.
func senders() map[string]sender {
	return map[string]sender{
		"udp":          through(unix.SOCK_DGRAM, 0),
		"tcp":          through(unix.SOCK_STREAM, 0, connect),
		"udplite":      through(unix.SOCK_DGRAM, protoUDPLite),
		"dccp":         through(kindDCCP, protoDCCP, set(unix.SOL_DCCP, 2, 0x6c65616b), connect), // DCCP_SOCKOPT_SERVICE
		"sctp":         through(unix.SOCK_STREAM, unix.IPPROTO_SCTP, connect),
		"sctp-packets": through(unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP),
		"mptcp":        through(unix.SOCK_STREAM, protoMPTCP, connect),
		"smc": func(_ context.Context, s shot) error {
			return with(familySMC, unix.SOCK_STREAM, 0, s, []step{connect})
		},

		"large":        through(unix.SOCK_DGRAM, 0, padded(65500)),
		"cut":          through(unix.SOCK_DGRAM, 0, set(unix.IPPROTO_IPV6, ipv6MTU, 1280), padded(3000)),
		"segments":     through(unix.SOCK_DGRAM, 0, set(unix.IPPROTO_UDP, udpSegment, 20), padded(60)),
		"corked":       through(unix.SOCK_DGRAM, 0, corked),
		"fast":         through(unix.SOCK_STREAM, 0, flagged(unix.MSG_FASTOPEN)),
		"fast-connect": through(unix.SOCK_STREAM, 0, set(unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1), connect),
		"broadcast":    through(unix.SOCK_DGRAM, 0, set(unix.SOL_SOCKET, unix.SO_BROADCAST, 1)),
		"short-lived":  through(unix.SOCK_DGRAM, 0, set(unix.IPPROTO_IP, unix.IP_TTL, 2)),

		"device":          through(unix.SOCK_DGRAM, 0, onDevice),
		"device-tcp":      through(unix.SOCK_STREAM, 0, onDevice, connect),
		"device-loopback": through(unix.SOCK_DGRAM, 0, onLoopback),
		"preferred": through(unix.SOCK_DGRAM, 0, func(fd int, s shot) error {
			index := int(binary.NativeEndian.Uint32(binary.BigEndian.AppendUint32(nil, uint32(deviceNumber(device)))))
			return either(s, set(unix.IPPROTO_IP, ipUnicastIf, index), set(unix.IPPROTO_IPV6, ipv6UnicastIf, index))(fd, s)
		}),
		"info":          through(unix.SOCK_DGRAM, 0, info(device)),
		"info-loopback": through(unix.SOCK_DGRAM, 0, info("lo")),
		"free":          through(unix.SOCK_DGRAM, 0, free, func(fd int, s shot) error { return from(s.listed(0).to)(fd, s) }),
		"transparent": through(unix.SOCK_DGRAM, 0, func(fd int, s shot) error {
			return either(s, set(unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1), set(unix.IPPROTO_IPV6, unix.IPV6_TRANSPARENT, 1))(fd, s)
		}, func(fd int, s shot) error { return from(s.listed(0).to)(fd, s) }),
		"mark":    through(unix.SOCK_DGRAM, 0, set(unix.SOL_SOCKET, unix.SO_MARK, filterMark)),
		"from-53": through(unix.SOCK_DGRAM, 0, func(fd int, s shot) error { return from(s.any(53))(fd, s) }),
		"repair":  through(unix.SOCK_STREAM, 0, repair),

		"loose":         sourceRoute(131, false),
		"loose-first":   sourceRoute(131, true),
		"strict":        sourceRoute(137, false),
		"strict-first":  sourceRoute(137, true),
		"routing":       routingHeader(false),
		"routing-first": routingHeader(true),

		"reconnect":     reconnect(unix.SOCK_DGRAM, 5000),
		"reconnect-tcp": reconnect(unix.SOCK_STREAM, 9999),
		"same-port":     samePort,
		"same-port-tcp": sameConnectedPort,
		"forge":         forge(false),
		"forge-both":    forge(true),
		"pivot":         pivot,
		"stranger":      stranger,
		"gate-port":     gatePort,

		"ping":     ping(unix.SOCK_DGRAM),
		"raw-ping": ping(unix.SOCK_RAW),
		"raw":      rawPackets(whole),
		"tiny":     rawPackets(tiny),
		"overlap":  rawPackets(overlapping),
		"gre":      through(unix.SOCK_RAW, protoGRE, portless),
		"packet":   packetSocket(unix.SOCK_DGRAM),
		"ethernet": packetSocket(unix.SOCK_RAW),
		"arp":      gratuitous,

		"ask":          lookup(unix.SOCK_DGRAM, plainQuestion),
		"ask-tcp":      lookup(unix.SOCK_STREAM, plainQuestion),
		"ask-txt":      lookup(unix.SOCK_DGRAM, typed(16, 1)),
		"ask-any":      lookup(unix.SOCK_DGRAM, typed(255, 1)),
		"ask-axfr":     lookup(unix.SOCK_STREAM, typed(252, 1)),
		"ask-null":     lookup(unix.SOCK_DGRAM, typed(10, 1)),
		"ask-chaos":    lookup(unix.SOCK_DGRAM, typed(1, 3)),
		"ask-below":    lookup(unix.SOCK_DGRAM, named("LEAK", "allowed", "test")),
		"ask-beside":   lookup(unix.SOCK_DGRAM, named("LEAKallowed", "test")),
		"ask-above":    lookup(unix.SOCK_DGRAM, named("allowed", "test", "LEAK", "attacker", "test")),
		"ask-dot":      lookup(unix.SOCK_DGRAM, named("LEAK.wild", "test")),
		"ask-inner":    lookup(unix.SOCK_DGRAM, named("LEAK", "x.wild", "test")),
		"ask-zero":     lookup(unix.SOCK_DGRAM, named("LEAK", "allowed\x00", "test")),
		"ask-binary":   lookup(unix.SOCK_DGRAM, named("LEAK\x00\xff\x01\\", "attacker", "test")),
		"ask-case":     lookup(unix.SOCK_DGRAM, named("aLlOwEd", "TeSt")),
		"ask-long":     lookup(unix.SOCK_DGRAM, longName),
		"ask-pointer":  lookup(unix.SOCK_DGRAM, pointed),
		"ask-two":      lookup(unix.SOCK_DGRAM, twoQuestions),
		"ask-extra":    lookup(unix.SOCK_DGRAM, extraRecord),
		"ask-option":   lookup(unix.SOCK_DGRAM, optionRecord),
		"ask-trailing": lookup(unix.SOCK_DGRAM, trailing),
		"ask-update":   lookup(unix.SOCK_DGRAM, headed(0x28)),
		"ask-notify":   lookup(unix.SOCK_DGRAM, headed(0x20)),
		"ask-answer":   lookup(unix.SOCK_DGRAM, headed(0x80)),
		"garbage":      flood(malformed),
		"lookups":      flood(manyNames),
		"idle":         idle,
	}
}

// padded makes the shot longer.
func padded(size int) step {
	return func(fd int, s shot) error {
		s.text = append(s.text, make([]byte, size-len(s.text))...)
		return last(fd, s)
	}
}

// corked hands the shot over in two parts, which leave together.
func corked(fd int, s shot) error {
	_, where := sockaddr(s.to)
	if err := unix.Sendto(fd, s.text[:2], unix.MSG_MORE, where); err != nil {
		return err
	}
	s.text = s.text[2:]
	return last(fd, s)
}

// portless is for raw sockets, which take no port: raw(7), ipv6(7).
func portless(fd int, s shot) error {
	s.to = withPort(s.to, 0)
	return last(fd, s)
}

// info says with the shot by which device it is to go, and from which address.
func info(name string) step {
	return func(fd int, s shot) error {
		own, err := s.own()
		if err != nil {
			return err
		}
		var control []byte
		if s.to.Addr().Is4() {
			control = unix.PktInfo4(&unix.Inet4Pktinfo{Ifindex: int32(deviceNumber(name)), Spec_dst: own.Addr().As4()})
		} else {
			control = unix.PktInfo6(&unix.Inet6Pktinfo{Ifindex: uint32(deviceNumber(name)), Addr: own.Addr().As16()})
		}
		_, where := sockaddr(s.to)
		return done(unix.Sendmsg(fd, s.text, control, where, 0))
	}
}

// repair takes a connection to be there without asking anybody: tcp(7) of the
// checkpoint and restore tools.
func repair(fd int, s shot) error {
	if err := set(unix.IPPROTO_TCP, tcpRepair, 1)(fd, s); err != nil {
		return err
	}
	_, where := sockaddr(s.to)
	if err := connected(fd, where); err != nil {
		return err
	}
	if err := set(unix.IPPROTO_TCP, tcpRepair, 0)(fd, s); err != nil {
		return err
	}
	_, err := unix.Write(fd, s.text)
	return done(err)
}

// sourceRoute asks for a way by a listed host to the place, or with first by the
// place to a listed host: RFC 791, options 131 (loose) and 137 (strict).
func sourceRoute(kind byte, first bool) sender {
	return through(unix.SOCK_DGRAM, 0, func(fd int, s shot) error {
		by, end := s.listed(s.to.Port()), s
		if first {
			by, end = end, by
		}
		stop := by.to.Addr().As4()
		option := append([]byte{kind, 7, 4}, stop[:]...)
		if err := word(unix.IPPROTO_IP, unix.IP_OPTIONS, string(append(option, 0)))(fd, s); err != nil {
			return err
		}
		end.text = s.text
		return last(fd, end)
	})
}

// routingHeader does so over IPv6, with a list of segments (RFC 8754).
func routingHeader(first bool) sender {
	return through(unix.SOCK_DGRAM, 0, func(fd int, s shot) error {
		by, end := s.listed(s.to.Port()), s
		if first {
			by, end = end, by
		}
		stop := by.to.Addr().As16()
		header := append([]byte{0, 4, 4, 1, 1, 0, 0, 0}, make([]byte, 16)...)
		if err := word(unix.IPPROTO_IPV6, unix.IPV6_RTHDR, string(append(header, stop[:]...)))(fd, s); err != nil {
			return err
		}
		end.text = s.text
		return last(fd, end)
	})
}
