package hostfilter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// gate is the process that makes the filter and answers lookups.
type gate struct {
	orders orders
	config Config
	events chan event
	names  *names
	table  *table
	// bare means that ip6tables does not work here, and IPv6 is turned off for
	// the device instead.
	bare bool
	up   *upstream
}

// Gate is the main function of the gate process. Attach starts it, entered into
// the namespaces, to die with kgate: entering a namespace of one's own leaves the
// death signal as it is. It returns an exit status.
func Gate() int {
	for fd := fdOrders; fd <= fdSelf; fd++ {
		unix.CloseOnExec(fd)
	}
	in, out, err := gatePipes()
	if err != nil {
		fmt.Fprintf(os.Stderr, "kgate: %v\n", err)
		return 2
	}
	unix.Close(fdUser)
	unix.Close(fdNet)
	unix.Close(fdSelf)
	g := &gate{events: make(chan event, 256)}
	flushed := make(chan struct{})
	go g.report(out, flushed)
	err = g.serve(in)
	if err != nil {
		f := asFault(err)
		g.events <- event{Kind: eventFault, Text: f.Err.Error(), Row: f.Row, Mend: f.Mend}
	}
	close(g.events)
	<-flushed
	if err != nil {
		return 1
	}
	return 0
}

// gatePipes returns the two pipes to Attach, or an error when a person has
// started the gate.
func gatePipes() (in, out *os.File, err error) {
	for _, fd := range []int{fdOrders, fdEvents} {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
			return nil, nil, errors.New(GateName + " is a part of kgate run and does nothing on its own")
		}
	}
	return os.NewFile(fdOrders, "orders"), os.NewFile(fdEvents, "events"), nil
}

// report writes events until the channel is closed.
func (g *gate) report(out *os.File, done chan<- struct{}) {
	defer close(done)
	enc := json.NewEncoder(out)
	for e := range g.events {
		if enc.Encode(e) != nil {
			return // kgate is gone, and so will this process be
		}
	}
}

// refuse reports a refusal, or drops the report when kgate does not keep up: a
// flood of refusals must not hold lookups back.
func (g *gate) refuse(name, reason string) {
	select {
	case g.events <- event{Kind: eventRefused, Name: name, Text: reason}:
	default:
	}
}

// place returns an error unless this process is in the one network namespace
// that it was told to filter, and its parent is not.
func (o orders) place() error {
	var own, parent unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &own); err != nil {
		return fmt.Errorf("look at the gate's network namespace: %w", err)
	}
	if own.Ino != o.Net {
		return errors.New("the gate is not in the box's network namespace")
	}
	err := unix.Stat(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()), &parent)
	if err == nil && parent.Ino == own.Ino && parent.Dev == own.Dev {
		return errors.New("the gate is in its parent's network namespace")
	}
	return nil
}

// serve does what the orders say and returns when they end.
func (g *gate) serve(in *os.File) error {
	r := bufio.NewReaderSize(in, 1<<16)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read the gate's orders: %w", err)
	}
	if err := json.Unmarshal(line, &g.orders); err != nil {
		return fmt.Errorf("read the gate's orders: %w", err)
	}
	if err := g.orders.place(); err != nil {
		return err
	}
	g.config = Config{Hosts: g.orders.Hosts, IPv6: g.orders.IPv6}
	filterTimes = g.orders.Times
	leaveOut(g.orders.Omit)

	tap, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		if _, err := r.ReadBytes('\n'); err != nil {
			return
		}
		close(tap)
		r.ReadBytes('\n')
	}()
	ready := make(chan error, 1)
	go func() { ready <- g.setUp(tap, gone) }()
	select {
	case <-gone:
		return nil
	case err := <-ready:
		if err != nil {
			return err
		}
	}
	g.events <- event{Kind: eventReady}
	<-gone
	return nil
}

// setUp makes the filter, then the device usable, then resolves and opens.
func (g *gate) setUp(tap, gone <-chan struct{}) error {
	g.up = newUpstream(g.orders.Server)
	g.table = newTable(nil, g.config.fixed(), func(err error) { g.refuse("", "close addresses whose time is over: "+err.Error()) })
	g.names = newNames(g.config, g.orders.Own, g.up, g.table, g.refuse)
	if err := g.listen(); err != nil {
		return err
	}
	filters, err := g.restore()
	if err != nil {
		return err
	}
	g.events <- event{Kind: eventRules}
	for family, f := range filters {
		if n, err := newNFT(family); err == nil {
			filters[family] = n
		} else if len(g.names.list.names) > 0 {
			f.(*restorer).prepare()
		}
	}
	g.table.filters = filters
	select {
	case <-tap:
	case <-gone:
		return nil
	}
	if g.bare {
		// Made before the default was set, perhaps.
		if err := withoutIPv6(Device); err != nil {
			return fault(RowFilter6, mendFilter, "IPv6 cannot be turned off: %w", err)
		}
	}
	if err := configure(g.orders.MTU, g.orders.IPv6); err != nil {
		return err
	}
	proven := make(chan error, 1)
	go func() { proven <- g.prove() }()
	if err := g.resolve(); err != nil {
		return err
	}
	if err := <-proven; err != nil {
		return err
	}
	go g.table.run(gone)
	return nil
}

