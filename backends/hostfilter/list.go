package hostfilter

import (
	"net/netip"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// list answers which ports a name is listed with.
type list struct {
	exact, below map[string][]uint16
	names        []string // of exact, in the list's order, each once
	addrs        map[netip.Addr]bool
}

func newList(hosts []policy.Host) *list {
	l := &list{exact: map[string][]uint16{}, below: map[string][]uint16{}, addrs: map[netip.Addr]bool{}}
	for _, h := range hosts {
		switch {
		case h.Addr.IsValid():
			l.addrs[h.Addr.Unmap()] = true
		case h.Wildcard:
			l.below[h.Name] = append(l.below[h.Name], h.Port)
		default:
			if l.exact[h.Name] == nil {
				l.names = append(l.names, h.Name)
			}
			l.exact[h.Name] = append(l.exact[h.Name], h.Port)
		}
	}
	return l
}

// ports are the ports that name is listed with, 0 for any; none when it is not
// listed. The name may have capitals and a final dot.
func (l *list) ports(name string) []uint16 {
	name = plain(name)
	// A label may hold a dot, which is written `\.` and ends no label: no host has
	// such a name, and it is not below the name that it seems to be below.
	if name == "" || strings.Contains(name, `\`) {
		return nil
	}
	ports := append([]uint16(nil), l.exact[name]...)
	for rest := name; ; {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return ports
		}
		ports = append(ports, l.below[after]...)
		rest = after
	}
}

// plain is a name as the host list writes it. Only ASCII letters are folded: a
// DNS name is bytes, and other letters that Unicode folds onto ASCII ones are
// not the same name.
func plain(name string) string {
	b := []byte(strings.TrimSuffix(name, "."))
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
