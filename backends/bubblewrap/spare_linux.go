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
	given int      // the number, and name, of the last that was tried to move back
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
		spare := s.names[last]
		// What a killed launch has moved here a moment too late is somebody's.
		if !pristine(s.dir, spare) {
			s.names = s.names[:last]
			continue
		}
		switch err := renameat2(s.dir, spare, dir, name, unix.RENAME_NOREPLACE); err {
		case nil:
			s.names = s.names[:last]
			return true, nil
		case unix.EEXIST:
			return false, err
		case unix.ENOENT: // another launch has taken it
			s.names = s.names[:last]
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
	for s.given < spareMost {
		s.given++
		spare := strconv.Itoa(s.given)
		switch err := renameat2(dir, name, s.dir, spare, unix.RENAME_NOREPLACE); err {
		case nil:
			if !pristine(s.dir, spare) {
				renameat2(s.dir, spare, dir, name, unix.RENAME_NOREPLACE)
			}
			return true
		case unix.EEXIST: // kept already
		default:
			s.far = true
			return false
		}
	}
	return false
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