// restore installs both families' rules side by side.
func (g *gate) restore() (map[int]changer, error) {
	rules := Rules(g.config)
	var (
		wg     sync.WaitGroup
		r4, r6 *restorer
		e4, e6 error
	)
	wg.Go(func() { r4, e4 = newRestorer(g.orders.Tools.Restore, rules, 4) })
	if len(g.orders.Tools.Restore6) > 0 {
		wg.Go(func() { r6, e6 = newRestorer(g.orders.Tools.Restore6, rules, 6) })
	} else {
		e6 = errors.New("ip6tables-restore is not installed")
	}
	wg.Wait()
	if e4 != nil {
		return nil, &Fault{RowFilter, e4, mendFilter}
	}
	filters := map[int]changer{4: r4}
	switch {
	case e6 == nil && g.orders.IPv6:
		filters[6] = r6
	case e6 != nil && g.orders.IPv6:
		return nil, &Fault{RowFilter6, e6, mendFilter6}
	case e6 != nil:
		// Devices that are made later start with the default's value.
		g.bare = true
		if err := withoutIPv6("default"); err != nil {
			return nil, fault(RowFilter6, mendFilter, "%w; and IPv6 cannot be turned off otherwise: %w", e6, err)
		}
	}
	return filters, nil
}

// listen starts answering lookups.
func (g *gate) listen() error {
	hosts := []string{"127.0.0.1"}
	if g.orders.IPv6 {
		hosts = append(hosts, "::1")
	}
	for _, h := range hosts {
		addr := net.JoinHostPort(h, fmt.Sprint(gatePort))
		udp, err := net.ListenPacket("udp", addr)
		if err != nil {
			return fmt.Errorf("listen for lookups: %w", err)
		}
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("listen for lookups: %w", err)
		}
		idle := func() time.Duration { return 5 * time.Second }
		for _, s := range []*dns.Server{
			{PacketConn: udp, Handler: g.names, MsgAcceptFunc: accept},
			{Listener: &fewConns{Listener: tcp, free: make(chan struct{}, 32)}, Handler: g.names, MsgAcceptFunc: accept,
				IdleTimeout: idle, MaxTCPQueries: 64},
		} {
			go s.ActivateAndServe()
		}
	}
	return nil
}

// accept takes questions and leaves everything else unanswered.
func accept(h dns.Header) dns.MsgAcceptAction {
	if a := dns.DefaultMsgAcceptFunc(h); a != dns.MsgAccept {
		return dns.MsgIgnore
	}
	return dns.MsgAccept
}

// fewConns is a listener that has a bounded number of connections open.
type fewConns struct {
	net.Listener
	free chan struct{}
}

type fewConn struct {
	net.Conn
	once sync.Once
	free chan struct{}
}

func (l *fewConns) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &fewConn{Conn: c, free: l.free}, nil
}

func (c *fewConn) Close() error {
	c.once.Do(func() { <-c.free })
	return c.Conn.Close()
}

// resolve looks every listed name up and opens what comes of it. It returns an
// error that names each name without an IPv4 address.
func (g *gate) resolve() error {
	l := g.names.list
	if len(l.names) == 0 {
		return nil
	}
	var qs []*question
	for _, name := range l.names {
		qs = append(qs, &question{name: name, qtype: dns.TypeA})
		if g.orders.IPv6 {
			qs = append(qs, &question{name: name, qtype: dns.TypeAAAA})
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), filterTimes.Resolve)
	defer cancel()
	g.up.askAll(ctx, qs)

	var faults []string
	row, mend := RowHosts, mendHosts
	requests := make([]openRequest, 0, len(qs))
	for _, q := range qs {
		addrs, bad := g.names.sift(&q.answer)
		for _, b := range bad {
			g.refuse(q.name, b)
		}
		switch {
		case len(addrs) > 0 || len(q.addrs) > 0:
			requests = append(requests, request(addrs, l.ports(q.name), q.ttl))
		case q.qtype == dns.TypeAAAA: // a name need not have one
		case errors.Is(q.err, errSilent):
			row, mend = RowResolver, mendResolver
			faults = append(faults, fmt.Sprintf("%s: no answer within %v", q.name, filterTimes.Resolve))
		case q.err != nil:
			faults = append(faults, fmt.Sprintf("%s: %v", q.name, q.err))
		case len(bad) > 0:
			faults = append(faults, fmt.Sprintf("%s: %s, which opens only when the address itself is listed", q.name, strings.Join(bad, "; ")))
		default:
			faults = append(faults, fmt.Sprintf("%s %s", q.name, q.result(q.qtype)))
		}
	}
	if len(faults) > 0 {
		return &Fault{row, errors.New(some(faults, 8)), mend}
	}
	return g.table.openAll(requests)
}

// some joins the first n of many.
func some(all []string, n int) string {
	if len(all) > n {
		return fmt.Sprintf("%s; and %d more", strings.Join(all[:n], "; "), len(all)-n)
	}
	return strings.Join(all, "; ")
}
