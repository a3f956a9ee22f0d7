package main

import "golang.org/x/sys/unix"

// What newer architectures have no calls of their own for.
func init() {
	for nr, n := range map[uint64]string{
		unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork", unix.SYS_OPEN: "open", unix.SYS_STAT: "stat", unix.SYS_LSTAT: "lstat",
		unix.SYS_MKDIR: "mkdir", unix.SYS_RMDIR: "rmdir", unix.SYS_UNLINK: "unlink", unix.SYS_SYMLINK: "symlink",
		unix.SYS_READLINK: "readlink", unix.SYS_ACCESS: "access", unix.SYS_POLL: "poll", unix.SYS_PIPE: "pipe",
		unix.SYS_DUP2: "dup2", unix.SYS_CHMOD: "chmod", unix.SYS_ARCH_PRCTL: "arch_prctl", unix.SYS_SELECT: "select",
		unix.SYS_CREAT: "creat", unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_RENAME: "rename",
	} {
		names[nr] = n
	}
}
