package terminal

import (
	"golang.org/x/sys/unix"
)

// read turns the reading of keys on or off. The caller has the lock.
func (s *Session) read(on bool) {
	if s.reading == nil {
		return
	}
	select {
	case <-s.reading:
	default:
	}
	s.reading <- on
	if !on {
		unix.Write(s.wake[1], []byte{0})
	}
}

// copyKeys copies what is typed at tty to the command's terminal, master, while
// reading is on. It waits for keys without reading them, so that it can be told
// to leave them to somebody else. It ends when reading is closed and closes
// master and wake, which are its own.
func copyKeys(tty, master, wake int, reading <-chan bool) {
	defer unix.Close(wake)
	defer unix.Close(master)
	buf := make([]byte, 4096)
	for on := false; ; {
		if !on {
			v, ok := <-reading
			if !ok {
				return
			}
			on = v
			continue
		}
		select {
		case v, ok := <-reading:
			if !ok {
				return
			}
			on = v
			continue
		default:
		}
		ready, woken := awaitOr(wake, tty, unix.POLLIN)
		if woken {
			continue
		}
		if !ready {
			return
		}
		n, err := unix.Read(tty, buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err != nil || n == 0:
			return // the person's terminal is gone
		}
		for typed := buf[:n]; len(typed) > 0; {
			n, err := unix.Write(master, typed)
			switch err {
			case nil:
				typed = typed[n:]
			case unix.EINTR:
			case unix.EAGAIN:
				// The command does not read. What it has been sent waits for it.
				if ready, woken := awaitOr(wake, master, unix.POLLOUT); !ready && !woken {
					return
				}
				select {
				case v, ok := <-reading:
					if !ok {
						return
					}
					on = v
				default:
				}
			default:
				return
			}
		}
	}
}

// awaitOr waits until f is ready or wake is written to. Neither: f cannot be
// waited for, or wake is closed.
func awaitOr(wake, f int, events int16) (ready, woken bool) {
	fds := []unix.PollFd{{Fd: int32(wake), Events: unix.POLLIN}, {Fd: int32(f), Events: events}}
	if _, err := await(fds, -1); err != nil {
		return false, false
	}
	if fds[0].Revents != 0 {
		n, _ := unix.Read(wake, make([]byte, 16))
		return false, n > 0
	}
	return fds[1].Revents&unix.POLLNVAL == 0, false
}
