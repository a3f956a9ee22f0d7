package hostfilter

import "net/netip"

// reserved are the ranges that no answer may point the box at. The metadata
// services of clouds are link-local.
var reserved = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "the unspecified network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
}

// embedding are the IPv6 prefixes that carry an IPv4 address in their last 32
// bits: translated (RFC 6052, RFC 8215), compatible and translatable
// (RFC 4291, RFC 2765) ones.
var embedding = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("::ffff:0:0:0/96"),
}

// judge says what an answer's address is that keeps it from being opened; "" when
// nothing does. own are the host's own addresses. Private networks pass: a name
// that a person lists may well be of the inside of their network.
func judge(a netip.Addr, own []netip.Addr) string {
	a = a.Unmap()
	for _, p := range embedding {
		if a.Is6() && p.Contains(a) && !a.IsLoopback() && !a.IsUnspecified() {
			b := a.As16()
			return judge(netip.AddrFrom4([4]byte(b[12:])), own)
		}
	}
	// 6to4 carries its IPv4 address after the first 16 bits (RFC 3056).
	if b := a.As16(); a.Is6() && b[0] == 0x20 && b[1] == 0x02 {
		return judge(netip.AddrFrom4([4]byte(b[2:6])), own)
	}
	for _, r := range reserved {
		if r.prefix.Contains(a) {
			return r.what
		}
	}
	if Subnet.Contains(a) || Subnet6.Contains(a) {
		return "an address of the box's own network"
	}
	for _, o := range own {
		if o.Unmap().WithZone("") == a {
			return "an address of this machine"
		}
	}
	return ""
}
