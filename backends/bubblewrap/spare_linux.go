package bubblewrap

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// To make and remove the empty directories that hold names takes longer than all else
// that kgate does about them: on ext4 some 40 and 170 µs each, against 20 to move one.
// So they are kept, in ~/.kgate/spare, and moved to where they are needed and back. A
// project on another file system has them made and removed, and what is left of a
// killed launch is removed.

// spareMost is how many are kept.
const spareMost = 64

// spares are the directories that one launch found kept.
type spares struct {
	dir   int      // where they are, open
	names []string // those that are still there, as far as is known
	given int      // the number of the last that was moved back
	far   bool     // they cannot be moved to where they are needed, or not back
}

// Test hook: the call that is raced against.
var renameat2 = unix.Renameat2

// openSpares looks at what is kept. Nil: nothing can be, and all methods do nothing.
func openSpares(managed string) *spares {
	dir := filepath.Join(managed, "spare")
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open(dir, flags, 0)
	if err == unix.ENOENT && os.Mkdir(dir, 0o700) == nil {
		fd, err = unix.Open(dir, flags, 0)
	}
	if err != nil {
		return nil
	}
	s := &spares{dir: fd}
	buf := make([]byte, 8<<10) // some 250 of them
	if n, err := unix.ReadDirent(fd, buf); err == nil {
		_, _, s.names = unix.ParseDirent(buf[:n], -1, nil)
	}
	return s
}

// take moves one to a name in an open directory. False: there is none, or it cannot
// be, and the name has to be made.
func (s *spares) take(dir int, name string) (bool, error) {
	for s != nil && !s.far && len(s.names) > 0 {
		last := len(s.names) - 1
		err := renameat2(s.dir, s.names[last], dir, name, unix.RENAME_NOREPLACE)
		if err == unix.EEXIST {
			return false, err
		}
		s.names = s.names[:last]
		switch err {
		case nil:
			return true, nil
		case unix.ENOENT: // another launch has taken it
		default:
			s.far = true
		}
	}
	return false, nil
}

// give moves what holds a name back. False: it is not as kgate made it, or cannot be
// moved. Somebody may put something into it at any time, and it stays where it is then.
func (s *spares) give(dir int, name string) bool {
	if s == nil || s.far || !pristine(dir, name) {
		return false
	}
	var spare string
	for err := error(unix.EEXIST); err == unix.EEXIST; {
		if s.given++; s.given > spareMost {
			return false
		}
		spare = strconv.Itoa(s.given)
		if err = renameat2(dir, name, s.dir, spare, unix.RENAME_NOREPLACE); err != nil && err != unix.EEXIST {
			s.far = true
			return false
		}
	}
	if !pristine(s.dir, spare) {
		renameat2(s.dir, spare, dir, name, unix.RENAME_NOREPLACE)
	}
	return true
}

// pristine says whether a name is an empty directory of this user's that looks like
// those that are made to hold names.
func pristine(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || int(st.Uid) != os.Geteuid() || st.Mode&0o7022 != 0 || st.Mode&0o700 != 0o700 {
		return false
	}
	buf := make([]byte, 512)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return err == nil
		}
		if _, _, names := unix.ParseDirent(buf[:n], 1, nil); len(names) > 0 {
			return false
		}
	}
}

func (s *spares) close() {
	if s != nil {
		unix.Close(s.dir)
	}
}
