package hostfilter

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Filter is a host filter around one network namespace.
type Filter struct {
	gate, slirp *child
	orders      *os.File // the gate ends when this is closed
	exit        *os.File // slirp4netns ends when this is closed
	done        chan error
	closing     atomic.Bool
	closed      sync.Once
	events      chan struct{} // closed when no more events come
}

// Attach puts a filter around the network namespace of the process pid, which
// bwrap has made and holds back, and returns when the filter is complete: the
// command may be released then and not before. pid must be bwrap's child-pid.
// On an error nothing of the filter is left, and the command must not be
// released.
func Attach(ctx context.Context, c Config, pid int) (*Filter, error) {
	if c.Tools.Slirp == "" && c.Tools.Nsenter == "" && len(c.Tools.Restore) == 0 {
		c.Tools = FindTools(OnPath)
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := c.Tools.Check(c.IPv6); err != nil {
		return nil, err
	}
	o := orders{Hosts: c.Hosts, IPv6: c.IPv6, MTU: c.mtu(), Tools: c.Tools, Times: filterTimes, Omit: omitted()}
	var err error
	if o.Server, err = c.Resolver.reach(c.IPv6); err != nil && c.looksUp() {
		return nil, &Fault{RowResolver, err, mendResolver}
	}
	if o.Own, err = ownAddresses(); err != nil {
		return nil, err
	}
	ns, err := openNamespaces(pid)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	o.Net = ns.inode
	ctx, cancel := context.WithTimeout(ctx, filterTimes.Attach)
	defer cancel()

	f := &Filter{done: make(chan error, 1), events: make(chan struct{})}
	if err := f.attach(ctx, c, o, ns, pid); err != nil {
		f.Close()
		return nil, err
	}
	go f.watch()
	return f, nil
}

// looksUp says whether any entry is a name.
func (c Config) looksUp() bool {
	for _, h := range c.Hosts {
		if !h.Addr.IsValid() {
			return true
		}
	}
	return false
}

// helperEnv is all of the environment that the helpers get.
var helperEnv = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}

// attach starts both helpers and waits for both. The gate comes first: it takes
// longer to get ready.
func (f *Filter) attach(ctx context.Context, c Config, o orders, ns *namespaces, pid int) error {
	self, err := os.OpenFile("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		return fmt.Errorf("open kgate's own executable: %w", err)
	}
	defer self.Close()
	p, err := newPipes()
	if err != nil {
		return err
	}
	listening := false
	defer func() {
		p.closeOthers()
		if !listening {
			p.readyIn.Close()
			p.eventsIn.Close()
		}
	}()
	f.orders, f.exit = p.ordersOut, p.exitOut

	if err := mapped(ctx, pid); err != nil {
		return err
	}
	f.gate, err = start(RowEnter, command{argv: gateArgv(c.Tools), env: helperEnv,
		files: []*os.File{p.ordersIn, p.eventsOut, ns.user, ns.net, self}})
	if err != nil {
		return err
	}
	f.slirp, err = start(RowSlirp, command{argv: append([]string{c.Tools.Slirp}, slirpArgs(c)...), env: helperEnv,
		files: []*os.File{p.readyOut, p.exitIn, ns.user, ns.net}})
	if err != nil {
		return err
	}
	p.closeOthers() // or their ends would never come

	line, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("write the gate's orders: %w", err)
	}
	listening = true
	tap, ready := make(chan error, 1), make(chan error, 1)
	go func() { tap <- f.give(line, p.readyIn) }()
	go f.listen(p.eventsIn, c.Verbose, ready)
	var slirpGone <-chan struct{}
	for {
		select {
		case err := <-tap:
			if err != nil {
				return err
			}
			slirpGone = f.slirp.gone
		case <-slirpGone:
			return slirpFault(f.slirp.fault("before the command started"))
		case err := <-ready:
			return err
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fault(RowAttach, "", "not complete after %v", filterTimes.Attach)
			}
			return ctx.Err()
		}
	}
}

