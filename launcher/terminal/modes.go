package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// fd returns f's descriptor without making f blocking, as f.Fd would.
func fd(f *os.File) int {
	n := -1
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(d uintptr) { n = int(d) })
	}
	return n
}

func getModes(f *os.File) (unix.Termios, error) {
	t, err := unix.IoctlGetTermios(fd(f), ioctlGetModes)
	if err != nil {
		return unix.Termios{}, err
	}
	return *t, nil
}

// setModes sets a terminal's modes, without waiting for its output, which the
// person may have stopped with Ctrl-S. It works from the background too.
func setModes(f *os.File, modes unix.Termios) error {
	return quietly(func() error { return unix.IoctlSetTermios(fd(f), ioctlSetModes, &modes) })
}

// rawModes are modes in which every key is read as it is typed and nothing is
// done to what is printed (termios(3), cfmakeraw). With keepOutput, output is
// still processed.
func rawModes(t unix.Termios, keepOutput bool) unix.Termios {
	t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	if !keepOutput {
		t.Oflag &^= unix.OPOST
	}
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	t.Cflag &^= unix.CSIZE | unix.PARENB
	t.Cflag |= unix.CS8
	t.Cc[unix.VMIN] = 1
	t.Cc[unix.VTIME] = 0
	return t
}

// writer writes to a terminal by its descriptor. Programs that share the
// person's terminal may have made it non-blocking.
type writer int

func (w writer) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		k, err := unix.Write(int(w), p[n:])
		switch err {
		case nil:
			n += k
		case unix.EINTR:
		case unix.EAGAIN:
			unix.Poll([]unix.PollFd{{Fd: int32(w), Events: unix.POLLOUT}}, -1)
		default:
			return n, err
		}
	}
	return len(p), nil
}
