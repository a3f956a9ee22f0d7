package terminal

import (
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	ioctlGetModes = unix.TIOCGETA
	ioctlSetModes = unix.TIOCSETA
)

// quietly calls f with SIGTTOU ignored, so that f may change a terminal from
// its background.
func quietly(f func() error) error {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// await waits until one of fds is ready, for d at most when that is not
// negative, and returns how many are.
func await(fds []unix.PollFd, d time.Duration) (int, error) {
	ms := -1
	if d >= 0 {
		ms = max(1, int(d.Milliseconds()))
	}
	for {
		n, err := unix.Poll(fds, ms)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// closeOthers marks every descriptor from n on to be closed when a program is
// executed.
func closeOthers(n int) error {
	for ; n < 1024; n++ {
		syscall.CloseOnExec(n)
	}
	return nil
}

// stopGroup sends a stop signal to kgate's whole process group, and stops kgate
// itself if there is somebody to continue it.
func stopGroup(sig syscall.Signal) {
	syscall.Kill(0, sig)
	if syscall.Getppid() != 1 {
		syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
	}
}
