package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// device is the network device of a box: see lab.
const device = "tap0"

// shot is one thing to send.
type shot struct {
	name string
	to   netip.AddrPort
	text []byte // "leak-NAME.", by which a witness knows whose it is
}

// sender sends a shot and says how far the kernel let it. Whether it left is for
// the witnesses to say.
type sender func(ctx context.Context, s shot) error

// send sends what each of [NAME:]HOW=ADDR,PORT asks for, all at the same time, and
// prints a line for each. A refusal is no error. It sends nothing where there is
// any other network than that of a box.
func send(ctx context.Context, specs []string, out io.Writer) error {
	if err := boxed(); err != nil {
		return unready(err)
	}
	said := make([]string, len(specs))
	var wg sync.WaitGroup
	for i, spec := range specs {
		name, how, arg := label(spec)
		host, port, _ := strings.Cut(arg, ",")
		addr, err := netip.ParseAddr(host)
		number, errPort := strconv.ParseUint(port, 10, 16)
		f := senders()[how]
		if f == nil || err != nil || errPort != nil {
			return unready(fmt.Errorf("%q is no HOW=ADDR,PORT", spec))
		}
		wg.Go(func() {
			said[i] = "sent " + name
			err := f(ctx, shot{name, netip.AddrPortFrom(addr, uint16(number)), []byte("leak-" + name + ".")})
			if err != nil {
				said[i] = fmt.Sprintf("refused %s: %s", name, oneLine(err.Error()))
			}
		})
	}
	wg.Wait()
	_, err := fmt.Fprintln(out, strings.Join(said, "\n"))
	return err
}

// boxed returns an error unless a box's device is the only network there is.
func boxed() error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 && i.Name != device {
			return fmt.Errorf("there is a network device %s: this sends in a box's network alone", i.Name)
		}
	}
	return nil
}

// step does something with a socket before the shot leaves it.
type step func(fd int, s shot) error

// through sends a shot through a new socket of the address's family.
func through(kind, proto int, steps ...step) sender {
	return func(_ context.Context, s shot) error {
		domain, _ := sockaddr(s.to)
		return with(domain, kind, proto, s, append(slices.Clone(steps), last))
	}
}

// with runs steps on a new socket until one says that the shot has left.
func with(domain, kind, proto int, s shot, steps []step) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(fd)
	for _, do := range steps {
		if err := do(fd, s); errors.Is(err, errSent) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errSent ends a socket's steps: the shot has left it.
var errSent = errors.New("sent")

func done(err error) error {
	if err == nil {
		return errSent
	}
	return err
}

func last(fd int, s shot) error { return flagged(0)(fd, s) }

// flagged sends the shot with flags of send(2).
func flagged(flags int) step {
	return func(fd int, s shot) error {
		_, where := sockaddr(s.to)
		return done(unix.Sendto(fd, s.text, flags, where))
	}
}

// sockaddr keeps a mapped address one: ::ffff:a.b.c.d in a socket of IPv6.
func sockaddr(to netip.AddrPort) (int, unix.Sockaddr) {
	if to.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
	}
	six := &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
	if zone := to.Addr().Zone(); zone != "" {
		six.ZoneId = uint32(deviceNumber(zone))
	}
	return unix.AF_INET6, six
}

// deviceNumber is a network device's, 0 if there is none.
func deviceNumber(name string) int {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return i.Index
}

// connect waits for a connection for less than half a second, and says the shot.
func connect(fd int, s shot) error {
	_, where := sockaddr(s.to)
	if err := connected(fd, where); err != nil {
		return err
	}
	_, err := unix.Write(fd, s.text)
	return done(err)
}

func connected(fd int, where unix.Sockaddr) error {
	err := unix.Connect(fd, where)
	if err == unix.EINPROGRESS {
		err = writable(fd)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// writable waits until a connection is there, or is not to be.
func writable(fd int) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for end := time.Now().Add(400 * time.Millisecond); ; {
		n, err := unix.Poll(fds, int(time.Until(end).Milliseconds()))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.ETIMEDOUT
		}
		no, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && no != 0 {
			err = unix.Errno(no)
		}
		return err
	}
}

// listed is a port of the lab's host that is on the list of whoever attacks, of
// the shot's family.
func (s shot) listed(port uint16) shot {
	host := "2001:db8:77::10"
	if s.to.Addr().Is4() {
		host = "203.0.113.10"
	}
	s.to = netip.AddrPortFrom(netip.MustParseAddr(host), port)
	return s
}

// own is the box's own address, with a port that nobody has, by which the shot
// would leave.
func (s shot) own() (netip.AddrPort, error) {
	var name unix.Sockaddr
	domain, where := sockaddr(s.to)
	err := with(domain, unix.SOCK_DGRAM, 0, s, []step{func(fd int, _ shot) (err error) {
		if err = unix.Connect(fd, where); err == nil {
			name, err = unix.Getsockname(fd)
		}
		return err
	}})
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port)), err
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port)), err
	}
	return netip.AddrPort{}, err
}

// set sets an option to a number, and word to bytes.
func set(level, name, value int) step {
	return func(fd int, _ shot) error { return option(name, unix.SetsockoptInt(fd, level, name, value)) }
}

func word(level, name int, value string) step {
	return func(fd int, _ shot) error { return option(name, unix.SetsockoptString(fd, level, name, value)) }
}

func option(name int, err error) error {
	if err != nil {
		return fmt.Errorf("option %d: %w", name, err)
	}
	return nil
}

// from binds a socket to an address, with port 0 to any port.
func from(place netip.AddrPort) step {
	return func(fd int, _ shot) error {
		_, where := sockaddr(place)
		if err := unix.Bind(fd, where); err != nil {
			return fmt.Errorf("bind %v: %w", place, err)
		}
		return nil
	}
}
