package lab

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Record is one thing that reached a server: a connection, a datagram, or a
// question to a name server.
type Record struct {
	Time  time.Time
	Proto string // tcp, udp, dns
	Src   netip.AddrPort
	Dst   netip.AddrPort
	Text  string // what was said, or "NAME TYPE"
}

// String is one line for people.
func (r *Record) String() string {
	return fmt.Sprintf("%s %s > %s %q", r.Proto, r.Src, r.Dst, r.Text)
}

// Records is the memory of all servers.
type Records struct {
	mu  sync.Mutex
	all []*Record
}

// keep bounds what is kept of what a client says.
const keep = 512

func (rs *Records) add(proto string, src, dst netip.AddrPort, text string) *Record {
	r := &Record{time.Now(), proto, unmap(src), unmap(dst), text[:min(len(text), keep)]}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = append(rs.all, r)
	return r
}

// say adds to what a connection's record holds.
func (rs *Records) say(r *Record, text []byte) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if room := keep - len(r.Text); room > 0 {
		r.Text += string(text[:min(len(text), room)])
	}
}

func (rs *Records) clear() {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.all = nil
}

// find returns the records that words of the form key=value match: proto, src,
// dst, port, text.
func (rs *Records) find(words []string) (Answer, error) {
	match, err := recordMatch(words)
	if err != nil {
		return Answer{}, err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	a := Answer{Total: len(rs.all)}
	for _, r := range rs.all {
		if !match(r) {
			continue
		}
		if a.Count++; a.Count <= 5 {
			a.Lines = append(a.Lines, r.String())
		}
	}
	return a, nil
}

func recordMatch(words []string) (func(*Record) bool, error) {
	var tests []func(*Record) bool
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || value == "" {
			return nil, fmt.Errorf("lab: %q is not key=value", w)
		}
		switch key {
		case "proto":
			if !slices.Contains([]string{"tcp", "udp", "dns"}, value) {
				return nil, fmt.Errorf("lab: no server speaks %q", value)
			}
			tests = append(tests, func(r *Record) bool { return r.Proto == value })
		case "src", "dst":
			a, err := netip.ParseAddr(value)
			if err != nil {
				return nil, err
			}
			tests = append(tests, func(r *Record) bool {
				return key == "src" && r.Src.Addr() == a || key == "dst" && r.Dst.Addr() == a
			})
		case "port":
			n, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return nil, err
			}
			tests = append(tests, func(r *Record) bool { return r.Dst.Port() == uint16(n) })
		case "text":
			re, err := regexp.Compile(value)
			if err != nil {
				return nil, err
			}
			tests = append(tests, func(r *Record) bool { return re.MatchString(r.Text) })
		default:
			return nil, fmt.Errorf("lab: no key %q", key)
		}
	}
	return func(r *Record) bool {
		for _, t := range tests {
			if !t(r) {
				return false
			}
		}
		return true
	}, nil
}

func unmap(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }
