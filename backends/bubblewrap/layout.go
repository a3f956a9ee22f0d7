package bubblewrap

import (
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// kind is what a path in the box leads to.
type kind int

const (
	empty    kind = iota // a tree of the box's own, writable, gone with it
	readOnly             // the host's, read-only
	writable             // the host's, writable
	special              // /proc, /dev
	masked               // hidden
)

// mount is one tree of the box.
type mount struct {
	path string
	kind kind
}

// layout is the mount table of a box as it grows, and the words that build it.
type layout struct {
	h      Host
	parts  []backends.Part
	files  []backends.File
	mounts []mount
	links  map[string]bool     // the symlinks made in empty trees
	over   map[string]*overlay // what will lie on top of the host's trees
	reals  map[string]string   // what real has said
}

func newLayout(h Host) *layout {
	return &layout{
		h:      &memo{Host: h, stats: map[string]stat{}},
		mounts: []mount{{"/", empty}},
		links:  map[string]bool{},
		over:   map[string]*overlay{},
		reals:  map[string]string{},
	}
}

// memo keeps what Lstat said for the length of one plan: the same ancestors are
// looked at again and again, and one plan should see one answer.
type memo struct {
	Host
	stats map[string]stat
}

type stat struct {
	info os.FileInfo
	err  error
}

func (m *memo) Lstat(path string) (os.FileInfo, error) {
	s, ok := m.stats[path]
	if !ok {
		s.info, s.err = m.Host.Lstat(path)
		m.stats[path] = s
	}
	return s.info, s.err
}

// add appends one part.
func (l *layout) add(name, why string, from policy.Origin, words ...string) {
	l.parts = append(l.parts, backends.Part{Name: name, Words: words, Why: why, From: from})
}

// at returns the tree that a real path is in: the last one that contains it,
// because a mount covers whatever was below it before.
func (l *layout) at(path string) mount {
	for i := len(l.mounts) - 1; i >= 0; i-- {
		if within(path, l.mounts[i].path) {
			return l.mounts[i]
		}
	}
	return mount{}
}

// visible says whether a real path of the host is in the box.
func (l *layout) visible(path string) bool {
	k := l.at(path).kind
	return k == readOnly || k == writable
}

func (l *layout) exists(path string) bool {
	_, err := l.h.Lstat(path)
	return err == nil
}

// real is the real path, or the path itself when it leads nowhere.
func (l *layout) real(path string) string {
	real, ok := l.reals[path]
	if !ok {
		var err error
		if real, _, err = resolve(l.h, path); err != nil {
			real = filepath.Clean(path)
		}
		l.reals[path] = real
	}
	return real
}

// realParent follows the symlinks in everything but the last element, which may
// be absent or a symlink itself.
func (l *layout) realParent(path string) string {
	return filepath.Join(l.real(filepath.Dir(path)), filepath.Base(path))
}

// tree records a mount.
func (l *layout) tree(path string, k kind) { l.mounts = append(l.mounts, mount{path, k}) }

// bind shows a tree of the host. The path must be real and must exist.
func (l *layout) bind(name, path string, write bool, why string, from policy.Origin) {
	word, k := "--ro-bind", readOnly
	if write {
		word, k = "--bind", writable
	}
	l.add(name, why, from, word, path, path)
	l.tree(path, k)
}

// fresh puts an empty tree of the box's own at a path.
func (l *layout) fresh(path, perms, why string) {
	l.add("fresh:"+path, why, built("fresh trees"), "--perms", perms, "--tmpfs", path)
	l.tree(path, empty)
}

// reproduce makes the symlinks that a path passes through, where the box does
// not show the host's own.
func (l *layout) reproduce(links []link, from policy.Origin) {
	for _, k := range links {
		if l.links[k.at] || l.at(k.at).kind != empty {
			continue
		}
		l.links[k.at] = true
		l.add("link:"+k.at, "a symlink that the host has there", from, "--symlink", k.target, k.at)
	}
}

// cover is what an overlay does with the path under it.
type cover int

const (
	pin    cover = iota // stays as it is, but cannot be renamed or removed
	absent              // does not exist, and cannot be made
	freeze              // read-only
	thaw                // writable inside what is read-only
	hide                // cannot be read either
)

// overlay is one mount on top of a tree of the host.
type overlay struct {
	path string
	does cover
	dir  bool
	name string
	why  string
	from policy.Origin
}

// put asks for an overlay. The stronger of two for one path stays.
func (l *layout) put(o overlay) {
	if old := l.over[o.path]; old != nil && old.does >= o.does {
		return
	}
	l.over[o.path] = &o
}

// pins keeps the directories above a path in writable trees where they are: what
// is on top of the path moves with them, but in the next launch the path would be
// another one's. Where one tree lies in another, those between them count as well.
func (l *layout) pins(path string, from policy.Origin) {
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		t := l.at(dir)
		if t.kind != writable || t.path == dir && l.at(filepath.Dir(dir)).kind != writable {
			return
		}
		l.put(overlay{path: dir, does: pin, dir: true, name: "pin:" + dir, from: from,
			why: "cannot be renamed, and with it what is protected below"})
	}
}

// overlays turns what was asked for into words, parents first. Below what is
// hidden or absent there is nothing left to do, and below what is read-only
// nothing but to hide.
func (l *layout) overlays() {
	all := make([]*overlay, 0, len(l.over))
	for _, o := range l.over {
		all = append(all, o)
	}
	sort.Slice(all, func(i, j int) bool { return before(all[i].path, all[j].path) })
	var above []*overlay // the overlays that contain the present one
	for _, o := range all {
		for len(above) > 0 && !within(o.path, above[len(above)-1].path) {
			above = above[:len(above)-1]
		}
		skip := false
		for _, a := range above {
			skip = skip || a.does == hide || a.does == absent || a.does == freeze && o.does < thaw
		}
		if skip {
			continue
		}
		above = append(above, o)
		l.overlay(o)
	}
}

func (l *layout) overlay(o *overlay) {
	switch {
	case o.does == pin, o.does == thaw:
		l.add(o.name, o.why, o.from, "--bind", o.path, o.path)
	case o.does == freeze:
		l.add(o.name, o.why, o.from, "--ro-bind", o.path, o.path)
	case o.does == absent && !o.dir:
		l.add(o.name, o.why, o.from, "--ro-bind", o.path, o.path)
	case o.does == absent:
		l.add(o.name, o.why, o.from, "--perms", "0555", "--tmpfs", o.path)
	case o.dir:
		// The command owns it: but for being read-only it could give itself the rights.
		l.add(o.name, o.why, o.from, "--perms", "0000", "--tmpfs", o.path, "--remount-ro", o.path)
	default:
		// The bind is nodev, so that opening the null device through it fails.
		l.add(o.name, o.why, o.from, "--ro-bind", "/dev/null", o.path)
	}
	if o.does == hide {
		l.tree(o.path, masked)
	}
}

// before orders paths so that a directory comes before what is in it, and what
// is in it before its neighbours.
func before(a, b string) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			if a[i] == '/' {
				return true
			}
			if b[i] == '/' {
				return false
			}
			return a[i] < b[i]
		}
	}
	return len(a) < len(b)
}

// hideReal asks for a mask over a real path that the box shows.
func (l *layout) hideReal(name, real, why string, from policy.Origin) {
	info, err := l.h.Lstat(real)
	if err != nil || !l.visible(real) || info.Mode()&fs.ModeSymlink != 0 {
		return
	}
	l.put(overlay{path: real, does: hide, dir: info.IsDir(), name: name, why: why, from: from})
	l.pins(real, from)
}
