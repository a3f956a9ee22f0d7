// Package probe is the client that scenarios put into the box: it tries one
// thing on the network, says what came of it, and has no rights but those of
// whoever runs it. Programs that people use for this are denied in the box, and
// may not be on the machine at all.
package probe

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Name is the name under which kgate's own file is this client, and Stage the
// first argument that does the same.
const (
	Name  = "kgate-probe"
	Stage = "verify-probe"
)

// Statuses of the client.
const (
	Answered = 0
	Refused  = 1 // or nothing came in time
	Usage    = 2
	notReady = 3 // an attack could not be made at all; a crash of Go's is 2
)

const usage = `usage: kgate-probe [-t D] tcp HOST PORT [TEXT]
       kgate-probe [-t D] udp HOST PORT [TEXT]
       kgate-probe [-t D] dns NAME [TYPE]
       kgate-probe [-t D] dns@ADDR [-tcp] NAME [TYPE]
       kgate-probe [-t D] http URL
       kgate-probe [-t D] hold HOST PORT FILE
       kgate-probe [-t D] knock HOST PORT
       kgate-probe join GROUP
       kgate-probe call NAME...
       kgate-probe [-t D] self PORT [ADDR]
       kgate-probe listen [datagram:|packets:]PATH...
       kgate-probe give PATH FILE
       kgate-probe hand KIND[=PATH]... -- PROGRAM [ARG...]
       kgate-probe [-t D] unix PATH
       kgate-probe exec PROGRAM [ARG...]
       kgate-probe attack [NAME:]ATTACK[=ARG]...
       kgate-probe send [NAME:]HOW=ADDR,PORT...
       kgate-probe own PROGRAM [ARG...]
       kgate-probe [-t D] terminal [modes=NAME] [input=NAME] [type=TEXT] -- PROGRAM [ARG...]
       kgate-probe [-t D] swap PATH PATH FILE
       kgate-probe key NAME
`

// Main runs the client if argv is for it.
func Main(argv []string) (status int, ok bool) {
	switch {
	case len(argv) > 0 && filepath.Base(argv[0]) == Name:
		return Run(argv[1:], os.Stdout, os.Stderr), true
	case len(argv) > 1 && argv[1] == Stage:
		return Run(argv[2:], os.Stdout, os.Stderr), true
	}
	return 0, false
}

var errUsage = errors.New("usage")

// Run does what args say and returns the exit status.
func Run(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet(Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	wait := f.Duration("t", 3*time.Second, "how long to wait for an answer")
	if f.Parse(args) != nil || f.NArg() < 2 {
		fmt.Fprint(stderr, usage)
		return Usage
	}
	ctx, cancel := context.WithTimeout(context.Background(), *wait)
	defer cancel()
	from := time.Now()
	err := run(ctx, f.Args(), stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(stderr, usage)
		return Usage
	case errors.Is(err, errUnready):
		fmt.Fprintf(stderr, "kgate-probe: %v\n", err)
		return notReady
	case err != nil:
		fmt.Fprintf(stderr, "kgate-probe: %v (after %v)\n", err, time.Since(from).Round(time.Millisecond))
		return Refused
	}
	return Answered
}

func run(ctx context.Context, args []string, out io.Writer) error {
	kind, args := args[0], args[1:]
	server, at := strings.CutPrefix(kind, "dns@")
	switch {
	case (kind == "tcp" || kind == "udp") && (len(args) == 2 || len(args) == 3):
		text := "hello"
		if len(args) == 3 {
			text = args[2]
		}
		return talk(ctx, kind, args[0], args[1], text, len(args) == 3, out)
	case kind == "hold" && len(args) == 3:
		return hold(ctx, args[0], args[1], args[2], out)
	case kind == "self" && len(args) == 1:
		return self(ctx, "127.0.0.1", args[0], out)
	case kind == "self" && len(args) == 2:
		return self(ctx, args[1], args[0], out)
	case kind == "join" && len(args) == 1:
		return join(ctx, args[0], out)
	case kind == "knock" && len(args) == 2:
		return knock(ctx, args[0], args[1], out)
	case kind == "listen" && len(args) > 0:
		return listen(args, out)
	case kind == "give" && len(args) == 2:
		return giveFile(args[0], args[1], out)
	case kind == "hand":
		return hand(args)
	case kind == "unix" && len(args) == 1:
		return local(ctx, args[0], out)
	case kind == "call" && len(args) > 0:
		return calls(args, out)
	case kind == "send" && len(args) > 0:
		return send(ctx, args, out)
	case kind == "attack" && len(args) > 0:
		return attacks(ctx, args, out)
	case kind == "attack-alone" && len(args) == 1:
		return alone(ctx, args[0])
	case kind == "own":
		return own(args)
	case kind == "own-inner" && len(args) > 0:
		return ownInner(args)
	case kind == "terminal":
		return terminal(ctx, args, out)
	case kind == "terminal-shell":
		return terminalShell(args)
	case kind == "swap" && len(args) == 3:
		return swap(ctx, args[0], args[1], args[2], out)
	case kind == "still":
		return still()
	case kind == "key" && len(args) == 1:
		return plant(args[0])
	case kind == "exec":
		return execute(args)
	case kind == "http" && len(args) == 1:
		return get(ctx, args[0], out)
	case kind == "dns" || at:
		if !at {
			server = "" // resolv.conf's
		}
		network := "udp"
		if args[0] == "-tcp" {
			network, args = "tcp", args[1:]
		}
		if len(args) == 0 || len(args) > 2 {
			return errUsage
		}
		return ask(ctx, server, network, args, out)
	}
	return errUsage
}

func dial(ctx context.Context, network, host, port string) (net.Conn, error) {
	d := net.Dialer{Resolver: &net.Resolver{PreferGo: true}}
	c, err := d.DialContext(ctx, network, net.JoinHostPort(host, port))
	if err != nil {
		return nil, err
	}
	if end, ok := ctx.Deadline(); ok {
		c.SetDeadline(end)
	}
	return c, nil
}

// talk sends a line and prints the first that comes back. A TCP server may
// speak first.
func talk(ctx context.Context, network, host, port, text string, always bool, out io.Writer) error {
	c, err := dial(ctx, network, host, port)
	if err != nil {
		return err
	}
	defer c.Close()
	if network == "udp" || always {
		if _, err := fmt.Fprintf(c, "%s\n", text); err != nil {
			return errors.Join(err, told(c, network))
		}
	}
	if network == "tcp" && !always && (port == "80" || port == "8080") {
		return request(c, host, "/", out)
	}
	buf := make([]byte, 64<<10)
	n, err := c.Read(buf)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", strings.TrimSpace(string(buf[:n])))
	return err
}

// self talks to a server of its own on the loopback.
func self(ctx context.Context, at, port string, out io.Writer) error {
	l, err := net.Listen("tcp", net.JoinHostPort(at, port))
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			fmt.Fprintln(c, "hello from myself")
			c.Close()
		}
	}()
	return talk(ctx, "tcp", at, port, "", false, out)
}

