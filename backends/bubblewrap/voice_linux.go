package bubblewrap

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// voice carries standard error out of the box and keeps apart what bwrap itself
// says there before the command runs. bwrap and the command share the one
// stream, and only when everything is over is it known whether there was a
// command: until then, output that begins like bwrap's is kept.
type voice struct {
	errs *os.File   // what bwrap gets as standard error
	both bool       // and as standard output
	own  []*os.File // to be closed once bwrap has them

	from, to int // descriptors; to is -1 when nobody listens
	kept     []byte
	done     chan struct{}
	running  func() bool
}

var prefix = []byte("bwrap: ")

// keepMost is how much is kept before it cannot be bwrap's any more.
const keepMost = 16 << 10

// listen makes the way for standard error. A terminal is passed as it is: a pipe
// in between would not be one.
func listen(out, errs *os.File, running func() bool) (*voice, error) {
	v := &voice{from: -1, to: -1, running: running}
	if errs != nil {
		fd := int(errs.Fd())
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
			v.errs = errs
			return v, nil
		}
		to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, err
		}
		v.to = to
		v.both = out == errs
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		unix.Close(v.to)
		return nil, err
	}
	v.from = p[0]
	v.errs = os.NewFile(uintptr(p[1]), "stderr")
	v.own = []*os.File{v.errs}
	v.done = make(chan struct{})
	go v.carry()
	return v, nil
}

// carry copies until the last holder of the other end is gone.
func (v *voice) carry() {
	defer close(v.done)
	defer unix.Close(v.from)
	buf := make([]byte, keepMost)
	for {
		if len(v.kept) > 0 && !v.readable(20) {
			if v.running() {
				break
			}
			continue
		}
		n, err := unix.Read(v.from, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return
		}
		v.kept = append(v.kept, buf[:n]...)
		if !bytes.HasPrefix(v.kept, prefix[:min(len(prefix), len(v.kept))]) || len(v.kept) >= keepMost {
			break
		}
	}
	if !v.pass() {
		return
	}
	for v.to >= 0 {
		n, err := unix.Splice(v.from, nil, v.to, nil, 1<<20, unix.SPLICE_F_MOVE)
		switch {
		case err == unix.EINTR:
		case err == unix.EINVAL:
			v.copy(buf)
			return
		case err != nil || n == 0:
			return
		}
	}
	v.copy(buf)
}

// copy is for what splice(2) cannot write to.
func (v *voice) copy(buf []byte) {
	for {
		n, err := unix.Read(v.from, buf)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 {
			return
		}
		v.kept = append(v.kept[:0], buf[:n]...)
		if !v.pass() {
			return
		}
	}
}

// pass writes what was kept, and says whether there is still a reader.
func (v *voice) pass() bool {
	data := v.kept
	v.kept = nil
	for v.to >= 0 && len(data) > 0 {
		n, err := unix.Write(v.to, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false
		}
		data = data[n:]
	}
	return true
}

func (v *voice) readable(ms int) bool {
	fds := []unix.PollFd{{Fd: int32(v.from), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, ms)
	return err == nil && n > 0
}

// finish waits for the stream's end and returns what bwrap said in place of a
// command. With a command, what was kept was its own.
func (v *voice) finish(ran func() bool) string {
	if v.done == nil {
		return ""
	}
	<-v.done
	words := ""
	if ran() {
		v.pass()
	} else {
		words = string(v.kept)
	}
	if v.to >= 0 {
		unix.Close(v.to)
	}
	return words
}

// drop is finish for a box that was never started.
func (v *voice) drop() {
	if v == nil {
		return
	}
	for _, f := range v.own {
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) && err != io.EOF {
			continue
		}
	}
	v.finish(func() bool { return false })
}
