package terminal

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

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

// await waits until one of fds is ready, for d at most when that is not
// negative, and returns how many are.
func await(fds []unix.PollFd, d time.Duration) (int, error) {
	var timeout *unix.Timespec
	if d >= 0 {
		t := unix.NsecToTimespec(int64(d))
		timeout = &t
	}
	for {
		n, err := unix.Ppoll(fds, timeout, nil)
		if err != unix.EINTR {
			return n, err
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

// stopGroup sends a stop signal to kgate's whole process group, kgate included,
// as the terminal would, and returns when kgate has been continued. The runtime
// keeps its handler for a signal that was once asked for, so the action is
// changed below it for the moment: ignored while the group is told, then the
// default for a signal to this thread alone, which is acted upon before the call
// returns. A signal to the group could stop any thread, before or after.
func stopGroup(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const ignore, byDefault = 1, 0
	var old [8]uintptr
	err := setAction(sig, &[8]uintptr{ignore}, &old)
	syscall.Kill(0, sig)
	if err == nil {
		setAction(sig, &[8]uintptr{byDefault}, nil)
	}
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	if err == nil {
		setAction(sig, &old, nil)
	}
}

// setAction is rt_sigaction(2). The kernel's structure begins with the handler
// and is shorter than eight words.
func setAction(sig syscall.Signal, set, old *[8]uintptr) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig),
		uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
