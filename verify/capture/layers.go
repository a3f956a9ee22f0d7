// Package capture sees what really left: it reads packets of a network
// interface, decodes as much of them as kgate's claims are about, keeps them as
// a pcap file that Wireshark opens, and answers questions about them.
//
// It uses gopacket's core and brings its own few layers: linking gopacket's
// complete set costs 25 ms at the start of every kgate, captured or not.
package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/miekg/dns"
)

// The layer types of this package. gopacket leaves numbers from 1000 on to its
// users.
const (
	TypeEthernet gopacket.LayerType = 2001 + iota
	TypeARP
	TypeIP
	TypePorts
	TypeICMP
	TypeDNS
)

func init() {
	for kind, l := range map[gopacket.LayerType]struct {
		name   string
		decode gopacket.DecodeFunc
	}{
		TypeEthernet: {"Ethernet", decodeEthernet},
		TypeARP:      {"ARP", decodeARP},
		TypeIP:       {"IP", decodeIP},
		TypePorts:    {"Ports", decodePorts},
		TypeICMP:     {"ICMP", decodeICMP},
		TypeDNS:      {"DNS", decodeDNS},
	} {
		gopacket.RegisterLayerType(int(kind), gopacket.LayerTypeMetadata{Name: l.name, Decoder: l.decode})
	}
}

// base holds the bytes of a layer and of what it carries.
type base struct {
	kind              gopacket.LayerType
	contents, payload []byte
}

func (b base) LayerType() gopacket.LayerType { return b.kind }
func (b base) LayerContents() []byte         { return b.contents }
func (b base) LayerPayload() []byte          { return b.payload }

// The EtherTypes and protocol numbers that are told apart, from the IANA
// registries "IEEE 802 Numbers" and "Protocol Numbers".
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherVLAN = 0x8100
	etherIPv6 = 0x86dd

	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

var errShort = errors.New("capture: packet is too short")

// Ethernet is a frame's header (IEEE 802.3).
type Ethernet struct {
	base
	EtherType uint16
}

func decodeEthernet(data []byte, p gopacket.PacketBuilder) error {
	head := 14
	if len(data) < head {
		return errShort
	}
	t := binary.BigEndian.Uint16(data[12:])
	if t == etherVLAN {
		if head = 18; len(data) < head {
			return errShort
		}
		t = binary.BigEndian.Uint16(data[16:])
	}
	p.AddLayer(&Ethernet{base{TypeEthernet, data[:head], data[head:]}, t})
	switch t {
	case etherIPv4, etherIPv6:
		version := byte(4)
		if t == etherIPv6 {
			version = 6
		}
		// A kernel takes a packet for what the frame says that it is.
		if len(data) > head && data[head]>>4 != version {
			return fmt.Errorf("capture: IP version %d in a frame of type %#04x", data[head]>>4, t)
		}
		return p.NextDecoder(TypeIP)
	case etherARP:
		return p.NextDecoder(TypeARP)
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}

// ARP is a question for, or an answer with, an address on the link (RFC 826).
type ARP struct {
	base
	Sender, Target netip.Addr
}

func decodeARP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 28 {
		return errShort
	}
	p.AddLayer(&ARP{base{TypeARP, data[:28], nil},
		netip.AddrFrom4([4]byte(data[14:18])), netip.AddrFrom4([4]byte(data[24:28]))})
	return nil
}

// IP is the header of an IPv4 (RFC 791) or IPv6 (RFC 8200) packet with its
// extension headers.
type IP struct {
	base
	Src, Dst netip.Addr
	Proto    uint8
	Part     bool // a fragment
	Later    bool // one other than the first: it has no ports
}

func decodeIP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 1 {
		return errShort
	}
	ip, err := &IP{}, error(nil)
	switch data[0] >> 4 {
	case 4:
		err = ip.four(data)
	case 6:
		err = ip.six(data)
	default:
		err = fmt.Errorf("capture: IP version %d", data[0]>>4)
	}
	if err != nil {
		return err
	}
	p.AddLayer(ip)
	p.SetNetworkLayer(ip)
	switch {
	case ip.Later:
		return p.NextDecoder(gopacket.LayerTypePayload)
	case ip.Proto == protoTCP, ip.Proto == protoUDP:
		return p.NextDecoder(gopacket.DecodeFunc(func(data []byte, p gopacket.PacketBuilder) error {
			return decodeTransport(ip.Proto, data, p)
		}))
	case ip.Proto == protoICMP, ip.Proto == protoICMPv6:
		return p.NextDecoder(TypeICMP)
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}

