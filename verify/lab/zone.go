package lab

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// Rule is what the name server says of a name.
type Rule struct {
	A, AAAA []netip.Addr
	CNAME   string
	Rotate  bool          // one address an answer, the next one each time
	Shuffle bool          // all addresses, starting with the next one each time
	TTL     uint32        // seconds
	Delay   time.Duration // before it answers
	Code    int           // the answer's code, e.g. dns.RcodeServerFailure
	Silent  bool          // it never answers
	Cut     bool          // over UDP, an answer that says "ask again over TCP"
}

// ParseRule reads a rule's words: a=ADDR[,ADDR...], aaaa=..., cname=NAME,
// ttl=SECONDS, delay=DURATION, and the single words rotate, shuffle, silent,
// truncated, nxdomain, servfail, refused. Without ttl it is 60 seconds.
func ParseRule(words []string) (Rule, error) {
	r := Rule{TTL: 60}
	for _, w := range words {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "a":
			r.A, err = addrs(value, false)
		case "aaaa":
			r.AAAA, err = addrs(value, true)
		case "cname":
			r.CNAME = dns.CanonicalName(value)
		case "ttl":
			var n uint64
			n, err = strconv.ParseUint(value, 10, 31)
			r.TTL = uint32(n)
		case "delay":
			r.Delay, err = time.ParseDuration(value)
		case "rotate":
			r.Rotate = true
		case "shuffle":
			r.Shuffle = true
		case "silent":
			r.Silent = true
		case "truncated":
			r.Cut = true
		case "nxdomain":
			r.Code = dns.RcodeNameError
		case "servfail":
			r.Code = dns.RcodeServerFailure
		case "refused":
			r.Code = dns.RcodeRefused
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			return r, fmt.Errorf("lab: rule %q: %w", w, err)
		}
	}
	return r, nil
}

func addrs(list string, six bool) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, s := range strings.Split(list, ",") {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return nil, err
		}
		if a.Is4() == six {
			return nil, fmt.Errorf("%s is of the other kind", a)
		}
		out = append(out, a)
	}
	return out, nil
}

// Zone is all that the name server knows. A rule for "*.NAME" stands for every
// name below NAME that has none of its own; a rule for "." for all others.
type Zone struct {
	mu    sync.Mutex
	rules map[string]*Rule
	turn  map[string]int
	quiet bool
}

// usual is what a lab's name server knows before a script says otherwise.
var usual = map[string]string{
	"allowed.test":    "a=203.0.113.10 aaaa=2001:db8:77::10",
	"other.test":      "a=203.0.113.20 aaaa=2001:db8:77::20",
	"attacker.test":   "a=203.0.113.20",
	"*.attacker.test": "a=203.0.113.20",
	"rotate.test":     "a=203.0.113.10,203.0.113.11 rotate ttl=1",
	"pair.test":       "a=203.0.113.10,203.0.113.11 shuffle",
	"cname.test":      "cname=allowed.test",
	"away.test":       "cname=other.test",
	"loop.test":       "cname=loop.test",
	"six.test":        "aaaa=2001:db8:77::10",
	"silent.test":     "silent",
	"slow.test":       "a=203.0.113.10 delay=300ms",
	"broken.test":     "servfail",
	"large.test":      "a=203.0.113.10 truncated",
	"one.shared.test": "a=203.0.113.30",
	"two.shared.test": "a=203.0.113.30",
	"*.wild.test":     "a=203.0.113.40 ttl=5",
	"*.many.test":     "a=203.0.113.40",
	"local.test":      "a=127.0.0.1",
	"metadata.test":   "a=169.254.169.254",
	"machine.test":    "a=203.0.113.2",
	"mixed.test":      "a=127.0.0.1,203.0.113.10",
}

// NewZone returns the usual zone.
func NewZone() *Zone {
	z := &Zone{rules: map[string]*Rule{}, turn: map[string]int{}}
	for name, words := range usual {
		r, err := ParseRule(strings.Fields(words))
		if err != nil {
			panic("lab: own zone: " + err.Error())
		}
		z.Set(name, r)
	}
	return z
}

// Set changes what is said of a name.
func (z *Zone) Set(name string, r Rule) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.rules[dns.CanonicalName(name)] = &r
}

// Silence makes the name server answer nothing, or answer again.
func (z *Zone) Silence(on bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.quiet = on
}

// find returns the rule for a canonical name.
func (z *Zone) find(name string) (Rule, int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.quiet {
		return Rule{Silent: true}, 0
	}
	r := z.rules[name]
	for rest := name; r == nil && rest != "."; {
		_, after, _ := strings.Cut(rest, ".")
		if after == "" {
			after = "."
		}
		if rest = after; rest != "." {
			r = z.rules["*."+rest]
		}
	}
	if r == nil {
		r = z.rules["."]
	}
	if r == nil {
		return Rule{Code: dns.RcodeNameError}, 0
	}
	turn := z.turn[name]
	z.turn[name]++
	return *r, turn
}

// Reply answers a query; nil is silence. It sleeps for a rule's delay.
func (z *Zone) Reply(q *dns.Msg, udp bool) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	m.Authoritative, m.RecursionAvailable = true, true
	if len(q.Question) != 1 {
		m.Rcode = dns.RcodeFormatError
		return m
	}
	name := dns.CanonicalName(q.Question[0].Name)
	owner := q.Question[0].Name
	for range 8 {
		r, turn := z.find(name)
		time.Sleep(r.Delay)
		if r.Silent {
			return nil
		}
		if r.Cut && udp {
			m.Truncated = true
			return m
		}
		m.Rcode = r.Code
		if r.CNAME != "" {
			m.Answer = append(m.Answer, &dns.CNAME{Hdr: head(owner, dns.TypeCNAME, r.TTL), Target: r.CNAME})
			name, owner = r.CNAME, r.CNAME
			continue
		}
		switch q.Question[0].Qtype {
		case dns.TypeA:
			for _, a := range pick(r, r.A, turn) {
				m.Answer = append(m.Answer, &dns.A{Hdr: head(owner, dns.TypeA, r.TTL), A: a.AsSlice()})
			}
		case dns.TypeAAAA:
			for _, a := range pick(r, r.AAAA, turn) {
				m.Answer = append(m.Answer, &dns.AAAA{Hdr: head(owner, dns.TypeAAAA, r.TTL), AAAA: a.AsSlice()})
			}
		case dns.TypeTXT:
			m.Answer = append(m.Answer, &dns.TXT{Hdr: head(owner, dns.TypeTXT, r.TTL), Txt: []string{"text of " + name}})
		}
		return m
	}
	return m
}

func pick(r Rule, list []netip.Addr, turn int) []netip.Addr {
	if len(list) == 0 || !r.Rotate && !r.Shuffle {
		return list
	}
	i := turn % len(list)
	if r.Rotate {
		return list[i : i+1]
	}
	return append(append([]netip.Addr(nil), list[i:]...), list[:i]...)
}

func head(name string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
