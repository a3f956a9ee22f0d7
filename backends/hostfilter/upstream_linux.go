package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// upstream asks the resolver with packets that carry the mark.
type upstream struct {
	server string // address and port
	dialer net.Dialer
}

func newUpstream(server netip.Addr) *upstream {
	u := &upstream{server: netip.AddrPortFrom(server, gatePort).String()}
	u.dialer.Control = func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, mark)
		}); cerr != nil {
			return cerr
		}
		if err != nil {
			return fmt.Errorf("mark the gate's packets: %w", err)
		}
		return nil
	}
	return u
}

// The gate's own ports. To have one takes a capability over the namespace: what
// the command sends from the port of a question that is over would be of the
// question's connection, and go to the resolver itself.
const firstPort, endPort = 512, 1024

// dial opens a socket to the resolver.
func (u *upstream) dial(ctx context.Context, network string) (net.Conn, error) {
	if u.dialer.Control == nil {
		return u.dialer.DialContext(ctx, network, u.server) // not as the gate
	}
	for try := 0; ; try++ {
		d, port := u.dialer, firstPort+rand.IntN(endPort-firstPort)
		if d.LocalAddr = net.Addr(&net.UDPAddr{Port: port}); network == "tcp" {
			d.LocalAddr = &net.TCPAddr{Port: port}
		}
		conn, err := d.DialContext(ctx, network, u.server)
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) || try == 100 {
			return conn, err
		}
	}
}

// retries are when a question is asked again, counted from the first time.
var retries = []time.Duration{500 * time.Millisecond, 1200 * time.Millisecond, 2200 * time.Millisecond, 3500 * time.Millisecond}

// ask asks one question and follows its chain. Each question has a socket, and
// so a port, of its own.
func (u *upstream) ask(ctx context.Context, name string, qtype uint16) (answer, error) {
	var whole answer
	for range depth {
		m, err := u.exchange(ctx, query(name, qtype))
		if err != nil {
			return answer{}, err
		}
		a := read(m, name, qtype)
		if whole.last == "" {
			whole = a
		} else {
			whole.chain = append(whole.chain, a.chain...)
			whole.addrs, whole.last, whole.code, whole.ttl = a.addrs, a.last, a.code, min(whole.ttl, a.ttl)
		}
		// A resolver that stops at the CNAME is asked for the rest of the way.
		if len(a.addrs) > 0 || a.code != dns.RcodeSuccess || a.last == plain(name) || len(whole.chain) > depth {
			return whole, nil
		}
		name = a.last
	}
	return whole, nil
}

func (u *upstream) exchange(ctx context.Context, q *dns.Msg) (*dns.Msg, error) {
	wire, err := q.Pack()
	if err != nil {
		return nil, err
	}
	conn, err := u.dial(ctx, "udp")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	start := time.Now()
	end, _ := ctx.Deadline()
	buf := make([]byte, 4096)
	for try := 0; ; try++ {
		if _, err := conn.Write(wire); err != nil && !refused(err) {
			return nil, err
		}
		until := end
		if try < len(retries) && start.Add(retries[try]).Before(end) {
			until = start.Add(retries[try])
		}
		conn.SetReadDeadline(until)
		for {
			n, err := conn.Read(buf)
			if refused(err) {
				// The resolver's host says that nobody is there; it may come back.
				time.Sleep(min(20*time.Millisecond, max(0, time.Until(until))))
				if time.Now().Before(until) {
					continue
				}
				break
			}
			if err != nil {
				break
			}
			m := new(dns.Msg)
			if m.Unpack(buf[:n]) != nil || !matches(m, q) {
				continue
			}
			if m.Truncated {
				return u.stream(ctx, q, wire)
			}
			return m, nil
		}
		if !time.Now().Before(end) || ctx.Err() != nil {
			return nil, errSilent
		}
	}
}

// stream asks again over TCP what did not fit a datagram.
func (u *upstream) stream(ctx context.Context, q *dns.Msg, wire []byte) (*dns.Msg, error) {
	conn, err := u.dial(ctx, "tcp")
	if err != nil {
		return nil, fmt.Errorf("ask the resolver over tcp: %w", err)
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	conn.SetDeadline(end)
	c := &dns.Conn{Conn: conn}
	if _, err := c.Write(wire); err != nil {
		return nil, err
	}
	m, err := c.ReadMsg()
	if err != nil {
		return nil, errSilent
	}
	if !matches(m, q) {
		return nil, errors.New("the resolver answered another question")
	}
	return m, nil
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
