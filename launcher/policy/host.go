package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// parseHost reads one entry of a host list: a name, "*." and a name, or an
// address (an IPv6 address with a port in brackets), each with an optional
// ":PORT". Names are ASCII; an international name is written in its xn-- form.
// A bare "*" is refused, because that is what network: open is for; a wildcard
// over one label ("*.internal") is accepted, because private zones are often
// one label. The error says what to write instead.
func parseHost(s string) (Host, error) {
	var h Host
	if strings.Contains(s, "://") || strings.ContainsAny(s, "/@?#") {
		return h, hostShapeError(s)
	}
	name, port, err := splitPort(s)
	if err != nil {
		return h, err
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || port[0] == '+' {
			return h, fmt.Errorf("port %s of %s is not a number from 1 to 65535", excerpt(port), excerpt(s))
		}
		h.Port = uint16(n)
	}
	if addr, err := netip.ParseAddr(name); err == nil {
		switch {
		case addr.Zone() != "":
			return h, fmt.Errorf("address %s has a zone, which means nothing in the box", excerpt(s))
		case addr.Unmap().IsUnspecified(), addr.Unmap().IsMulticast():
			return h, fmt.Errorf("address %s is not one machine's", excerpt(s))
		}
		h.Addr = addr.Unmap()
		return h, nil
	}
	return hostName(h, name, s)
}

func hostName(h Host, name, s string) (Host, error) {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if rest, ok := strings.CutPrefix(name, "*."); ok {
		h.Wildcard, name = true, rest
	}
	if name == "*" {
		return h, errors.New(`"*" would allow every host: write network: open for that`)
	}
	if strings.Contains(name, "*") {
		return h, fmt.Errorf(`%s: "*" may only stand first, as in "*.example.org"`, excerpt(s))
	}
	if len(name) > 253 {
		return h, fmt.Errorf("host name %s is longer than 253 bytes", excerpt(s))
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return h, fmt.Errorf("host name %s %w", excerpt(s), err)
		}
	}
	// The C library reads 127.1, 0x7f000001 and the like as addresses.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return h, fmt.Errorf("%s is neither a host name nor a complete address", excerpt(s))
	}
	h.Name = name
	return h, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("has an empty part between dots")
	case len(label) > 63:
		return errors.New("has a part longer than 63 bytes")
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("has a part that starts or ends with a hyphen")
	}
	for i := 0; i < len(label); i++ {
		c := label[i]
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
		case c >= 0x80:
			return errors.New("is not ASCII: write its xn-- form")
		default:
			return fmt.Errorf("holds %q", c)
		}
	}
	return nil
}

func hostShapeError(s string) error {
	rest := s
	if _, after, ok := strings.Cut(rest, "://"); ok {
		rest = after
	} else if p, err := netip.ParsePrefix(rest); err == nil {
		return fmt.Errorf("%s is a range of addresses: write each address, or host names", excerpt(p.String()))
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if rest == "" {
		return fmt.Errorf("%s is not a host name", excerpt(s))
	}
	return fmt.Errorf("%s is more than a host and a port: write %s", excerpt(s), excerpt(rest))
}

// splitPort takes ":PORT" off. A bare IPv6 address has no port.
func splitPort(s string) (name, port string, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", fmt.Errorf("%s has no closing bracket", excerpt(s))
		}
		name, rest := s[1:end], s[end+1:]
		if a, err := netip.ParseAddr(name); err != nil || !a.Is6() {
			return "", "", fmt.Errorf("%s: only an IPv6 address stands in brackets", excerpt(s))
		}
		switch {
		case rest == "":
			return name, "", nil
		case rest[0] != ':' || rest == ":":
			return "", "", fmt.Errorf("%s: a colon and a port may follow the bracket, nothing else", excerpt(s))
		}
		return name, rest[1:], nil
	}
	switch strings.Count(s, ":") {
	case 0:
		return s, "", nil
	case 1:
		name, port, _ = strings.Cut(s, ":")
		if port == "" {
			return "", "", fmt.Errorf("%s has a colon but no port", excerpt(s))
		}
		if name == "" {
			return "", "", fmt.Errorf("%s has a port but no host", excerpt(s))
		}
		return name, port, nil
	default:
		if _, err := netip.ParseAddr(s); err != nil {
			return "", "", fmt.Errorf("%s is not an IPv6 address (with a port: [ADDRESS]:PORT)", excerpt(s))
		}
		return s, "", nil
	}
}

// overlaps reports whether some connection is named by both entries.
func (h Host) overlaps(o Host) bool {
	if h.Port != 0 && o.Port != 0 && h.Port != o.Port {
		return false
	}
	if h.Addr.IsValid() || o.Addr.IsValid() {
		return h.Addr == o.Addr
	}
	switch {
	case h.Wildcard && o.Wildcard:
		return h.Name == o.Name || below(h.Name, o.Name) || below(o.Name, h.Name)
	case h.Wildcard:
		return below(o.Name, h.Name)
	case o.Wildcard:
		return below(h.Name, o.Name)
	}
	return h.Name == o.Name
}

func below(name, zone string) bool { return strings.HasSuffix(name, "."+zone) }

// key is the entry wherever it came from.
func (h Host) key() Host {
	h.From = Origin{}
	return h
}

// String renders the entry as it is written in a host list.
func (h Host) String() string {
	s := h.Name
	if h.Wildcard {
		s = "*." + s
	}
	if h.Addr.IsValid() {
		s = h.Addr.String()
		if h.Port != 0 && h.Addr.Is6() {
			s = "[" + s + "]"
		}
	}
	if h.Port != 0 {
		s += ":" + strconv.Itoa(int(h.Port))
	}
	return s
}
