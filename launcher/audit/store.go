package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// store is the log opened for one line, under the lock.
type store struct {
	file    string
	head    *os.File // audit.head, locked
	headNew bool     // it held no record when it was opened
	headRec link     // the record, when it did
	log     *os.File
	created bool  // the log's directory entry is new and not synced
	size    int64 // of the log before this line
}

func headFile(file string) string {
	return filepath.Join(filepath.Dir(file), strings.TrimSuffix(filepath.Base(file), ".jsonl")+".head")
}

func openStore(file string) (*store, error) {
	if err := openDir(filepath.Dir(file)); err != nil {
		return nil, err
	}
	s := &store{file: file}
	var err error
	if s.head, err = lockHead(headFile(file)); err != nil {
		return nil, err
	}
	if s.headRec, err = readHead(s.head); err != nil {
		s.headNew = true
	}
	if err := s.openLog(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// close also gives up the lock.
func (s *store) close() {
	if s.log != nil {
		s.log.Close()
	}
	s.head.Close()
}

// openDir makes the log's directory where it is missing, and refuses one in
// which somebody else could replace the log.
func openDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return explain("make", dir, err)
		}
		if err := syncDir(filepath.Dir(dir)); err != nil {
			return err
		}
		info, err = os.Stat(dir)
	}
	if err != nil {
		return explain("look at", dir, err)
	}
	return ownDir(dir, info)
}

func ownDir(dir string, info os.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%q is not a directory (move it away)", dir)
	}
	return owned(dir, info)
}

var geteuid = os.Geteuid // test hook

