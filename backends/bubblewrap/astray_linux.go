package bubblewrap

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// A command in another box can put a symlink in the place of a directory of its
// project between the plan and what is done about it here, outside any box. What
// kgate makes and removes is therefore named from a directory that was opened
// without following any: at worst it is made in that directory under the name
// that the command has given it since, which is in its project as well.

// Test hooks: the calls that are raced against, one of which old kernels lack.
var (
	openat2 = unix.Openat2
	mkdirat = unix.Mkdirat
)

// openReal opens a directory by its absolute path, in which there must be no
// symlink. The descriptor is good for naming what is in it and for nothing else.
func openReal(dir string) (int, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := openat2(unix.AT_FDCWD, dir, &how)
	for err == unix.EINTR || err == unix.EAGAIN {
		fd, err = openat2(unix.AT_FDCWD, dir, &how)
	}
	if err != unix.ENOSYS && err != unix.EPERM {
		return fd, err
	}
	// Before Linux 5.6, and where a container's filter of system calls does not
	// know the call.
	if fd, err = unix.Open("/", flags, 0); err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		if name == "" {
			break // the root itself
		}
		next, err := unix.Openat(fd, name, flags, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err // of a symlink: it is no directory
		}
		fd = next
	}
	return fd, nil
}

// swapped says whether a directory could not be opened because a part of its
// path is now a symlink or another kind of file.
func swapped(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR)
}

// swappedError is what a launch is refused with.
func swappedError(path string) error {
	return fmt.Errorf("keep %q from being made: a symlink has come into its place or above it since the plan (nothing was started: look for what replaces directories there, a command in another box may)", path)
}

// makeHeld makes what holds a name, in an open directory. What is there already
// is no error where it is of the kind that it must be.
func makeHeld(dir int, name string, h Hold, s *spares) error {
	var err error
	switch {
	case h.File:
		var fd int
		fd, err = unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o444)
		if err == nil {
			_, err = unix.Write(fd, []byte(h.Content))
			unix.Close(fd)
		}
	default:
		var taken bool
		if taken, err = s.take(dir, name); taken || err != nil {
			break
		}
		err = mkdirat(dir, name, 0o755)
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	want := uint32(unix.S_IFDIR)
	if h.File {
		want = unix.S_IFREG
	}
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT != want {
		return unix.ENOTDIR
	}
	return err
}

// removeHeld removes what holds a name: an empty directory, or a file as small as
// those that are made for it.
func removeHeld(dir int, name string, file bool, s *spares) {
	if !file {
		// A directory that somebody has put something into is his now.
		if s.give(dir, name) {
			return
		}
		unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		return
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size <= maxContent {
		unix.Unlinkat(dir, name, 0)
	}
}
