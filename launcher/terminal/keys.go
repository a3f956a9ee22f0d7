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

// keys copies what is typed to the command's terminal while reading is on. It
// waits for keys without reading them, so that it can be told to leave them to
// somebody else, and reads only in the foreground: in the background the keys
// are the shell's, and reading would stop kgate.
func (s *Session) keys() {
	s.mu.Lock()
	reading, wake, master, tty := s.reading, s.wake[0], s.master, fd(s.tty)
	s.mu.Unlock()
	defer unix.Close(wake)
	if reading == nil {
		return
	}
	on := false
	buf := make([]byte, 4096)
	for {
		if on {
			select {
			case v, ok := <-reading:
				if !ok {
					return
				}
				on = v
				continue
			default:
			}
		} else {
			v, ok := <-reading
			if !ok {
				return
			}
			on = v
			continue
		}
		fds := []unix.PollFd{{Fd: int32(tty), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil {
			if err == unix.EINTR {
				continue
			}
			return
		}
		if fds[1].Revents != 0 {
			if n, _ := unix.Read(wake, buf[:1]); n == 0 {
				return
			}
			continue
		}
		if fds[0].Revents&(unix.POLLIN|unix.POLLHUP|unix.POLLERR) == 0 {
			continue
		}
		n, err := unix.Read(tty, buf)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return // the person's terminal is gone
		}
		if _, err := master.Write(buf[:n]); err != nil {
			return
		}
	}
}
