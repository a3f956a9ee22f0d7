package launcher

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen lets a pipe hold more than the usual 64 KiB, so that a command that
// prints much and kgate wake each other less often. A refusal, when the user has
// many pipes already (pipe(7), pipe-user-pages-soft), changes nothing but speed.
func widen(pipe *os.File, size int) {
	if raw, err := pipe.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	}
}
