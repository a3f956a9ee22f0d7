package bubblewrap

import (
	"os"
	"path/filepath"
	"strings"
)

// mountLine is a line of a mount table.
type mountLine struct {
	device string // of its file system
	root   string // what of the file system is shown
	point  string // where
	kind   string // of the file system
}

// twins are the other places at which the host shows what is at a real path: where
// a file system, or a part of it, is mounted twice. A home that lies on a larger
// disk is there under two names.
func (w *planner) twins(path string) []string {
	if w.mountsRead == nil {
		all, _ := w.h.Mounts() // none, then there are none
		w.mountsRead = []mountLine{}
		seen := map[string]bool{}
		for _, m := range all {
			if seen[m.device] {
				w.mountsRead = all
				break
			}
			seen[m.device] = true
		}
	}
	if len(w.mountsRead) == 0 {
		return nil
	}
	var in *mountLine // what the path is on: the last of the deepest
	for i, m := range w.mountsRead {
		if within(path, m.point) && (in == nil || len(m.point) >= len(in.point)) {
			in = &w.mountsRead[i]
		}
	}
	if in == nil {
		return nil
	}
	file := filepath.Join(in.root, strings.TrimPrefix(path, in.point))
	var info os.FileInfo
	var all []string
	for _, m := range w.mountsRead {
		if m.device != in.device || !within(file, m.root) {
			continue
		}
		twin := filepath.Join(m.point, strings.TrimPrefix(file, m.root))
		if twin == path {
			continue
		}
		if info == nil {
			var err error
			if info, err = w.h.Lstat(path); err != nil {
				return nil
			}
		}
		// Something else may be mounted over it.
		other, err := w.h.Lstat(twin)
		if err != nil {
			continue
		}
		a, _ := w.h.Inode(info)
		if b, ok := w.h.Inode(other); ok && a == b {
			all = append(all, twin)
		}
	}
	return all
}
