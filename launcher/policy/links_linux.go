package policy

import (
	"bytes"
	"encoding/binary"
	"os"
	"syscall"
)

// linksIn returns, for each program, the names in dir that are the same file.
// The kernel's directory entries carry the inode, so that only likely entries
// are looked at; where a file system's entries and its stat disagree
// (overlays), every file is. See getdents64(2).
func linksIn(dir string, programs []Program) map[int][]string {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	inodes := make(map[uint64][]int, len(programs))
	for i, p := range programs {
		if st, ok := p.Info.Sys().(*syscall.Stat_t); ok {
			inodes[st.Ino] = append(inodes[st.Ino], i)
		}
	}
	out := map[int][]string{}
	buf := make([]byte, 1<<16)
	checked := false
	for {
		n, err := syscall.ReadDirent(fd, buf)
		if err != nil {
			return linksInSlow(dir, programs)
		}
		if n <= 0 {
			return out
		}
		for b := buf[:n]; len(b) >= 19; {
			ino := binary.NativeEndian.Uint64(b)
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < 19 || size > len(b) {
				return linksInSlow(dir, programs)
			}
			kind := b[18]
			name, _, _ := bytes.Cut(b[19:size], []byte{0})
			b = b[size:]
			if kind != syscall.DT_REG && kind != syscall.DT_UNKNOWN {
				continue
			}
			if !checked && kind == syscall.DT_REG {
				var st syscall.Stat_t
				if syscall.Lstat(dir+"/"+string(name), &st) != nil || st.Ino != ino {
					return linksInSlow(dir, programs)
				}
				checked = true
			}
			for _, i := range inodes[ino] {
				full := dir + "/" + string(name)
				if info, err := os.Lstat(full); err == nil && os.SameFile(info, programs[i].Info) {
					out[i] = append(out[i], full)
				}
			}
		}
	}
}
