package probe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelAttacks are parts of the kernel that reach past namespaces, or that are
// the machine's.
func kernelAttacks() map[string]attack {
	return map[string]attack{
		"io-uring":  plain(tries()["io-uring"]),
		"keys-add":  func(context.Context, string) error { return addKey("kgate-attack", keyProcess) },
		"keys-read": func(_ context.Context, name string) error { return readKey(name) },
		"keys-list": func(_ context.Context, name string) error { return contains("/proc/keys", name) },
		"keys-count": func(context.Context, string) error {
			return contains("/proc/key-users", fmt.Sprintf("%5d: ", os.Getuid()))
		},
		"bpf":           bpfMap,
		"perf":          perfCounter,
		"userfault":     func(context.Context, string) error { return call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) },
		"kernel-log":    kernelLog,
		"vsock":         plain(family(unix.AF_VSOCK, unix.SOCK_STREAM, 0)),
		"alg":           plain(family(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)),
		"netfilter":     plain(family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER)),
		"every-family":  everyFamily,
		"every-netlink": everyNetlink,
		"i386":          func(context.Context, string) error { return foreignCall() },
		"user-clone":    plain(userNamespace),
		"user-unshare":  func(context.Context, string) error { return unshared(unix.CLONE_NEWUSER) },
		"clone3":        func(context.Context, string) error { return reached(call(unix.SYS_CLONE3, 0, 0), unix.EINVAL) },
		"module": func(context.Context, string) error {
			text := []byte("no module")
			return reached(call(unix.SYS_INIT_MODULE, ptr(&text[0]), uintptr(len(text)), ptr(&[]byte{0}[0])), unix.ENOEXEC)
		},
		"kexec": func(context.Context, string) error {
			return reached(call(unix.SYS_KEXEC_LOAD, 0, 1<<20, 0, 1<<14), unix.EINVAL)
		},
		"reboot": func(context.Context, string) error { return reached(call(unix.SYS_REBOOT, 0, 0, 0, 0), unix.EINVAL) },
		"swap": func(context.Context, string) error {
			return reached(withPath(unix.SYS_SWAPON, nowhere), unix.ENOENT)
		},
		"accounting": func(context.Context, string) error {
			return reached(withPath(unix.SYS_ACCT, nowhere), unix.ENOENT)
		},
		"handle":       func(_ context.Context, file string) error { return byHandle(file) },
		"sysrq":        func(context.Context, string) error { return opens("/proc/sysrq-trigger") },
		"core-pattern": func(context.Context, string) error { return opens("/proc/sys/kernel/core_pattern") },
		"proc-sys":     func(context.Context, string) error { return anyOpens(settings...) },
		"proc-pressure": func(context.Context, string) error {
			return anyOpens("/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory")
		},
		"sys": func(context.Context, string) error {
			return anyOpens("/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/module/kernel/parameters/panic")
		},
		"cgroup": func(context.Context, string) error {
			return anyOpens("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/cgroup.procs", "/sys/fs/cgroup/unified/cgroup.procs")
		},
		"release-agent": func(context.Context, string) error { return found("/sys/fs/cgroup") },
		"devices":       devices,
		"tun":           func(context.Context, string) error { return opens("/dev/net/tun") },
		"kernel-memory": kernelMemory,
	}
}

func plain(f func() error) attack { return func(context.Context, string) error { return f() } }

// call makes a system call and closes what it opens.
func call(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return result(errno)
}

func withPath(number uintptr, path string) error {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	return call(number, uintptr(unsafe.Pointer(p)))
}

// opens opens a file for writing and writes nothing.
func opens(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	return err
}

func found(file string) error {
	entries, err := os.ReadDir(file)
	if err == nil && len(entries) == 0 {
		err = errors.New(file + " is empty")
	}
	return err
}

// nowhere is a path that no machine has.
const nowhere = "/proc/self/kgate-attack"

// settings are some of those with which a machine can be had or harmed, and some
// that a network namespace has of its own.
var settings = []string{
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/panic", "/proc/sys/kernel/hostname",
	"/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/suid_dumpable", "/proc/sys/fs/file-max",
	"/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_unprivileged_port_start",
	"/proc/sys/net/ipv4/conf/all/forwarding", "/proc/sys/net/ipv6/conf/all/disable_ipv6",
}

