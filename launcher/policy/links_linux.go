package policy

import (
	"bytes"
	"encoding/binary"
	"os"
	"syscall"
)

// readEntries calls each for the entries of dir, at most one buffer of them
// when once is set. It reports whether it saw them all. See getdents64(2).
func readEntries(dir string, buf []byte, once bool, each func(ino uint64, kind byte, name []byte)) bool {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	for first := true; ; first = false {
		n, err := syscall.ReadDirent(fd, buf)
		switch {
		case err != nil:
			return false
		case n <= 0:
			return true
		case once && !first:
			return false
		}
		for b := buf[:n]; len(b) >= 19; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < 19 || size > len(b) {
				return false
			}
			name, _, _ := bytes.Cut(b[19:size], []byte{0})
			each(binary.NativeEndian.Uint64(b), b[18], name)
			b = b[size:]
		}
	}
}

// smallDir returns which of names are entries of dir, when dir is so small
// that reading it is cheaper than asking for each name.
func smallDir(dir string, names map[string]int) ([]int, bool) {
	var buf [8 << 10]byte
	var out []int
	all := readEntries(dir, buf[:], true, func(_ uint64, _ byte, name []byte) {
		if i, ok := names[string(name)]; ok {
			out = append(out, i)
		}
	})
	return out, all
}

// linksIn returns, for each program, the names in dir that are the same file.
// The kernel's directory entries carry the inode, so that only likely entries
// are looked at; where a file system's entries and its stat disagree
// (overlays), every file is.
func linksIn(dir string, programs []Program) map[int][]string {
	inodes := make(map[uint64][]int, len(programs))
	for i, p := range programs {
		if st, ok := p.Info.Sys().(*syscall.Stat_t); ok {
			inodes[st.Ino] = append(inodes[st.Ino], i)
		}
	}
	out := map[int][]string{}
	checked, agree := false, true
	all := readEntries(dir, make([]byte, 1<<16), false, func(ino uint64, kind byte, name []byte) {
		if !agree || (kind != syscall.DT_REG && kind != syscall.DT_UNKNOWN) {
			return
		}
		if !checked {
			var st syscall.Stat_t
			checked = true
			agree = syscall.Lstat(dir+"/"+string(name), &st) == nil && st.Ino == ino
		}
		for _, i := range inodes[ino] {
			full := dir + "/" + string(name)
			if info, err := os.Lstat(full); err == nil && os.SameFile(info, programs[i].Info) {
				out[i] = append(out[i], full)
			}
		}
	})
	if !all || !agree {
		return linksInSlow(dir, programs)
	}
	return out
}
