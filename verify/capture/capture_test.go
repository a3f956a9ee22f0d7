package capture

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// frame makes a frame with gopacket's own layers: the second opinion.
func frame(t *testing.T, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true}, l...); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

var mac = net.HardwareAddr{2, 0, 0, 0, 0, 1}

func ether(t layers.EthernetType) *layers.Ethernet {
	return &layers.Ethernet{SrcMAC: mac, DstMAC: mac, EthernetType: t}
}

func ip4(p layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: p, SrcIP: net.IP{10, 0, 2, 100}, DstIP: net.IP{203, 0, 113, 10}}
}

func ip6(p layers.IPProtocol) *layers.IPv6 {
	return &layers.IPv6{Version: 6, NextHeader: p, SrcIP: net.ParseIP("fd00::1"), DstIP: net.ParseIP("2001:db8::10")}
}

func query(names ...string) *layers.DNS {
	d := &layers.DNS{ID: 7}
	for _, n := range names {
		d.Questions = append(d.Questions, layers.DNSQuestion{Name: []byte(n), Type: layers.DNSTypeA, Class: layers.DNSClassIN})
	}
	return d
}

func samples(t *testing.T) map[string][]byte {
	frag := ip4(layers.IPProtocolUDP)
	frag.FragOffset = 100
	vlan := &layers.Dot1Q{VLANIdentifier: 3, Type: layers.EthernetTypeIPv4}
	return map[string][]byte{
		"tcp": frame(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolTCP),
			&layers.TCP{SrcPort: 40000, DstPort: 80, SYN: true, DataOffset: 5}, gopacket.Payload("x")),
		"udp": frame(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP),
			&layers.UDP{SrcPort: 40001, DstPort: 5000}, gopacket.Payload("hello")),
		"dns": frame(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP),
			&layers.UDP{SrcPort: 40002, DstPort: 53}, query("Secret.Attacker.test")),
		"vlan": frame(t, ether(layers.EthernetTypeDot1Q), vlan, ip4(layers.IPProtocolUDP),
			&layers.UDP{SrcPort: 40003, DstPort: 9}, gopacket.Payload("v")),
		"icmp": frame(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolICMPv4),
			&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0)}),
		"udp6": frame(t, ether(layers.EthernetTypeIPv6), ip6(layers.IPProtocolUDP),
			&layers.UDP{SrcPort: 40004, DstPort: 53}, query("six.test")),
		"arp": frame(t, ether(layers.EthernetTypeARP), &layers.ARP{AddrType: 1, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4,
			Operation: 1, SourceHwAddress: mac, SourceProtAddress: []byte{10, 0, 2, 100}, DstHwAddress: mac, DstProtAddress: []byte{10, 0, 2, 2}}),
		"fragment": frame(t, ether(layers.EthernetTypeIPv4), frag, gopacket.Payload("rest of something")),
		// On port 53, but no question of a name server.
		"tunnel": frame(t, ether(layers.EthernetTypeIPv4), ip4(layers.IPProtocolUDP),
			&layers.UDP{SrcPort: 40005, DstPort: 53}, gopacket.Payload("\x00\x01\x01\x00\xff\xff\x00\x00\x00\x00\x00\x00\xff\xff")),
	}
}

func decode(data []byte) Packet {
	return Decode(data, gopacket.CaptureInfo{Timestamp: time.Unix(1, 5), Length: len(data), CaptureLength: len(data)})
}

func TestDecode(t *testing.T) {
	four, guest := netip.MustParseAddr("203.0.113.10"), netip.MustParseAddr("10.0.2.100")
	for name, want := range map[string]Packet{
		"tcp":      {Protos: []string{"ip4", "tcp"}, Src: guest, Dst: four, SrcPort: 40000, DstPort: 80},
		"udp":      {Protos: []string{"ip4", "udp"}, Src: guest, Dst: four, SrcPort: 40001, DstPort: 5000},
		"dns":      {Protos: []string{"ip4", "udp", "dns"}, Src: guest, Dst: four, SrcPort: 40002, DstPort: 53, Names: []string{"secret.attacker.test"}},
		"vlan":     {Protos: []string{"ip4", "udp"}, Src: guest, Dst: four, SrcPort: 40003, DstPort: 9},
		"icmp":     {Protos: []string{"ip4", "icmp"}, Src: guest, Dst: four},
		"udp6":     {Protos: []string{"ip6", "udp", "dns"}, Src: netip.MustParseAddr("fd00::1"), Dst: netip.MustParseAddr("2001:db8::10"), SrcPort: 40004, DstPort: 53, Names: []string{"six.test"}},
		"arp":      {Protos: []string{"arp"}, Src: guest, Dst: netip.MustParseAddr("10.0.2.2")},
		"fragment": {Protos: []string{"ip4", "udp", "fragment"}, Src: guest, Dst: four},
		"tunnel":   {Protos: []string{"ip4", "udp", "dns"}, Src: guest, Dst: four, SrcPort: 40005, DstPort: 53},
	} {
		got := decode(samples(t)[name])
		if got.Err != "" || !slices.Equal(got.Protos, want.Protos) || got.Src != want.Src || got.Dst != want.Dst ||
			got.SrcPort != want.SrcPort || got.DstPort != want.DstPort || !slices.Equal(got.Names, want.Names) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		}
	}
}