// anyOpens looks for a file that opens for writing, and writes nothing to it.
func anyOpens(files ...string) error {
	for _, file := range files {
		if opens(file) == nil {
			return nil
		}
	}
	return fmt.Errorf("none of %s opens for writing", strings.Join(files, ", "))
}

const (
	keyProcess = -2 // KEY_SPEC_PROCESS_KEYRING: gone with this process
	keyUser    = -4 // KEY_SPEC_USER_KEYRING: the person's, whatever process
)

func addKey(name string, ring int) error {
	_, err := unix.AddKey("user", name, []byte("the secret"), ring)
	return err
}

// plant puts a key where all of the person's processes find it, for two minutes.
func plant(name string) error {
	id, err := unix.AddKey("user", name, []byte("the secret"), keyUser)
	if err != nil {
		return err
	}
	_, err = unix.KeyctlInt(unix.KEYCTL_SET_TIMEOUT, id, 120, 0, 0)
	return err
}

func readKey(name string) error {
	id, err := unix.KeyctlSearch(keyUser, "user", name, 0)
	if err != nil {
		return err
	}
	buf := make([]byte, 64)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
	if err == nil && string(buf[:min(n, len(buf))]) != "the secret" {
		err = errors.New("another key")
	}
	return err
}

func contains(file, text string) error {
	content, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(content), text) {
		err = fmt.Errorf("not among %d lines", strings.Count(string(content), "\n"))
	}
	return err
}

// bpfMap makes a map of one number, which closes with this process.
func bpfMap(context.Context, string) error {
	attr := struct{ kind, key, value, entries, flags uint32 }{2, 4, 8, 1, 0} // BPF_MAP_TYPE_ARRAY
	return call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
}

// perfCounter counts page faults of this process alone, in user space.
func perfCounter(context.Context, string) error {
	fd, err := unix.PerfEventOpen(&unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_PAGE_FAULTS,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// kernelLog reads the machine's log: syslog(2).
func kernelLog(context.Context, string) error {
	n, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 1<<16))
	if err == nil && n == 0 {
		err = errors.New("it is empty")
	}
	return err
}

// everyFamily looks for a family beside the four that programs use, those first
// that most kernels have: where there is no filter the rest is not asked for.
func everyFamily(context.Context, string) error {
	domains := []int{unix.AF_VSOCK, unix.AF_ALG, unix.AF_XDP}
	for domain := range 64 {
		if !slices.Contains([]int{unix.AF_UNSPEC, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}, domain) {
			domains = append(domains, domain)
		}
	}
	for _, domain := range domains {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			if family(domain, kind, 0)() == nil {
				return nil
			}
		}
	}
	return errors.New("none of 59 families")
}

func everyNetlink(context.Context, string) error {
	for proto := 1; proto < 32; proto++ {
		if family(unix.AF_NETLINK, unix.SOCK_RAW, proto)() == nil {
			return nil
		}
	}
	return errors.New("none of 31 protocols")
}

// byHandle opens a file by its number: open_by_handle_at(2).
func byHandle(file string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, file, 0)
	if err != nil {
		return err
	}
	mount, err := unix.Open(filepath.Dir(file), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(mount)
	fd, err := unix.OpenByHandleAt(mount, handle, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// harmless are the devices of every box.
var harmless = []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}

// devices looks for a device of the machine.
func devices(context.Context, string) error {
	seen := 0
	var other string
	err := filepath.WalkDir("/dev", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.Type()&fs.ModeDevice == 0 {
			return nil
		}
		seen++
		if rel, _ := filepath.Rel("/dev", name); !slices.Contains(harmless, rel) && !strings.HasPrefix(rel, "pts/") {
			other = name
		}
		return nil
	})
	if err == nil && other == "" {
		err = fmt.Errorf("%d devices, and all are of the harmless ones", seen)
	}
	return err
}

// kernelMemory looks for the machine's memory, or for what the kernel says of it.
// What opens is closed unread: reading some of it takes it away.
func kernelMemory(context.Context, string) error {
	for _, file := range []string{"/dev/mem", "/dev/kmem", "/dev/kmsg", "/proc/kcore", "/proc/kmsg", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/sys/kernel/btf/vmlinux"} {
		if f, err := os.Open(file); err == nil {
			f.Close()
			return nil
		}
	}
	return errors.New("no file shows any")
}
