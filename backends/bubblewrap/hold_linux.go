package bubblewrap

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What holds absent ways out absent must exist on the host while a box is there,
// and must not stay. Launches in one project share it: each directory that
// something is made in has a file below ~/.kgate/run, which names what was made
// there and carries a lock. Every launch holds it shared, from before it makes
// anything until its box is gone; the one that then gets it alone is the last
// and removes everything the file names, and the file.
//
// A kgate that is killed cannot do that, nor end the box while bwrap is still
// making it: bwrap's processes ask to die with their parents only late, and a
// parent that is dead by then is not noticed. So each launch has a janitor, a
// shell that waits for kgate's end, kills what is left of bwrap's process group,
// waits for the box's end and does the rest.

// ledger is the file of one directory.
type ledger struct {
	path string // its own
	dir  string
	file *os.File // holds the lock
}

// holder is what one launch holds.
type holder struct {
	ledgers []*ledger
	janitor int      // its process; 0: not started
	leash   *os.File // the janitor's input: its end is kgate's
	box     *os.File // bwrap inherits it: its end is the box's
	spares  *spares
	skipped map[string]bool
}

var errBusy = errors.New("another launch does not let go of it")

// lockWithin bounds the wait for a launch that is just ending.
var lockWithin = 5 * time.Second

// openLedger opens the file of a directory and takes its lock shared. The file
// may be removed by its last holder in between, so what was locked is compared
// with what is there.
func openLedger(run, dir string) (*ledger, error) {
	sum := sha256.Sum256([]byte(dir))
	l := &ledger{path: filepath.Join(run, hex.EncodeToString(sum[:12])), dir: dir}
	until := time.Now().Add(lockWithin)
	for {
		f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			var mine, there unix.Stat_t
			if unix.Fstat(int(f.Fd()), &mine) == nil && unix.Stat(l.path, &there) == nil && mine.Ino == there.Ino && mine.Dev == there.Dev {
				l.file = f
				if mine.Size == 0 {
					_, err = f.Write(append([]byte("D"+dir), 0))
				}
				return l, err
			}
		}
		f.Close()
		if err != nil && err != unix.EWOULDBLOCK && err != unix.EINTR {
			return nil, fmt.Errorf("lock %q: %w", l.path, err)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("lock %q: %w", l.path, errBusy)
		}
		time.Sleep(time.Millisecond)
	}
}

// A record is one line of a ledger: d for a directory or f for a file, the name
// in the ledger's directory, and a NUL byte, because a name may hold anything
// else. The first record is D and the ledger's directory.
func record(h Hold) []byte {
	kind := byte('d')
	if h.File {
		kind = 'f'
	}
	return append(append([]byte{kind}, filepath.Base(h.Path)...), 0)
}

// sweep removes what the ledger names, if this launch is the last to hold it,
// and the ledger.
func (l *ledger) sweep(s *spares) error {
	defer l.file.Close()
	if err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			return nil // another launch is there and will do it
		}
		return fmt.Errorf("lock %q: %w", l.path, err)
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, info.Size())
	if _, err := l.file.ReadAt(data, 0); err != nil {
		return fmt.Errorf("read %q: %w", l.path, err)
	}
	dir := -1 // open, once the ledger has said which
	for name := range bytes.SplitSeq(data, []byte{0}) {
		if len(name) < 2 {
			continue
		}
		if name[0] == 'D' && dir < 0 {
			dir, err = openReal(string(name[1:]))
			if err != nil && !swapped(err) && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("take away what was made in %q: %w", name[1:], err)
			}
			defer unix.Close(dir)
			continue
		}
		if dir < 0 {
			break // not written by kgate, or not to its end, or there is no such directory any more
		}
		removeHeld(dir, string(name[1:]), name[0] == 'f', s)
	}
	if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// hold makes what the plan needs on the host. The janitor keeps release open: the
// end of that pipe would let the command go, and must not come with kgate's.
func hold(o *own, release *os.File) (h *holder, err error) {
	h = &holder{skipped: map[string]bool{}}
	defer func() {
		if err != nil {
			h.release()
		}
	}()
	run := filepath.Join(o.Managed, "run")
	if err := os.MkdirAll(run, 0o700); err != nil && len(o.Holds) > 0 {
		return h, fmt.Errorf("make a directory for this launch's records: %w", err)
	}
	sweepOthers(run)
	if len(o.Holds) > 0 {
		h.spares = openSpares(o.Managed)
	}
	in := map[string]*ledger{}
	at := map[string]int{} // the directories, open
	defer func() {
		for _, fd := range at {
			unix.Close(fd)
		}
	}()
	for _, x := range o.Holds {
		dir := filepath.Dir(x.Path)
		if in[dir] == nil {
			fd, err := openReal(dir)
			if swapped(err) {
				return h, swappedError(x.Path)
			}
			if err != nil {
				return h, fmt.Errorf("keep %q from being made: %w", x.Path, err)
			}
			at[dir] = fd
			l, err := openLedger(run, dir)
			if err != nil {
				return h, err
			}
			in[dir] = l
			h.ledgers = append(h.ledgers, l)
		}
	}
	// First on record, then watched, then made: whenever kgate is killed, what
	// it has made is known to somebody who is there.
	for dir, l := range in {
		var lines []byte
		for _, x := range o.Holds {
			if filepath.Dir(x.Path) == dir && !x.Found {
				lines = append(lines, record(x)...)
			}
		}
		if len(lines) > 0 {
			if _, err := l.file.Write(lines); err != nil {
				return h, fmt.Errorf("write %q: %w", l.path, err)
			}
		}
	}
	if err := h.watch(release); err != nil {
		return h, err
	}
	for _, x := range o.Holds {
		dir := filepath.Dir(x.Path)
		if err := h.make(x, at[dir], in[dir]); err != nil {
			return h, err
		}
	}
	return h, nil
}

