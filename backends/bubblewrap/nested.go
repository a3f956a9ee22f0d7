package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kgate-dev/kgate/backends"
)

// mostTools is how many of the tools' files below a writable tree's top are
// protected. Each is a mount, and so is each directory above it.
const mostTools = 64

// toolNames says why each of toolFiles is one.
var toolNames = func() map[string]string {
	all := map[string]string{}
	for _, f := range toolFiles {
		all[f.name] = f.why
	}
	return all
}()

// step is a directory that nested looks into.
type step struct {
	dir   string
	depth int
	tool  bool // one of the tools' own, protected whole, or below one
}

// nested protects the repositories that lie below a writable tree, and the files
// of tools that are there: git runs what a repository's configuration names as
// soon as somebody stands in it, and an editor is opened on a part of a project as
// well. What is not there can be made, for there are too many places. It notes the
// sockets that it meets. The search is bounded: it is paid at every launch.
func (w *planner) nested(root string) {
	const most, deep, wide = 256, 5, 2000
	queue := []step{{dir: root}}
	push := func(next ...step) {
		if len(next) > 0 && next[0].depth > deep {
			w.unseen = true // what lies deeper is not looked for
			return
		}
		queue = append(queue, next...)
	}
	cut := false
	for n := 0; n < len(queue); n++ {
		if n == most {
			cut = true
			break
		}
		s := queue[n]
		entries, more, err := w.h.ReadDir(s.dir, wide)
		if err != nil {
			continue // nor can the command read it
		}
		cut = cut || more
		bare := 0
		var parts []step // of a bare repository, if it is one
		for _, e := range entries {
			name := e.Name()
			below := func() step { return step{filepath.Join(s.dir, name), s.depth + 1, s.tool} }
			switch {
			case e.Type()&fs.ModeSocket != 0:
				w.met = append(w.met, below().dir)
			case name == ".git":
				if s.dir != root {
					w.dotGit(below().dir, false)
				}
				if e.IsDir() {
					w.meet(below().dir)
				}
			case name == "HEAD" || name == "objects" || name == "refs":
				bare++
				if e.IsDir() {
					parts = append(parts, below())
				}
			case name == "node_modules":
				w.unseen = w.unseen || e.IsDir()
			default:
				why, tool := "", false
				if name[0] == '.' || name == "opencode.json" || name == "opencode.jsonc" {
					why, tool = toolNames[name]
				}
				next := step{}
				if tool || e.IsDir() {
					next = below()
				}
				if tool && s.dir != root && !s.tool {
					next.tool = w.toolBelow(next.dir, why)
				}
				if e.IsDir() {
					push(next)
				}
			}
		}
		if bare == 3 && s.dir != root {
			w.repository(s.dir)
		} else {
			push(parts...)
		}
	}
	if cut {
		w.unseen = true
		w.finding("ways out", backends.Degraded,
			fmt.Sprintf("%q is too large to be searched for nested repositories and tools' files at every launch: the first %d directories were", root, most),
			"run kgate in a smaller project, or keep other repositories outside it")
	}
}

// meet notes the sockets in one directory.
func (w *planner) meet(dir string) {
	entries, more, err := w.h.ReadDir(dir, 512)
	if err != nil {
		return
	}
	w.unseen = w.unseen || more
	for _, e := range entries {
		if e.Type()&fs.ModeSocket != 0 {
			w.met = append(w.met, filepath.Join(dir, e.Name()))
		}
	}
}

// toolBelow protects a tool's file below the top of a tree, and says whether it
// did.
func (w *planner) toolBelow(path, why string) bool {
	w.tooled++
	switch {
	case w.tooled <= mostTools:
		w.guard(path, why, false)
		return true
	case w.tooled == mostTools+1:
		w.finding("ways out", backends.Degraded,
			fmt.Sprintf("%d files of tools below the tops of writable trees are protected, and there are more: %q is one that a command can change", mostTools, path),
			"run kgate in a smaller project")
	}
	return false
}