// told returns what a socket is told about a datagram that was not let out: a
// filter that only drops it says nothing.
func told(c net.Conn, network string) error {
	if network != "udp" {
		return nil
	}
	c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return err
}

// knock sends a datagram and waits for one from somebody else, whom it answers.
func knock(ctx context.Context, host, port string, out io.Writer) error {
	to, err := net.ResolveUDPAddr("udp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	c, err := net.ListenUDP("udp", nil)
	if err != nil {
		return err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		c.SetDeadline(end)
	}
	if _, err := c.WriteToUDP([]byte("knock"), to); err != nil {
		return err
	}
	buf := make([]byte, 1024)
	for {
		n, from, err := c.ReadFromUDP(buf)
		if err != nil {
			return err
		}
		if from.IP.Equal(to.IP) {
			continue
		}
		fmt.Fprintf(out, "%s from %s\n", buf[:n], from)
		_, err = c.WriteToUDP([]byte("answer to a stranger"), from)
		return err
	}
}

// hold keeps a connection to an echo open and proves it alive until a file
// appears.
func hold(ctx context.Context, host, port, file string, out io.Writer) error {
	c, err := dial(ctx, "tcp", host, port)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		if _, err := fmt.Fprintf(c, "beat %d\n", n); err != nil {
			return err
		}
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if n == 1 {
			fmt.Fprint(out, line)
		}
		if _, err := os.Stat(file); err == nil {
			_, err = fmt.Fprintf(out, "alive after %d\n", n)
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func get(ctx context.Context, address string, out io.Writer) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return errUsage
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	c, err := dial(ctx, "tcp", u.Hostname(), port)
	if err != nil {
		return err
	}
	defer c.Close()
	path := u.Path
	if path == "" {
		path = "/"
	}
	return request(c, u.Host, path, out)
}

// request asks for a path and prints the body, or its length if it is long.
func request(c net.Conn, host, path string, out io.Writer) error {
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host); err != nil {
		return err
	}
	in := bufio.NewReaderSize(c, 256<<10)
	status, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.Contains(status, " 200 ") {
		return fmt.Errorf("http: %s", strings.TrimSpace(status))
	}
	for line := status; strings.TrimSpace(line) != ""; {
		if line, err = in.ReadString('\n'); err != nil {
			return err
		}
	}
	if strings.HasPrefix(path, "/bytes/") {
		n, err := io.Copy(io.Discard, in)
		fmt.Fprintf(out, "%d bytes\n", n)
		return err
	}
	_, err = io.Copy(out, in)
	return err
}

// ask asks a name server, that of resolv.conf if none is given.
func ask(ctx context.Context, server, network string, args []string, out io.Writer) error {
	kind := dns.TypeA
	if len(args) == 2 {
		var ok bool
		if kind, ok = dns.StringToType[strings.ToUpper(args[1])]; !ok {
			return errUsage
		}
	}
	if server == "" {
		config, err := dns.ClientConfigFromFile("/etc/resolv.conf")
		if err != nil {
			return err
		}
		if len(config.Servers) == 0 {
			return errors.New("dns: resolv.conf names no server")
		}
		server = config.Servers[0]
	}
	q := new(dns.Msg)
	q.SetQuestion(dns.Fqdn(args[0]), kind)
	end, _ := ctx.Deadline()
	c := &dns.Client{Net: network, Timeout: time.Until(end)}
	m, _, err := c.ExchangeContext(ctx, q, net.JoinHostPort(server, "53"))
	if err != nil {
		return err
	}
	if m.Rcode != dns.RcodeSuccess {
		return fmt.Errorf("dns: %s: %s", args[0], dns.RcodeToString[m.Rcode])
	}
	if len(m.Answer) == 0 {
		return fmt.Errorf("dns: %s: no %s record", args[0], dns.TypeToString[kind])
	}
	for _, r := range m.Answer {
		fmt.Fprintln(out, strings.Join(strings.Fields(r.String()), " "))
	}
	return nil
}
