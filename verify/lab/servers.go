package lab

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// servers answers on addresses of the network namespace that it is started in.
type servers struct {
	records *Records
	zone    *Zone
}

var (
	bannerPorts = []uint16{22, 25, 443, 853, 9999}
	httpPorts   = []uint16{80, 8080}
	echoPorts   = []uint16{7}
	udpPorts    = []uint16{123, 443, 5000, 9999}
)

// internet starts all servers of the internet. The caller's thread is in its
// network namespace, and sockets stay where they were made.
func (s *servers) internet(addrs, resolvers []netip.Addr) error {
	for _, a := range addrs {
		for ports, serve := range map[*[]uint16]func(net.Conn, *Record){
			&bannerPorts: s.banner, &httpPorts: s.http, &echoPorts: s.echo,
		} {
			for _, port := range *ports {
				if err := s.tcp(netip.AddrPortFrom(a, port), serve); err != nil {
					return err
				}
			}
		}
		for _, port := range udpPorts {
			if err := s.udp(netip.AddrPortFrom(a, port), "reply from"); err != nil {
				return err
			}
		}
	}
	if err := s.strangers(addrs); err != nil {
		return err
	}
	for _, a := range resolvers {
		if err := s.dns(netip.AddrPortFrom(a, 53)); err != nil {
			return err
		}
	}
	return nil
}

// machine starts the services of the machine itself.
func (s *servers) machine(addrs []netip.Addr) error {
	for _, a := range addrs {
		at := netip.AddrPortFrom(a, 8099)
		if err := s.tcp(at, s.service); err != nil {
			return err
		}
		if err := s.udp(at, "machine-service"); err != nil {
			return err
		}
	}
	return nil
}

func (s *servers) tcp(at netip.AddrPort, serve func(net.Conn, *Record)) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			r := s.records.add("tcp", c.RemoteAddr().(*net.TCPAddr).AddrPort(), at, "")
			go func() {
				defer c.Close()
				serve(c, r)
			}()
		}
	}()
	return nil
}

func (s *servers) banner(c net.Conn, r *Record) {
	fmt.Fprintf(c, "hello from %s\n", r.Dst)
	s.drain(c, r)
}

func (s *servers) service(c net.Conn, r *Record) {
	fmt.Fprintf(c, "machine-service %s\n", r.Dst)
	s.drain(c, r)
}

// drain records what a client says until it has nothing more to say.
func (s *servers) drain(c net.Conn, r *Record) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		s.records.say(r, buf[:n])
		if err != nil {
			return
		}
	}
}

func (s *servers) echo(c net.Conn, r *Record) {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Read(buf)
		s.records.say(r, buf[:n])
		if err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// http answers one request as HTTP/1.1 does (RFC 9112), and closes.
func (s *servers) http(c net.Conn, r *Record) {
	c.SetReadDeadline(time.Now().Add(10 * time.Second))
	in := bufio.NewReader(io.LimitReader(c, 64<<10))
	first, err := in.ReadString('\n')
	s.records.say(r, []byte(first))
	if err != nil {
		return
	}
	for {
		line, err := in.ReadString('\n')
		s.records.say(r, []byte(line))
		if err != nil {
			return
		}
		if strings.TrimSpace(line) == "" {
			break
		}
	}
	words := strings.Fields(first)
	if len(words) != 3 {
		fmt.Fprint(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		return
	}
	if n, ok := strings.CutPrefix(words[1], "/bytes/"); ok {
		size, _ := strconv.ParseInt(n, 10, 64)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", size)
		zeros := make([]byte, 256<<10)
		for size > 0 {
			n, err := c.Write(zeros[:min(size, int64(len(zeros)))])
			if err != nil {
				return
			}
			size -= int64(n)
		}
		return
	}
	body := fmt.Sprintf("hello from %s\n", r.Dst)
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
}

func (s *servers) udp(at netip.AddrPort, greeting string) error {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := c.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			s.records.add("udp", from, at, string(buf[:n]))
			c.WriteToUDPAddrPort(fmt.Appendf(nil, "%s %s: %s", greeting, at, bytes.TrimSpace(buf[:n])), from)
		}
	}()
	return nil
}

// strangerPort is where each address has another one send the reply.
const strangerPort = 5001

// strangers makes a datagram that reaches one address be answered by another of
// the same family, the last of the list.
func (s *servers) strangers(addrs []netip.Addr) error {
	last := map[bool]*net.UDPConn{}
	conns := make([]*net.UDPConn, len(addrs))
	for i, a := range addrs {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, strangerPort)))
		if err != nil {
			return err
		}
		conns[i], last[a.Is4()] = c, c
	}
	for i, a := range addrs {
		go func() {
			buf := make([]byte, 64<<10)
			for {
				n, from, err := conns[i].ReadFromUDPAddrPort(buf)
				if err != nil {
					return
				}
				s.records.add("udp", from, netip.AddrPortFrom(a, strangerPort), string(buf[:n]))
				if other := last[a.Is4()]; other != conns[i] {
					other.WriteToUDPAddrPort([]byte("stranger"), from)
				}
			}
		}()
	}
	return nil
}

func (s *servers) dns(at netip.AddrPort) error {
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		u.Close()
		return err
	}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		src, udp := addrPort(w.RemoteAddr())
		for _, question := range q.Question {
			s.records.add("dns", src, at, strings.ToLower(strings.TrimSuffix(question.Name, "."))+" "+dns.TypeToString[question.Qtype])
		}
		if m := s.zone.Reply(q, udp); m != nil {
			w.WriteMsg(m)
		}
	})
	go (&dns.Server{PacketConn: u, Handler: handler}).ActivateAndServe()
	go (&dns.Server{Listener: l, Handler: handler}).ActivateAndServe()
	return nil
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort(), true
	case *net.TCPAddr:
		return a.AddrPort(), false
	}
	return netip.AddrPort{}, false
}
