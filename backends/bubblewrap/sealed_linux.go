package bubblewrap

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// /proc/1/exe in a box leads to the file that bwrap was started from, on the
// machine's own mount of it, and not on the box's. While bwrap runs the kernel
// keeps the file from being written (and in 6.11 and 6.12 not even then); but a
// process of the box is there some microseconds longer than bwrap is. Whoever may
// write that file, as root may, therefore starts bwrap from a copy in memory that
// nobody can write (memfd_create(2), F_SEAL_WRITE in fcntl(2)).

// program is what bwrap is executed by.
type program struct {
	path string
	copy *os.File // to be closed once it is executed
}

// programOf returns the file itself where this user may not write it, and else a
// copy.
func programOf(file string) (program, error) {
	f, err := os.Open(file)
	if err != nil {
		if unix.Access(file, unix.W_OK) != nil {
			return program{path: file}, nil // it may be executed and not read
		}
		return program{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return program{}, err
	}
	if !mine(info) && unix.Access(file, unix.W_OK) != nil || omit("sealed") {
		return program{path: file}, nil
	}
	// What a script is executed by is another file, and that it executes in turn.
	var start [2]byte
	if _, err := f.ReadAt(start[:], 0); err != nil || string(start[:]) == "#!" {
		return program{path: file}, nil
	}
	// The copy has a name in this process's own directory in /proc. Where /proc is
	// another namespace's, the number is another process's there.
	pid := strconv.Itoa(os.Getpid())
	if self, err := os.Readlink("/proc/self"); err != nil || self != pid {
		return program{}, errors.New("a copy of it cannot be executed: /proc is not this process's own (mount -t proc proc /proc)")
	}
	fd, err := unix.MemfdCreate("bwrap", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate("bwrap", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return program{}, fmt.Errorf("copy it into memory: %w (sysctl vm.memfd_noexec must be 0 or 1)", err)
	}
	c := program{path: "/proc/" + pid + "/fd/" + strconv.Itoa(fd), copy: os.NewFile(uintptr(fd), "bwrap")}
	n := int64(0)
	for n < info.Size() {
		k, err := unix.Sendfile(fd, int(f.Fd()), nil, int(info.Size()-n))
		if err == unix.EINTR {
			continue
		}
		if err == nil && k == 0 {
			err = errors.New("it has become shorter")
		}
		if err != nil {
			c.close()
			return program{}, fmt.Errorf("copy it into memory: %w", err)
		}
		n += int64(k)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		c.close()
		return program{}, fmt.Errorf("seal the copy in memory: %w", err)
	}
	return c, nil
}

func (c program) close() {
	if c.copy != nil {
		c.copy.Close()
	}
}
