package bubblewrap

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Host is what Plan has to know of the machine. It is read, never changed.
type Host interface {
	Lstat(path string) (os.FileInfo, error)
	Readlink(path string) (string, error)
	// ReadDir returns at most max entries in no particular order, and whether
	// there were more.
	ReadDir(path string, max int) (entries []os.DirEntry, more bool, err error)
	// ReadFile returns at most the first MiB of a regular file.
	ReadFile(path string) ([]byte, error)
	// Readable says whether this user may read the file, or might let himself.
	Readable(path string, info os.FileInfo) bool
	// Writable says the same of writing.
	Writable(path string, info os.FileInfo) bool
	// Path is the list of directories in which programs are looked for.
	Path() []string
	// Sockets are the unix sockets of kgate's network namespace that are bound to
	// files, as the kernel tells them, and whether it tells the files and not the
	// names alone.
	Sockets() (all []Bound, files bool, err error)
	// Inode says which file it is that Lstat has looked at.
	Inode(info os.FileInfo) (Inode, bool)
	// Names says how many names that file has, 0 where it is not known.
	Names(info os.FileInfo) int
	// Mounts is the table of what is mounted, in its order.
	Mounts() ([]mountLine, error)
	// Devices are those of the filesystems that are mounted, as the kernel has
	// them. What lies on a filesystem whose files have another one for stat(2)
	// (btrfs, some of overlayfs) cannot be found among the sockets by its inode.
	Devices() (map[uint64]bool, error)
}

// Inode is a file: its device in the form of stat(2), and the lower half of its
// number, which is all that sock_diag(7) tells.
type Inode struct {
	Dev    uint64
	Number uint32
}

// Bound is a unix socket that is bound to a file.
type Bound struct {
	Name string // as it was bound: maybe relative, and maybe not where it is now
	File Inode
}

// ThisHost is the machine kgate runs on.
func ThisHost() Host { return thisHost{} }

type thisHost struct{}

func (thisHost) Lstat(path string) (os.FileInfo, error) { return os.Lstat(path) }
func (thisHost) Readlink(path string) (string, error)   { return os.Readlink(path) }

func (thisHost) ReadDir(path string, max int) ([]os.DirEntry, bool, error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer d.Close()
	entries, err := d.ReadDir(max + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if len(entries) > max {
		return entries[:max], true, err
	}
	return entries, false, err
}

func (thisHost) ReadFile(path string) ([]byte, error) {
	// The project may hold anything under a name that should be a file: a FIFO
	// must not hang kgate, and a file without end must not fill it.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

func (thisHost) Readable(path string, info os.FileInfo) bool {
	return mine(info) || unix.Access(path, unix.R_OK) == nil
}

func (thisHost) Writable(path string, info os.FileInfo) bool {
	return mine(info) || unix.Access(path, unix.W_OK) == nil
}

func mine(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

func (thisHost) Path() []string { return filepath.SplitList(os.Getenv("PATH")) }

func (thisHost) Inode(info os.FileInfo) (Inode, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Inode{}, false
	}
	return Inode{uint64(st.Dev), uint32(st.Ino)}, true
}

func (thisHost) Names(info os.FileInfo) int {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return int(st.Nlink)
}

// maxLinks is how many symlinks a path may pass through, as in path_resolution(7).
const maxLinks = 40

// link is one symlink that a path passes through.
type link struct{ at, target string }

// resolve follows every symlink of an absolute path. It returns the real path
// and the links on the way. The error is that of the first part that is absent.
func resolve(h Host, path string) (string, []link, error) {
	var links []link
	real := "/"
	rest := strings.Split(filepath.Clean(path), "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			real = filepath.Dir(real)
			continue
		}
		next := filepath.Join(real, name)
		info, err := h.Lstat(next)
		if err != nil {
			return "", links, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := h.Readlink(next)
		if err != nil {
			return "", links, err
		}
		if links = append(links, link{next, target}); len(links) > maxLinks {
			return "", links, &fs.PathError{Op: "resolve", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return real, links, nil
}

// follow is stat: what a path leads to.
func follow(h Host, path string) (os.FileInfo, error) {
	real, _, err := resolve(h, path)
	if err != nil {
		return nil, err
	}
	return h.Lstat(real)
}

// within says whether path is dir or below it. Both are clean.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
