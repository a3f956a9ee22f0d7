package hostfilter

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

func web(ln net.Listener, a string) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			fmt.Fprintf(c, "%s\n", a)
			buf := make([]byte, 1<<16)
			for {
				n, err := c.Read(buf)
				if err != nil {
					return
				}
				if strings.HasPrefix(string(buf[:n]), "flood") {
					for range 256 << 20 / len(buf) {
						if _, err := c.Write(buf); err != nil {
							return
						}
					}
					return
				}
				c.Write(buf[:n])
			}
		}()
	}
}

func (l *lab) sink(pc net.PacketConn, a string) {
	buf := make([]byte, 2048)
	for {
		n, from, err := pc.ReadFrom(buf)
		if err != nil {
			return
		}
		text := string(buf[:n])
		l.mu.Lock()
		l.datagram = append(l.datagram, a+" "+text)
		l.mu.Unlock()
		pc.WriteTo(buf[:n], from)
		if strings.HasPrefix(text, "stranger") {
			// Another address writes to where this datagram came from.
			other := net.JoinHostPort(otherAddr, "9001")
			if strings.HasPrefix(a, "[") {
				other = "[2001:db8:113::20]:9001"
			}
			l.run(func() {
				s, err := net.ListenPacket("udp", other)
				if err == nil {
					s.WriteTo([]byte("hello from a stranger"), from)
					go func() {
						defer s.Close()
						s.SetReadDeadline(time.Now().Add(time.Second))
						b := make([]byte, 100)
						if n, _, err := s.ReadFrom(b); err == nil {
							l.mu.Lock()
							l.datagram = append(l.datagram, other+" "+string(b[:n]))
							l.mu.Unlock()
						}
					}()
				}
			})
		}
	}
}

func (l *lab) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	tcp := w.RemoteAddr().Network() == "tcp"
	l.mu.Lock()
	l.queries = append(l.queries, plain(q.Question[0].Name)+" "+dns.TypeToString[q.Question[0].Qtype])
	f := l.answer
	l.mu.Unlock()
	rrs, code, wait := f(q.Question[0], tcp)
	if code < 0 {
		return
	}
	time.Sleep(wait)
	m := new(dns.Msg)
	m.SetReply(q)
	m.RecursionAvailable = true
	m.Rcode = code
	for _, s := range rrs {
		if s == "TRUNCATE" {
			m.Truncated = !tcp
			continue
		}
		rr, err := dns.NewRR(s)
		if err != nil {
			panic(err)
		}
		m.Answer = append(m.Answer, rr)
	}
	w.WriteMsg(m)
}

// zone makes an answer function out of records; names without any do not exist.
func zone(records ...string) func(dns.Question, bool) ([]string, int, time.Duration) {
	return func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
		var rrs []string
		exists := false
		name := plain(q.Name)
		for range 5 {
			next := ""
			for _, s := range records {
				rr, err := dns.NewRR(s)
				if err != nil {
					panic(err)
				}
				if plain(rr.Header().Name) != name {
					continue
				}
				exists = true
				if rr.Header().Rrtype == q.Qtype {
					rrs = append(rrs, s)
				} else if c, ok := rr.(*dns.CNAME); ok {
					rrs = append(rrs, s)
					next = plain(c.Target)
				}
			}
			if next == "" {
				break
			}
			name = next
		}
		if !exists {
			return nil, dns.RcodeNameError, 0
		}
		return rrs, dns.RcodeSuccess, 0
	}
}