// TestDecodeShort cuts frames at every byte: the decoder must neither fail hard
// nor make up ports that are not there.
func TestDecodeShort(t *testing.T) {
	for name, data := range samples(t) {
		for n := range data {
			if p := decode(data[:n]); n < 34 && p.DstPort != 0 {
				t.Errorf("%s cut at %d has a port: %+v", name, n, p)
			}
		}
	}
}

func TestMatch(t *testing.T) {
	p := decode(samples(t)["dns"])
	p.Link, p.Out = "box", true
	for _, tc := range []struct {
		link, words string
		want        bool
	}{
		{"box", "", true}, {"any", "", true}, {"outer", "", false},
		{"box", "proto=udp", true}, {"box", "proto=tcp", false}, {"box", "proto=ip4", true}, {"box", "proto=ip6", false},
		{"box", "dst=203.0.113.10", true}, {"box", "dst=203.0.113.11", false}, {"box", "src=10.0.2.100", true}, {"box", "src=10.0.2.2", false},
		{"box", "port=53", true}, {"box", "port=40002", true}, {"box", "port=54", false},
		{"box", "name=attacker", true}, {"box", "name=^attacker", false},
		{"box", "proto=udp port=53 name=secret dst=203.0.113.11", false},
		{"box", "text=Secret.Attacker", true}, {"box", "text=secret.attacker", false}, {"box", "proto=fragment", false}, {"box", "proto=proto-136", false},
		{"box", "dir=out", true}, {"box", "dst!=203.0.113.10", false}, {"box", "dst!=203.0.113.11", true},
		{"box", "proto=udp port!=53", false}, {"box", "proto=udp port!=54 dst!=203.0.113.11", true}, {"box", "text!=Secret", false},
	} {
		m, err := ParseMatch(tc.link, strings.Fields(tc.words))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Has(&p); got != tc.want {
			t.Errorf("%s %q: got %v", tc.link, tc.words, got)
		}
	}
	for _, bad := range []string{"proto", "proto=sctp9", "proto=proto-256", "dir=in", "text=(", "dst!=here", "dst=here", "port=99999", "name=(", "colour=red", "src="} {
		if _, err := ParseMatch("box", []string{bad}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestPcap reads our files with gopacket's reader, and with Wireshark's
// capinfos and tshark where they are installed.
func TestPcap(t *testing.T) {
	var packets []Packet
	all := samples(t)
	for name := range all {
		packets = append(packets, decode(all[name]))
	}
	file := filepath.Join(t.TempDir(), "a.pcap")
	var buf bytes.Buffer
	if err := WritePcap(&buf, packets); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := pcapgo.NewReader(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if r.LinkType() != layers.LinkTypeEthernet {
		t.Errorf("link type %v", r.LinkType())
	}
	for i := range packets {
		data, ci, err := r.ReadPacketData()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, packets[i].Data) || !ci.Timestamp.Equal(packets[i].Time) || ci.Length != packets[i].Len {
			t.Errorf("packet %d differs: %v", i, ci)
		}
	}
	if _, err := exec.LookPath("tshark"); err == nil {
		out, err := exec.Command("tshark", "-n", "-r", file, "-T", "fields", "-e", "dns.qry.name").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Secret.Attacker.test") {
			t.Errorf("tshark: %v\n%s", err, out)
		}
	}
	if _, err := exec.LookPath("capinfos"); err == nil {
		out, err := exec.Command("capinfos", "-t", "-c", "-E", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "Ethernet") {
			t.Errorf("capinfos: %v\n%s", err, out)
		}
	}
}

// FuzzDecode compares with gopacket's layers on whatever both understand.
func FuzzDecode(f *testing.F) {
	for _, data := range samples(&testing.T{}) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p := decode(data)
		ref := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
		if ref.ErrorLayer() != nil || p.Err != "" {
			return
		}
		if u, ok := ref.Layer(layers.LayerTypeUDP).(*layers.UDP); ok && p.Is("udp") && p.DstPort != 0 && p.DstPort != uint16(u.DstPort) {
			t.Errorf("port %d, gopacket says %d", p.DstPort, u.DstPort)
		}
	})
}
