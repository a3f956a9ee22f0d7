package probe

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls makes each of the named system calls once, in a way that harms nobody,
// and prints what the kernel says. "done" is a success; most others cannot
// succeed, and show by their error how far they came.
func calls(names []string, out io.Writer) error {
	for _, name := range names {
		f, ok := tries()[name]
		if !ok {
			return errUsage
		}
		word := "done"
		if err := f(); err != nil {
			word = err.Error()
			var errno syscall.Errno
			if errors.As(err, &errno) {
				word = unix.ErrnoName(errno)
			}
		}
		fmt.Fprintf(out, "%s: %s\n", name, word)
	}
	return nil
}

// nobody is a process that does not exist.
const nobody = 0x3ffffff

func tries() map[string]func() error {
	return map[string]func() error{
		"unix":         family(unix.AF_UNIX, unix.SOCK_STREAM, 0),
		"route":        family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		"vsock":        family(unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		"alg":          family(unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		"netfilter":    family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER),
		"io-uring":     func() error { var params [120]byte; return raw(unix.SYS_IO_URING_SETUP, 8, ptr(&params[0])) },
		"user-clone":   userNamespace,
		"user-unshare": func() error { return raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER) }, // EINVAL: it has threads
		"clone3":       func() error { return raw(unix.SYS_CLONE3, 0, 0) },
		"setns":        func() error { return raw(unix.SYS_SETNS, ^uintptr(0), 0) },
		"keyring":      func() error { return raw(unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, ^uintptr(3), 1) },
		"tiocsti":      func() error { return raw(unix.SYS_IOCTL, 0, unix.TIOCSTI, 0) },
		"tiocsti-high": func() error { return raw(unix.SYS_IOCTL, 0, 1<<32|unix.TIOCSTI, 0) },
		"tioclinux":    func() error { return raw(unix.SYS_IOCTL, 0, unix.TIOCLINUX, 0) },
		"attach":       func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, nobody) },
		"seize":        func() error { return raw(unix.SYS_PTRACE, unix.PTRACE_SEIZE, nobody) },
		"read-other":   func() error { return raw(unix.SYS_PROCESS_VM_READV, nobody) },
		"take-fd":      func() error { return raw(unix.SYS_PIDFD_GETFD, ^uintptr(0), 0) },
		"bpf":          func() error { return raw(unix.SYS_BPF, 0, 0, 0) },
		"perf":         func() error { return raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0) },
		"userfault":    func() error { return raw(unix.SYS_USERFAULTFD, ^uintptr(0)) },
		"mount":        func() error { return raw(unix.SYS_FSOPEN, 0, 0) },
		"module":       func() error { return raw(unix.SYS_FINIT_MODULE, ^uintptr(0), 0, 0) },
		"handle":       func() error { return raw(unix.SYS_OPEN_BY_HANDLE_AT, ^uintptr(0), 0, 0) },
	}
}

func family(domain, kind, proto int) func() error {
	return func() error {
		fd, err := unix.Socket(domain, kind, proto)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
}

func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	fd, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if number == unix.SYS_IO_URING_SETUP {
		unix.Close(int(fd))
	}
	return nil
}

func ptr(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }

// userNamespace starts a program in a user namespace of its own.
func userNamespace() error {
	cmd := exec.Command("/proc/self/exe", Stage)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	err := cmd.Start()
	if err == nil {
		cmd.Wait()
	}
	return err
}
