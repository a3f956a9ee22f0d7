package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// namespaces are a network namespace and the user namespace that owns it.
type namespaces struct {
	net, user *os.File
	inode     uint64
}

func (n *namespaces) Close() {
	n.net.Close()
	n.user.Close()
}

// openNamespaces opens the network namespace of a process. bwrap's command
// lives in another user namespace than the owner of that network namespace, so
// the owner is asked of the kernel (ioctl_ns(2), NS_GET_USERNS).
func openNamespaces(pid int) (*namespaces, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("open the box's network namespace: %w", err)
	}
	fd, err := unix.IoctlRetInt(int(f.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("find the owner of the box's network namespace: %w: a bubblewrap that is setuid root makes namespaces that kgate may not enter", err)
	}
	unix.CloseOnExec(fd)
	n := &namespaces{net: f, user: os.NewFile(uintptr(fd), "user namespace")}
	var box, own unix.Stat_t
	if err = unix.Fstat(int(f.Fd()), &box); err == nil {
		err = unix.Stat("/proc/self/ns/net", &own)
	}
	if err == nil && box.Ino == own.Ino {
		err = errors.New("it is kgate's own: the box has no network namespace")
	}
	if err != nil {
		n.Close()
		return nil, fmt.Errorf("check the box's network namespace: %w", err)
	}
	n.inode = box.Ino
	return n, nil
}

// mapped waits until the user namespace has its maps. bwrap prints its child's
// pid before the child has written them, and a process that enters earlier is
// nobody there and loses every capability when it executes the gate.
func mapped(ctx context.Context, pid int) error {
	for {
		done := true
		for _, name := range []string{"gid_map", "uid_map"} {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err != nil {
				return fmt.Errorf("wait for the box's user namespace: %w", err)
			}
			done = done && len(data) > 0
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the box's user namespace: %w", ctx.Err())
		case <-time.After(100 * time.Microsecond):
		}
	}
}

// pipes are the pipes between kgate and its helpers.
type pipes struct {
	ordersIn, ordersOut *os.File // to the gate
	eventsIn, eventsOut *os.File // from the gate
	readyIn, readyOut   *os.File // from slirp4netns
	exitIn, exitOut     *os.File // to slirp4netns
}

func newPipes() (*pipes, error) {
	p := &pipes{}
	for _, ends := range [][2]**os.File{
		{&p.ordersIn, &p.ordersOut}, {&p.eventsIn, &p.eventsOut}, {&p.readyIn, &p.readyOut}, {&p.exitIn, &p.exitOut},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range []*os.File{p.ordersIn, p.ordersOut, p.eventsIn, p.eventsOut, p.readyIn, p.readyOut, p.exitIn, p.exitOut} {
				if f != nil {
					f.Close()
				}
			}
			return nil, fmt.Errorf("make a pipe to the host filter's helpers: %w", err)
		}
		*ends[0], *ends[1] = r, w
	}
	return p, nil
}

// closeOthers closes the helpers' ends. It may be called more than once.
func (p *pipes) closeOthers() {
	for _, f := range []*os.File{p.ordersIn, p.eventsOut, p.readyOut, p.exitIn} {
		f.Close()
	}
}
