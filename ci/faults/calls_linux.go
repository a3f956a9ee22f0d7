package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// idle are the calls that a runtime makes when it likes: they are no steps of a
// launch, and their number differs from one to the next.
var idle = map[uint64]bool{
	unix.SYS_FUTEX: true, unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true, unix.SYS_EPOLL_PWAIT: true,
	unix.SYS_SCHED_YIELD: true, unix.SYS_MADVISE: true, unix.SYS_MMAP: true, unix.SYS_MUNMAP: true,
	unix.SYS_RT_SIGACTION: true, unix.SYS_RT_SIGPROCMASK: true, unix.SYS_RT_SIGRETURN: true, unix.SYS_SIGALTSTACK: true,
	unix.SYS_TGKILL: true, unix.SYS_GETPID: true, unix.SYS_GETTID: true, unix.SYS_RESTART_SYSCALL: true,
	unix.SYS_MPROTECT: true, unix.SYS_BRK: true,
}

// names are those of the calls that launches are made of, for reading.
var names = map[uint64]string{
	unix.SYS_READ: "read", unix.SYS_WRITE: "write", unix.SYS_OPENAT: "openat", unix.SYS_CLOSE: "close",
	unix.SYS_CLONE: "clone", unix.SYS_CLONE3: "clone3", unix.SYS_EXECVE: "execve", unix.SYS_WAIT4: "wait4",
	unix.SYS_EXIT: "exit", unix.SYS_EXIT_GROUP: "exit_group", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2",
	unix.SYS_PIVOT_ROOT: "pivot_root", unix.SYS_UNSHARE: "unshare", unix.SYS_SETNS: "setns", unix.SYS_PRCTL: "prctl",
	unix.SYS_SECCOMP: "seccomp", unix.SYS_CAPSET: "capset", unix.SYS_CHDIR: "chdir", unix.SYS_FSTAT: "fstat",
	unix.SYS_FCNTL: "fcntl", unix.SYS_DUP3: "dup3", unix.SYS_PIPE2: "pipe2", unix.SYS_MKDIRAT: "mkdirat",
	unix.SYS_UNLINKAT: "unlinkat", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_FLOCK: "flock",
	unix.SYS_SOCKET: "socket", unix.SYS_BIND: "bind", unix.SYS_CONNECT: "connect", unix.SYS_SENDTO: "sendto",
	unix.SYS_SENDMSG: "sendmsg", unix.SYS_RECVFROM: "recvfrom", unix.SYS_RECVMSG: "recvmsg", unix.SYS_IOCTL: "ioctl",
	unix.SYS_KILL: "kill", unix.SYS_SETSID: "setsid", unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_PPOLL: "ppoll",
	unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64", unix.SYS_READLINKAT: "readlinkat",
	unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_GETDENTS64: "getdents64", unix.SYS_EVENTFD2: "eventfd2",
	unix.SYS_PIDFD_OPEN: "pidfd_open", unix.SYS_PIDFD_SEND_SIGNAL: "pidfd_send_signal", unix.SYS_SPLICE: "splice",
	unix.SYS_EPOLL_CTL: "epoll_ctl", unix.SYS_WAITID: "waitid", unix.SYS_LSEEK: "lseek", unix.SYS_STATX: "statx",
	unix.SYS_FACCESSAT: "faccessat", unix.SYS_FACCESSAT2: "faccessat2", unix.SYS_GETUID: "getuid", unix.SYS_GETEUID: "geteuid",
	unix.SYS_CLOSE_RANGE: "close_range", unix.SYS_SETSOCKOPT: "setsockopt", unix.SYS_PRLIMIT64: "prlimit64", unix.SYS_UMASK: "umask",
	unix.SYS_SETUID: "setuid", unix.SYS_SETGID: "setgid", unix.SYS_SETGROUPS: "setgroups", unix.SYS_SETRESUID: "setresuid",
	unix.SYS_FCHDIR: "fchdir", unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_SETHOSTNAME: "sethostname",
}

func name(nr uint64) string {
	if n := names[nr]; n != "" {
		return n
	}
	return fmt.Sprintf("call %d", nr)
}
