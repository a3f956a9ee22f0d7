package capture

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/gopacket"
)

// Packet is what is known of one packet.
type Packet struct {
	Time     time.Time
	Link     string   // where it was seen
	Protos   []string // every name that proto= may give it: "tcp", "ip4", ...
	Src, Dst netip.Addr
	SrcPort  uint16
	DstPort  uint16
	Flags    uint8    // of TCP
	Names    []string // asked for, lower case, without a final dot
	Response bool     // it is an answer of a name server
	Out      bool     // it was sent by the side that was listened at
	Len      int      // on the wire, bytes
	Data     []byte   // as captured
	Err      string   // why a layer could not be decoded, or ""
}

// Outgoing is in the ancillary data of a packet that was sent by the side that is
// listened at.
type Outgoing struct{}

// Decode decodes an Ethernet frame.
func Decode(data []byte, ci gopacket.CaptureInfo) Packet {
	p := Packet{Time: ci.Timestamp, Len: ci.Length, Data: data, Out: slices.Contains(ci.AncillaryData, any(Outgoing{}))}
	decoded := gopacket.NewPacket(data, TypeEthernet, gopacket.NoCopy)
	for _, layer := range decoded.Layers() {
		p.add(layer)
	}
	if e := decoded.ErrorLayer(); e != nil {
		p.Err = e.Error().Error()
	}
	return p
}

func (p *Packet) add(layer gopacket.Layer) {
	switch l := layer.(type) {
	case *Ethernet:
		switch l.EtherType {
		case etherIPv4:
			p.Protos = append(p.Protos, "ip4")
		case etherIPv6:
			p.Protos = append(p.Protos, "ip6")
		case etherARP:
			p.Protos = append(p.Protos, "arp")
		default:
			p.Protos = append(p.Protos, fmt.Sprintf("ether-%#04x", l.EtherType))
		}
	case *ARP:
		p.Src, p.Dst = l.Sender, l.Target
	case *IP:
		p.Src, p.Dst = l.Src, l.Dst
		name, ok := map[uint8]string{protoICMP: "icmp", protoTCP: "tcp", protoUDP: "udp", protoICMPv6: "icmp6"}[l.Proto]
		if !ok {
			name = "proto-" + strconv.Itoa(int(l.Proto))
		}
		p.Protos = append(p.Protos, name)
		if l.Part {
			p.Protos = append(p.Protos, "fragment")
		}
	case *Ports:
		p.SrcPort, p.DstPort, p.Flags = l.Src, l.Dst, l.Flags
	case *DNS:
		p.Response = l.Response
		for _, name := range l.Names {
			p.Names = append(p.Names, strings.ToLower(strings.TrimSuffix(name, ".")))
		}
		p.Protos = append(p.Protos, "dns")
	}
}

// Is tells whether the packet is of a protocol: ip4, ip6, arp, tcp, udp, icmp,
// icmp6, dns, "proto-N" for any other of IP's, or "fragment" for a part of a packet.
func (p *Packet) Is(proto string) bool { return slices.Contains(p.Protos, proto) }

// String is one line for people.
func (p *Packet) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", p.Link, strings.Join(p.Protos, "/"))
	if p.Src.IsValid() {
		fmt.Fprintf(&b, " %s > %s", endpoint(p.Src, p.SrcPort), endpoint(p.Dst, p.DstPort))
	}
	if len(p.Names) > 0 {
		fmt.Fprintf(&b, " %q", p.Names)
	}
	fmt.Fprintf(&b, " %d bytes", p.Len)
	if p.Err != "" {
		fmt.Fprintf(&b, " (%s)", p.Err)
	}
	return b.String()
}

func endpoint(a netip.Addr, port uint16) string {
	if port == 0 {
		return a.String()
	}
	return netip.AddrPortFrom(a, port).String()
}

// A Match says which packets a question is about; the zero Match is all of them.
type Match struct {
	Link     string // "" or "any": every link
	Proto    string
	Src, Dst netip.Addr
	Port     uint16         // of either end
	Name     *regexp.Regexp // of a name asked for
	Text     *regexp.Regexp // of all its bytes
	Out      bool           // sent by the side that was listened at
	Not      []Match        // and none of these
}

// ParseMatch reads conditions of the form key=value: proto, src, dst, port, name,
// text, dir (out alone). With key!=value what has that is left out.
func ParseMatch(link string, words []string) (Match, error) {
	m := Match{Link: link}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || value == "" {
			return m, fmt.Errorf("capture: %q is not key=value", w)
		}
		if key, not := strings.CutSuffix(key, "!"); not {
			n, err := ParseMatch("", []string{key + "=" + value})
			if err != nil {
				return m, err
			}
			m.Not = append(m.Not, n)
			continue
		}
		var err error
		switch key {
		case "proto":
			other, numbered := strings.CutPrefix(value, "proto-")
			_, e := strconv.ParseUint(other, 10, 8)
			if !slices.Contains([]string{"tcp", "udp", "icmp", "icmp6", "arp", "ip4", "ip6", "dns", "fragment"}, value) && (!numbered || e != nil) {
				return m, fmt.Errorf("capture: no protocol %q", value)
			}
			m.Proto = value
		case "dir":
			if m.Out = value == "out"; !m.Out {
				return m, fmt.Errorf("capture: no direction %q", value)
			}
		case "text":
			m.Text, err = regexp.Compile("(?s)" + value)
		case "src":
			m.Src, err = netip.ParseAddr(value)
		case "dst":
			m.Dst, err = netip.ParseAddr(value)
		case "port":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 16)
			m.Port = uint16(n)
		case "name":
			m.Name, err = regexp.Compile(value)
		default:
			err = fmt.Errorf("no key %q", key)
		}
		if err != nil {
			return m, fmt.Errorf("capture: %q: %w", w, err)
		}
	}
	return m, nil
}

// Has tells whether a packet is one of those the match is about.
func (m *Match) Has(p *Packet) bool {
	return (m.Link == "" || m.Link == "any" || m.Link == p.Link) &&
		(m.Proto == "" || p.Is(m.Proto)) &&
		(!m.Src.IsValid() || m.Src == p.Src) &&
		(!m.Dst.IsValid() || m.Dst == p.Dst) &&
		(m.Port == 0 || m.Port == p.SrcPort || m.Port == p.DstPort) &&
		(m.Name == nil || slices.ContainsFunc(p.Names, m.Name.MatchString)) &&
		(m.Text == nil || m.Text.Match(p.Data)) &&
		(!m.Out || p.Out) &&
		!slices.ContainsFunc(m.Not, func(n Match) bool { return n.Has(p) })
}
