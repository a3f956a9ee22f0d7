package terminal

import (
	"runtime"

	"golang.org/x/sys/unix"
)

const (
	ioctlGetModes = unix.TCGETS
	ioctlSetModes = unix.TCSETS
)

// quietly calls f with SIGTTOU blocked, so that f may change a terminal from
// its background. Ignoring the signal would do too, but a command started
// meanwhile would inherit that.
func quietly(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, old unix.Sigset_t
	n := uint(unix.SIGTTOU) - 1
	block.Val[n/(8*sigsetWord)] |= 1 << (n % (8 * sigsetWord))
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old); err != nil {
		return err
	}
	defer unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// closeOthers marks every descriptor from n on to be closed when a program is
// executed.
func closeOthers(n int) error {
	return unix.CloseRange(uint(n), ^uint(0)>>1&0x7fffffff, unix.CLOSE_RANGE_CLOEXEC)
}

// sigsetWord is the size in bytes of a word of Sigset_t.
const sigsetWord = 8