func owned(name string, info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if uid := geteuid(); ok && int(st.Uid) != uid {
		return fmt.Errorf("%q belongs to uid %d and kgate runs as uid %d (run as its owner, or set HOME to your own)",
			name, st.Uid, uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%q can be written by others (chmod go-w %q)", name, name)
	}
	return nil
}

// openOwn opens a regular file of the caller's own that has this one name only.
// It follows no symlink and never waits, whatever stands at the name.
func openOwn(name string, flag int) (*os.File, os.FileInfo, error) {
	flag |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
	fd, err := syscall.Open(name, flag, 0o600)
	for err == syscall.EINTR {
		fd, err = syscall.Open(name, flag, 0o600)
	}
	if err != nil {
		return nil, nil, explain("open", name, err)
	}
	// O_NONBLOCK was for opening what is not a file; with it, os would set up a
	// poller that no regular file can use.
	err = syscall.SetNonblock(fd, false)
	f := os.NewFile(uintptr(fd), name)
	info, serr := f.Stat()
	if err == nil {
		err = serr
	}
	if err == nil {
		st, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%q is not a regular file (move it away)", name)
		case ok && st.Nlink > 1:
			err = fmt.Errorf("%q has another name, through which it could be written (find it by its inode, %d, and remove it)", name, st.Ino)
		default:
			err = owned(name, info)
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// explain names the file and the mend of a failed operation.
func explain(op, name string, err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	mend := ""
	switch {
	case errors.Is(err, syscall.ELOOP):
		err, mend = errors.New("it is a symbolic link"), "remove the link"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENXIO):
		mend = "move it away"
	case errors.Is(err, syscall.EACCES):
		mend = "make it and its directory yours and writable: chmod u+rwX"
	case errors.Is(err, syscall.EPERM):
		mend = "it is immutable or another's: see lsattr"
	case errors.Is(err, syscall.EROFS):
		mend = "mount the file system writable"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		mend = "free some space there"
	case errors.Is(err, syscall.EFBIG):
		mend = "raise the file size limit: ulimit -f"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		mend = "raise the limit of open files: ulimit -n"
	case errors.Is(err, syscall.EIO):
		mend = "the disk fails: see the kernel's log"
	}
	if mend != "" {
		return fmt.Errorf("%s %q: %w (%s)", op, name, err, mend)
	}
	return fmt.Errorf("%s %q: %w", op, name, err)
}

// lockWait bounds the wait for other writers, each of which holds the lock for
// one sync.
var lockWait = 30 * time.Second

// lockHead opens audit.head and holds its lock. The file at the name is looked
// at again afterwards: a lock on a file that has been removed meanwhile excludes
// nobody.
func lockHead(name string) (*os.File, error) {
	for range 100 {
		f, info, err := openOwn(name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := lock(f, syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, err
		}
		now, err := os.Lstat(name)
		if err == nil && os.SameFile(info, now) {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("%q is removed again and again while it is locked (find out by what)", name)
}

func lock(f *os.File, how int) error {
	fd := int(f.Fd())
	err := flock(fd, how|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		done := make(chan error, 1)
		go func() { done <- flock(fd, how) }()
		timer := time.NewTimer(lockWait)
		defer timer.Stop()
		select {
		case err = <-done:
		case <-timer.C:
			return fmt.Errorf("%q has been locked by another kgate for %v (find it: fuser -v %q)", f.Name(), lockWait, f.Name())
		}
	}
	if err != nil {
		return explain("lock", f.Name(), err)
	}
	return nil
}

func flock(fd, how int) error {
	for {
		err := syscall.Flock(fd, how)
		if err != syscall.EINTR {
			return err
		}
	}
}

var errNoHead = errors.New("it holds no record")

// readHead reads the record of the last line: its sequence and its hash.
func readHead(f *os.File) (link, error) {
	var b [headSize + 1]byte
	n, _ := f.ReadAt(b[:], 0)
	if n != headSize || b[20] != ' ' || b[headSize-1] != '\n' {
		return link{}, errNoHead
	}
	seq, err := strconv.ParseUint(string(b[:20]), 10, 62)
	if err != nil {
		return link{}, errNoHead
	}
	return link{seq: seq, hash: string(b[21 : headSize-1])}, nil
}

// openLog opens the log for appending. A new log first gets its anchor, synced,
// so that an anchor that is missing later has been removed.
func (s *store) openLog() error {
	f, info, err := openOwn(s.file, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, os.ErrNotExist) {
		if s.headNew && len(rotated(s.file)) == 0 {
			if err := s.anchor(0, noHash); err != nil {
				return err
			}
			s.headRec = link{hash: noHash}
		}
		s.created = true
		f, info, err = openOwn(s.file, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	}
	if err != nil {
		return err
	}
	s.log, s.size = f, info.Size()
	return nil
}

// tip is where the next line goes on: the place and hash of the line before it,
// and the unfinished line that it has to close.
type tip struct {
	link
	torn       []byte
	anchorLost bool
}

// tip trusts whichever is further on, the log or its anchor: the log is ahead
// after a power loss; the anchor is ahead when lines were cut off, and then the
// chain goes on from the lost line, so that the gap stays visible for ever.
func (s *store) tip() (tip, error) {
	last, torn, err := tail(s.log, s.size)
	if err == nil && last.seq == 0 {
		if files := rotated(s.file); len(files) > 0 {
			last, err = tailOf(files[len(files)-1])
		}
	}
	if err != nil {
		return tip{}, err
	}
	t := tip{link: last, torn: torn}
	switch {
	case s.headNew:
		t.anchorLost = last.seq > 0 || s.size > 0
	case s.headRec.seq >= last.seq:
		t.link = s.headRec
	}
	if t.seq == 0 {
		t.hash = noHash
	}
	return t, nil
}

func tailOf(name string) (link, error) {
	f, info, err := openOwn(name, os.O_RDONLY)
	if err != nil {
		return link{}, err
	}
	defer f.Close()
	last, _, err := tail(f, info.Size())
	return last, err
}

// maxLine bounds what is read as one line: several times what the kernel lets a
// command's arguments be. Tests set it.
var maxLine = 64 << 20

// tail finds the last valid line and what follows the last line end. It reads
// the file's end only: further back only as long as no valid line shows.
func tail(f *os.File, size int64) (last link, torn []byte, err error) {
	for n := int64(4096); size > 0; n *= 4 {
		start := max(0, size-n)
		buf := make([]byte, size-start)
		if _, err := f.ReadAt(buf, start); err != nil {
			return last, nil, explain("read", f.Name(), err)
		}
		end := bytes.LastIndexByte(buf, '\n')
		torn = buf[end+1:]
		for end >= 0 {
			begin := bytes.LastIndexByte(buf[:end], '\n')
			if begin < 0 && start > 0 {
				break
			}
			if k, err := parseLink(buf[begin+1 : end]); err == nil {
				return k, torn, nil
			}
			end = begin
		}
		if start == 0 {
			return last, torn, nil
		}
		if n > 2*int64(maxLine) {
			return last, nil, fmt.Errorf("%q holds no line of kgate's in its last %d MiB (move it away)", f.Name(), n>>20)
		}
	}
	return last, nil, nil
}

// rotate sets the log aside when the next line would make it too large. Where
// the file cannot be renamed (an append-only attribute) the log grows instead:
// a line is worth more than a limit.
func (s *store) rotate(limit, next int64, torn bool) error {
	if torn || s.size == 0 || s.size+next <= limit {
		return nil
	}
	number := 1
	if files := rotated(s.file); len(files) > 0 {
		number = 1 + rotation(s.file, files[len(files)-1])
	}
	if err := rename(s.file, s.file+"."+strconv.Itoa(number)); err != nil {
		return nil
	}
	s.log.Close()
	s.log = nil
	return s.openLog()
}

// rotated lists the files that were set aside, oldest first.
func rotated(file string) []string {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries {
		name := filepath.Join(filepath.Dir(file), e.Name())
		if rotation(file, name) > 0 {
			files = append(files, name)
		}
	}
	slices.SortFunc(files, func(a, b string) int { return rotation(file, a) - rotation(file, b) })
	return files
}

// rotation is N of FILE.N, or 0.
func rotation(file, name string) int {
	text, ok := strings.CutPrefix(filepath.Base(name), filepath.Base(file)+".")
	n, err := strconv.Atoi(text)
	if !ok || err != nil || n <= 0 || strconv.Itoa(n) != text {
		return 0
	}
	return n
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return explain("open", dir, err)
	}
	defer f.Close()
	if err := dirSync(f); err != nil {
		return explain("sync", dir, err)
	}
	return nil
}