func (h *holder) make(x Hold, dir int, l *ledger) error {
	err := makeHeld(dir, filepath.Base(x.Path), x, h.spares)
	switch {
	case err == nil && x.Found: // the launch that held it has just ended
		_, err = l.file.Write(record(x))
		return err
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	case swapped(err):
		return swappedError(x.Path)
	case errors.Is(err, unix.EROFS), errors.Is(err, fs.ErrPermission) && !mayChmod(dir):
		// The kernel refuses the command the same, so nothing has to be held.
		h.skipped[x.Path] = true
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%q must be kept from being made, and its directory is not writable: %w (chmod u+w %s)", x.Path, err, quote(l.dir))
	}
	return fmt.Errorf("keep %q from being made: %w", x.Path, err)
}

// mayChmod says whether the command could make a directory writable for itself.
func mayChmod(dir int) bool {
	var st unix.Stat_t
	return unix.Fstat(dir, &st) != nil || int(st.Uid) == os.Geteuid()
}

// The janitor's input is the number of bwrap's process, which is its process
// group's too, and then nothing: the end of the input is kgate's end. Descriptor
// 3 ends with the box. What follows is what sweep does. It shares kgate's own
// hold on the locks, so that they are held until it is done. Its arguments are
// the descriptor, the file and the directory of each ledger. It works in that
// directory, once the kernel says that this is where it is: on the way there may
// be a symlink by now.
const janitor = `read -r box
read -r _
[ -z "$box" ] || kill -KILL "-$box" 2>/dev/null
read -r _ <&3
while [ $# -gt 2 ]; do
	if cd -P -- "$3" && [ "$(pwd -P; echo .)" = "$3
." ] && flock -n -x "$1"; then
		names() { tr '\0\n' '\n\0' <"$2" | sed -n "s/^$1//p" | tr '\0\n' '\n\0'; }
		names d "$2" | xargs -0 sh -c 'for f; do rmdir "./$f"; done' sh 2>/dev/null
		names f "$2" | xargs -0 sh -c 'for f; do find "./$f" -maxdepth 0 -type f -size -3c -exec rm -f {} \;; done' sh 2>/dev/null
		rm -f -- "$2"
	fi
	shift 3
done`

// janitorEnv is all of its environment. Where a command in a box could put a
// program, the janitor must not look for one.
var janitorEnv = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin:/run/current-system/sw/bin", "LC_ALL=C"}

// watch starts the janitor.
func (h *holder) watch(release *os.File) error {
	leash, leashW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer leash.Close()
	h.leash = leashW
	box, boxW, err := os.Pipe()
	if err != nil {
		return err
	}
	defer box.Close()
	h.box = boxW
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	files := []*os.File{leash, null, null, box}
	argv := []string{"sh", "-c", janitor, "kgate-janitor"}
	for _, l := range h.ledgers {
		argv = append(argv, strconv.Itoa(len(files)), l.path, l.dir)
		files = append(files, l.file)
	}
	if release != nil {
		files = append(files, release)
	}
	h.janitor, err = fork("/bin/sh", argv, janitorEnv, files, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return fmt.Errorf("start the janitor: %w", err)
	}
	return nil
}

// started tells the janitor what to kill.
func (h *holder) started(pid int) { fmt.Fprintf(h.leash, "%d\n", pid) }

// sweepOthers removes what launches have left that were killed together with
// their janitors. It costs a look into a directory that is nearly always empty.
func sweepOthers(run string) {
	entries, _ := os.ReadDir(run)
	for _, e := range entries {
		path := filepath.Join(run, e.Name())
		f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			continue
		}
		(&ledger{path: path, file: f}).sweep(nil)
	}
}

// release removes what nobody holds any more. The box must be gone.
func (h *holder) release() error {
	var errs []error
	for _, l := range h.ledgers {
		if l.file != nil {
			errs = append(errs, l.sweep(h.spares))
		}
	}
	h.ledgers = nil
	h.spares.close()
	h.spares = nil
	if h.janitor != 0 {
		syscall.Kill(h.janitor, syscall.SIGKILL)
		wait(h.janitor)
		h.janitor = 0
	}
	for _, f := range []*os.File{h.leash, h.box} {
		if f != nil {
			f.Close()
		}
	}
	return errors.Join(errs...)
}
