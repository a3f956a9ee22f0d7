package sbpl

import (
	"fmt"
	"path"
	"sort"
	"strings"
)

// File is one entry of a [World].
type File struct {
	Type    Type
	Target  string // of a symlink
	Content string // what reading it gives away
}

// World is a small file tree on which a boxed process acts, to ask what it can
// reach in several steps: through links, other spellings and renames.
type World struct {
	Files map[string]File // by the path the directories really have

	// FoldCase makes another case of a name find the file, as a Mac's usual file
	// system does. AsTyped says that the kernel then hands Seatbelt the name as
	// it was typed instead of the one on the disk; which of the two happens is
	// not known, so a test asks both.
	FoldCase, AsTyped bool
}

// Tree makes a world: "/a/b=content" is a file, "/a/b -> /c" a symlink, "/a/b/" a
// directory. Directories above are made too, and so are a Mac's own links from
// /tmp, /var and /etc into /private.
func Tree(entries ...string) *World {
	w := &World{Files: map[string]File{"/": {Type: Directory}}}
	for _, e := range append([]string{"/tmp -> private/tmp", "/var -> private/var", "/etc -> private/etc",
		"/private/tmp/", "/private/var/", "/private/etc/"}, entries...) {
		var f File
		name := e
		switch {
		case strings.Contains(e, " -> "):
			name, f.Target, _ = strings.Cut(e, " -> ")
			f.Type = Symlink
		case strings.HasSuffix(e, "/"):
			name, f.Type = strings.TrimSuffix(e, "/"), Directory
		default:
			name, f.Content, _ = strings.Cut(e, "=")
			f.Type = Regular
		}
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, ok := w.Files[dir]; !ok {
				w.Files[dir] = File{Type: Directory}
			}
		}
		w.Files[name] = f
	}
	return w
}

// find returns the entry that name means and the path the kernel has for it.
func (w *World) find(name string) (string, File, bool) {
	if f, ok := w.Files[name]; ok {
		return name, f, true
	}
	if w.FoldCase {
		for have, f := range w.Files {
			if sameName(have, name) != no {
				if w.AsTyped {
					return name, f, true
				}
				return have, f, true
			}
		}
	}
	return name, File{}, false
}

// resolve walks name to the path that the kernel compares. Each symlink on the
// way has to be readable as far as its metadata goes. With last, a symlink at
// the end is followed too.
func (w *World) resolve(p *Profile, name string, last bool) (string, Answer) {
	rest := strings.TrimPrefix(path.Clean(name), "/System/Volumes/Data")
	done := "/"
	for hops := 0; rest != "" && rest != "/"; {
		part, more, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		at, f, ok := w.find(path.Join(done, part))
		if ok && f.Type == Symlink && (last || more != "") {
			if hops++; hops > 32 {
				return "", Answer{Verdict: Deny, Why: "too many links"}
			}
			if a := p.Judge(Query{Op: "file-read-metadata", Path: at, Type: Symlink}); a.Verdict != Allow {
				return "", a
			}
			target := f.Target
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(at), target)
			}
			rest, done = path.Join(target, more), "/"
			continue
		}
		done, rest = at, more
	}
	return done, Answer{Verdict: Allow}
}

func (w *World) judge(p *Profile, op, real string) Answer {
	_, f, ok := w.find(real)
	if !ok {
		f.Type = Regular
	}
	return p.Judge(Query{Op: op, Path: real, Type: f.Type})
}

// Do answers whether one operation on one path is allowed.
func (w *World) Do(p *Profile, op, name string) Answer {
	real, a := w.resolve(p, name, true)
	if a.Verdict != Allow {
		return a
	}
	return w.judge(p, op, real)
}

// Rename moves from to to, with everything below it, if the profile allows it.
// What Seatbelt asks for is the unlinking of what goes away and the creation of
// what appears (anthropic-experimental/sandbox-runtime#8).
func (w *World) Rename(p *Profile, from, to string) Answer {
	old, a := w.resolve(p, from, false)
	if a.Verdict != Allow {
		return a
	}
	if _, _, ok := w.find(old); !ok {
		return Answer{Why: fmt.Sprintf("%q does not exist in this world", from)}
	}
	if a = w.judge(p, "file-write-unlink", old); a.Verdict != Allow {
		return a
	}
	new, a := w.place(p, to)
	if a.Verdict != Allow {
		return a
	}
	have, _, _ := w.find(old)
	moved := map[string]File{}
	for name, f := range w.Files {
		if name == have || strings.HasPrefix(name, have+"/") {
			moved[new+strings.TrimPrefix(name, have)] = f
			delete(w.Files, name)
		}
	}
	for name, f := range moved {
		w.Files[name] = f
	}
	return a
}

// place answers whether an entry may appear at name, and where that is.
func (w *World) place(p *Profile, name string) (string, Answer) {
	real, a := w.resolve(p, name, false)
	if a.Verdict != Allow {
		return "", a
	}
	if _, _, ok := w.find(real); ok {
		if a = w.judge(p, "file-write-unlink", real); a.Verdict != Allow {
			return "", a
		}
	}
	return real, w.judge(p, "file-write-create", real)
}

// Link makes a hard link, if the profile allows it.
func (w *World) Link(p *Profile, from, to string) Answer {
	old, a := w.resolve(p, from, false)
	if a.Verdict != Allow {
		return a
	}
	if a = w.judge(p, "file-link", old); a.Verdict != Allow {
		return a
	}
	new, a := w.place(p, to)
	if a.Verdict == Allow {
		_, w.Files[new], _ = w.find(old)
	}
	return a
}

// Symlink makes a symlink, if the profile allows it.
func (w *World) Symlink(p *Profile, target, name string) Answer {
	real, a := w.place(p, name)
	if a.Verdict == Allow {
		w.Files[real] = File{Type: Symlink, Target: target}
	}
	return a
}

// Leaks lists the contents that reading every file by its own path gives away,
// sorted. Contents of which it is not known whether they leak are among them.
func (w *World) Leaks(p *Profile) []string {
	var all []string
	for name, f := range w.Files {
		if f.Type == Regular && w.judge(p, "file-read-data", name).Verdict != Deny {
			all = append(all, f.Content)
		}
	}
	sort.Strings(all)
	return all
}