func (ip *IP) four(data []byte) error {
	if len(data) < 20 {
		return errShort
	}
	head, total := int(data[0]&15)*4, int(binary.BigEndian.Uint16(data[2:]))
	if head < 20 || len(data) < head {
		return errShort
	}
	// Frames are padded, and what segmentation offload left to the card says 0.
	if total < head || total > len(data) {
		total = len(data)
	}
	ip.Src, ip.Dst = netip.AddrFrom4([4]byte(data[12:16])), netip.AddrFrom4([4]byte(data[16:20]))
	ip.Proto = data[9]
	ip.Part = binary.BigEndian.Uint16(data[6:])&0x3fff != 0 // more are to come, or where it begins
	ip.Later = binary.BigEndian.Uint16(data[6:])&0x1fff != 0
	ip.base = base{TypeIP, data[:head], data[head:total]}
	return nil
}

func (ip *IP) six(data []byte) error {
	if len(data) < 40 {
		return errShort
	}
	total := 40 + int(binary.BigEndian.Uint16(data[4:]))
	if total == 40 || total > len(data) {
		total = len(data)
	}
	ip.Src, ip.Dst = netip.AddrFrom16([16]byte(data[8:24])), netip.AddrFrom16([16]byte(data[24:40]))
	head, next := 40, data[6]
	for {
		step := 0
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if total < head+2 {
				return errShort
			}
			step = int(data[head+1])*8 + 8
		case 44: // fragment
			if total < head+8 {
				return errShort
			}
			step, ip.Part = 8, true
			ip.Later = ip.Later || binary.BigEndian.Uint16(data[head+2:])>>3 != 0
		default:
			ip.Proto = next
			ip.base = base{TypeIP, data[:head], data[head:total]}
			return nil
		}
		next = data[head]
		if head += step; head > total {
			return errShort
		}
	}
}

// NetworkFlow is there because gopacket asks it of a network layer.
func (ip *IP) NetworkFlow() gopacket.Flow {
	return gopacket.NewFlow(gopacket.EndpointInvalid, ip.Src.AsSlice(), ip.Dst.AsSlice())
}

// Ports is the part of a TCP (RFC 9293) or UDP (RFC 768) header that says who
// talks to whom.
type Ports struct {
	base
	Proto    uint8
	Src, Dst uint16
	Flags    uint8 // of TCP
}

func decodePorts(data []byte, p gopacket.PacketBuilder) error {
	return decodeTransport(protoUDP, data, p)
}

func decodeTransport(proto uint8, data []byte, p gopacket.PacketBuilder) error {
	head := 8
	if proto == protoTCP {
		if len(data) < 20 {
			return errShort
		}
		head = int(data[12]>>4) * 4
	}
	if len(data) < head || head < 8 {
		return errShort
	}
	t := &Ports{base{TypePorts, data[:head], data[head:]}, proto,
		binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:]), 0}
	if proto == protoTCP {
		t.Flags = data[13]
	}
	p.AddLayer(t)
	if t.Src == 53 || t.Dst == 53 {
		body := t.payload
		// Over TCP a message has its length before it (RFC 1035, 4.2.2).
		if proto == protoTCP && len(body) > 2 {
			body = body[2:]
		}
		if len(body) >= 12 {
			return p.NextDecoder(gopacket.DecodeFunc(func(_ []byte, p gopacket.PacketBuilder) error {
				return decodeDNS(body, p)
			}))
		}
	}
	return p.NextDecoder(gopacket.LayerTypePayload)
}

// ICMP is the type and code of an ICMP message of either version (RFC 792,
// RFC 4443).
type ICMP struct {
	base
	Type, Code uint8
}

func decodeICMP(data []byte, p gopacket.PacketBuilder) error {
	if len(data) < 4 {
		return errShort
	}
	p.AddLayer(&ICMP{base{TypeICMP, data[:4], data[4:]}, data[0], data[1]})
	return nil
}

// DNS is the question of a message to or from port 53.
type DNS struct {
	base
	Response bool
	Names    []string // as asked, with a final dot
}

// decodeDNS takes what is on port 53 and no DNS message for plain bytes: what
// leaves that way is not always what the port says.
func decodeDNS(data []byte, p gopacket.PacketBuilder) error {
	var head dns.Header
	off := 12
	if len(data) < off {
		return errShort
	}
	head.Bits, head.Qdcount = binary.BigEndian.Uint16(data[2:]), binary.BigEndian.Uint16(data[4:])
	d := &DNS{base: base{TypeDNS, data, nil}, Response: head.Bits&0x8000 != 0}
	for range head.Qdcount {
		name, next, err := dns.UnpackDomainName(data, off)
		if err != nil || next+4 > len(data) {
			break
		}
		d.Names = append(d.Names, name)
		off = next + 4
	}
	p.AddLayer(d)
	return nil
}
