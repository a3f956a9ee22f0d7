package hostfilter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// clientMain is the command in the box: it does each step and says what came of
// it, a line each.
func clientMain(steps []string) int {
	start := time.Now()
	var held net.Conn
	for _, s := range steps {
		f := strings.Fields(s)
		began := time.Now()
		var got string
		var err error
		switch f[0] {
		case "tcp", "tcp6": // ADDR
			var c net.Conn
			if c, err = net.DialTimeout("tcp", f[1], 1500*time.Millisecond); err == nil {
				c.SetDeadline(time.Now().Add(3 * time.Second))
				got, err = bufio.NewReader(c).ReadString('\n')
				c.Close()
			}
		case "hold": // ADDR: connect and keep
			if held, err = net.DialTimeout("tcp", f[1], 1500*time.Millisecond); err == nil {
				got, err = bufio.NewReader(held).ReadString('\n')
			}
		case "held": // is it alive?
			held.SetDeadline(time.Now().Add(3 * time.Second))
			fmt.Fprintf(held, "ping\n")
			got, err = bufio.NewReader(held).ReadString('\n')
		case "udp": // ADDR TEXT: send and wait for the echo
			got, err = datagram(f[1], f[2])
		case "stranger": // ADDR: answer whoever writes
			got, err = stranger(f[1])
		case "familiar": // ADDR STRANGER: let the stranger answer, as one who was spoken to
			err = familiar(f[1], f[2])
		case "forged": // ADDR TO: send to ADDR in TO's name, and to TO in ADDR's
			err = forged(netip.MustParseAddrPort(f[1]), netip.MustParseAddrPort(f[2]))
		case "port-of": // NAME OTHER: ask for OTHER from the port that the gate has asked for NAME from
			err = portOf(f[1], f[2])
		case "bound": // SERVER NAME: ask by way of the device, wherever the server is
			c := &dns.Client{Timeout: 500 * time.Millisecond, Dialer: &net.Dialer{Control: onDevice(Device)}}
			q := new(dns.Msg)
			q.SetQuestion(dns.Fqdn(f[2]), dns.TypeA)
			_, _, err = c.Exchange(q, f[1])
		case "lookup":
			var addrs []string
			r := &net.Resolver{PreferGo: true}
			addrs, err = r.LookupHost(context.Background(), f[1])
			got = strings.Join(addrs, " ")
		case "dns": // SERVER NET NAME TYPE
			c := &dns.Client{Net: f[2], Timeout: 3 * time.Second}
			q := new(dns.Msg)
			q.SetQuestion(dns.Fqdn(f[3]), dns.StringToType[f[4]])
			var m *dns.Msg
			if m, _, err = c.Exchange(q, f[1]); err == nil {
				got = dns.RcodeToString[m.Rcode]
				for _, rr := range m.Answer {
					got += " " + strings.Join(strings.Fields(rr.String()), " ")
				}
			}
		case "flood":
			var c net.Conn
			if c, err = net.Dial("tcp", f[1]); err == nil {
				fmt.Fprintf(c, "flood")
				var n int64
				n, err = io.Copy(io.Discard, c)
				got = fmt.Sprintf("%d MiB in %d ms", n>>20, time.Since(began).Milliseconds())
			}
		case "loopback": // ADDR: a server of the box's own
			var ln net.Listener
			if ln, err = net.Listen("tcp", f[1]); err != nil {
				break
			}
			go func() {
				if c, err := ln.Accept(); err == nil {
					fmt.Fprintln(c, "hello")
					c.Close()
				}
			}()
			var c net.Conn
			if c, err = net.DialTimeout("tcp", f[1], 1500*time.Millisecond); err == nil {
				got, err = bufio.NewReader(c).ReadString('\n')
				c.Close()
			}
			ln.Close()
		case "join": // NETWORK GROUP: a membership report is the kernel's own packet
			var c *net.UDPConn
			ifi, e := net.InterfaceByName(Device)
			if e != nil {
				err = e
				break
			}
			if c, err = net.ListenMulticastUDP(f[1], ifi, &net.UDPAddr{IP: net.ParseIP(f[2]), Port: 9000}); err == nil {
				time.Sleep(300 * time.Millisecond)
				c.Close()
			}
		case "sent": // how many packets the device has sent
			var b []byte
			b, err = os.ReadFile("/proc/net/dev")
			for line := range strings.Lines(string(b)) {
				if w := strings.Fields(line); w[0] == Device+":" {
					got = w[10]
				}
			}
		case "udpread": // ADDR: send, whatever comes of it, and wait
			var c net.Conn
			if c, err = net.Dial("udp", f[1]); err == nil {
				c.Write([]byte("x"))
				c.SetReadDeadline(time.Now().Add(time.Second))
				_, err = c.Read(make([]byte, 10))
				c.Close()
			}
		case "sh":
			var b []byte
			b, err = exec.Command("sh", "-c", strings.Join(f[1:], " ")).CombinedOutput()
			got = string(b)
		case "sleep":
			var d time.Duration
			d, err = time.ParseDuration(f[1])
			time.Sleep(d)
			got = "slept"
		}
		if err != nil {
			got = "error: " + strings.TrimSpace(got+" "+reason(err))
		}
		if took := time.Since(began); took > 900*time.Millisecond && f[0] != "sleep" && f[0] != "flood" {
			got += fmt.Sprintf(" (after %v)", took.Round(100*time.Millisecond))
		}
		fmt.Printf("%s => %s\n", s, strings.TrimSpace(strings.ReplaceAll(got, "\n", " ")))
	}
	_ = start
	return 0
}

func reason(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	var d *net.DNSError
	if errors.As(err, &d) {
		return d.Err
	}
	return err.Error()
}

func datagram(addr, text string) (string, error) {
	c, err := net.Dial("udp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	b := make([]byte, 2048)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// stranger writes to addr and then answers everyone who writes back.
func stranger(addr string) (heard string, err error) {
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return "", err
	}
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		return "", err
	}
	other := net.ParseIP(otherAddr)
	if to.IP.To4() == nil {
		other = net.ParseIP("2001:db8:113::20")
	}
	defer c.Close()
	c.WriteTo([]byte("stranger"), to)
	end := time.Now().Add(800 * time.Millisecond)
	c.SetReadDeadline(end)
	b := make([]byte, 2048)
	for {
		_, from, err := c.ReadFrom(b)
		if err != nil {
			break
		}
		if from.String() != addr {
			heard += "heard " + from.String()
			c.WriteTo([]byte("secret"), from)
		}
	}
	// The stranger's address is known beforehand, so try that as well.
	c.WriteTo([]byte("secret"), &net.UDPAddr{IP: other, Port: 9001})
	return heard, nil
}