// give hands the gate its orders and then the news that the device exists. It
// returns an error when slirp4netns has failed. End of file on the ready
// descriptor is what a slirp4netns that dies leaves.
func (f *Filter) give(line []byte, ready *os.File) error {
	defer ready.Close()
	f.orders.Write(append(line, '\n')) // if the gate is gone, listen says so
	var b [1]byte
	if n, _ := ready.Read(b[:]); n != 1 {
		<-f.slirp.gone
		return slirpFault(f.slirp.fault("before it was ready"))
	}
	f.orders.Write([]byte("tap\n"))
	return nil
}

// listen reads the gate's events until the gate is gone. ready gets the result
// of the launch; refusals go to w.
func (f *Filter) listen(in *os.File, w io.Writer, ready chan<- error) {
	defer close(f.events)
	defer in.Close()
	said := map[event]bool{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	settled := false
	settle := func(err error) {
		if !settled {
			settled = true
			ready <- err
		}
	}
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Kind {
		case eventReady:
			settle(nil)
		case eventFault:
			settle(&Fault{e.Row, errors.New(e.Text), e.Mend})
		case eventRefused:
			// Once each: a program asks many times.
			if w == nil || said[e] || len(said) == maxSaid {
				continue
			}
			said[e] = true
			if e.Name == "" {
				fmt.Fprintf(w, "kgate: host filter: %s\n", quote(e.Text))
			} else {
				fmt.Fprintf(w, "kgate: refused %s: %s\n", quote(e.Name), quote(e.Text))
			}
		}
	}
	<-f.gate.gone
	settle(&Fault{RowEnter, f.gate.fault("before the filter was complete"), ""})
}

// slirpFault finds the row that slirp4netns' own words belong to.
func slirpFault(err error) error {
	switch said := err.Error(); {
	case strings.Contains(said, "/dev/net/tun"), strings.Contains(said, "TUNSETIFF"):
		return &Fault{RowTun, fmt.Errorf("slirp4netns: %w", err), mendTun}
	case strings.Contains(said, "unrecognized option"), strings.Contains(said, "invalid option"):
		return &Fault{RowSlirp, err, "install slirp4netns 0.4 or later"}
	}
	return &Fault{RowSlirp, err, "run slirp4netns by hand to see more"}
}

// maxSaid is how many different refusals one launch prints.
const maxSaid = 1000

// quote keeps bytes that drive a terminal, which a name may be made of, out of
// a message.
func quote(s string) string {
	q := fmt.Sprintf("%q", s)
	return q[1 : len(q)-1]
}

// watch reports the end of a helper.
func (f *Filter) watch() {
	var err error
	select {
	case <-f.gate.gone:
		err = fmt.Errorf("the gate: %w: names are not looked up any more", f.gate.fault("while the command ran"))
	case <-f.slirp.gone:
		err = fmt.Errorf("slirp4netns: %w: the command has no network any more", f.slirp.fault("while the command ran"))
	}
	if !f.closing.Load() {
		f.done <- err
	}
}

// Done gives an error if a part of the filter ends while the command runs. The
// network is closed from then on, as far as that part opened it: the packet
// filter is the kernel's and stays.
func (f *Filter) Done() <-chan error { return f.done }

// Close ends both helpers and waits for them. It is called when the box is
// gone. It may be called more than once.
func (f *Filter) Close() {
	f.closed.Do(func() {
		f.closing.Store(true)
		for _, p := range []*os.File{f.orders, f.exit} {
			if p != nil {
				p.Close()
			}
		}
		helpers := []*child{f.gate, f.slirp}
		for _, c := range helpers {
			if c != nil {
				c.kill()
			}
		}
		for _, c := range helpers {
			if c != nil {
				<-c.gone
			}
		}
	})
}

// ownAddresses are the addresses of this machine's interfaces.
func ownAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list the machine's own addresses: %w", err)
	}
	var own []netip.Addr
	for _, a := range all {
		if p, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(p.IP); ok {
				own = append(own, ip.Unmap())
			}
		}
	}
	return own, nil
}
