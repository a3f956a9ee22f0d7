package seatbelt

import (
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// system is what the system's rules allow: looks are the paths of which they
// allow at least the metadata by name, trees those below which they allow reading.
var system = sync.OnceValue(func() (s struct {
	looks map[string]bool
	trees []string
}) {
	s.looks = map[string]bool{}
	for _, g := range []group{settings, devices, opened} {
		for _, n := range g.needs {
			if name, ok := place(n.rule); ok && strings.Contains(n.rule, "(subpath ") {
				s.trees = append(s.trees, name)
			} else if ok {
				s.looks[name] = true
			}
		}
	}
	for _, r := range runnable {
		s.trees = append(s.trees, r.path)
	}
	return s
})

// place is the path that one of the system's rules about files is for.
func place(rule string) (string, bool) {
	if strings.Contains(rule, "^/dev/ttys") {
		return "/dev/ttys", true
	}
	for _, filter := range []string{`(literal "`, `(subpath "`} {
		if _, rest, ok := strings.Cut(rule, filter); ok && strings.Contains(rule, "file-read") {
			name, _, _ := strings.Cut(rest, `"`)
			return name, true
		}
	}
	return "", false
}

// reachable reports whether some rule so far may allow something at or below a
// path. A denial of anything else would be a line that nothing needs: the
// default denies it, and what is allowed below a denied path was left out.
func (w *writer) reachable(p string) bool {
	roots := append([]string{w.developer(), w.kgate, path.Join(w.f.UserTemp, "xcrun_db")}, system().trees...)
	for _, t := range w.trees {
		roots = append(roots, t.path)
	}
	for _, r := range roots {
		if r != "" && mayBeWithin(p, r) && !w.deniedRead(r) {
			return true
		}
	}
	return false
}

// hide gathers the paths that may not be read, each in the places it has: where
// it leads, and where the entry itself lies when that is a symlink, which may be
// a file tomorrow.
func (w *writer) hide() {
	put := func(name, why string, from policy.Origin) {
		for _, p := range []string{w.real(name), w.realParent(name)} {
			known := false
			for _, h := range w.hidden {
				known = known || h.path == p
			}
			if !known {
				w.hidden = append(w.hidden, tree{path: p, why: why, from: from})
			}
		}
	}
	for _, e := range w.p.DenyRead {
		put(e.Name, "deny.read", e.From)
	}
	for _, h := range homes(w.p) {
		put(path.Join(h, ".kgate"), "kgate's own settings and audit log", built("kgate's own files"))
	}
	put(path.Join(w.f.Temp, "profile.sb"), "the profile of this launch", built("kgate's own files"))
}

func (w *writer) deniedRead(p string) bool {
	for _, h := range w.hidden {
		if mayBeWithin(p, h.path) {
			return true
		}
	}
	return false
}

// settingsTree is readable, but nothing in it can be executed.
const settingsTree = "/private/etc"

// denials come last, for the operations that something allows around a path:
// they beat whatever allowed the same.
func (w *writer) denials() {
	w.group = "what is denied, whatever allows it"
	for _, h := range w.hidden {
		if !w.reachable(h.path) || w.covered(h) {
			continue
		}
		ops, why := opsRun, ": cannot be read"
		if within(h.path, settingsTree) && !w.inTree(h.path) {
			ops = opsRead
		}
		if w.writable(h.path) {
			ops, why = ops+" "+opsWrite, ": cannot be read, written or linked to"
		}
		w.add("(deny "+ops+" "+every(h.path)+")", h.why+why, h.from)
		w.keep(h.path, h.from)
	}
	w.deniedPrograms()
}

// covered reports whether another hidden path contains this one.
func (w *writer) covered(h tree) bool {
	for _, o := range w.hidden {
		if o.path != h.path && within(h.path, o.path) {
			return true
		}
	}
	return false
}

// deniedPrograms keeps the files of denied programs from being executed, copied
// and, where they could be, renamed.
func (w *writer) deniedPrograms() {
	done := map[string]bool{}
	var many []string
	deny := func(name, file string, from policy.Origin) {
		if done[file] || !w.reachable(file) || w.deniedRead(file) {
			return
		}
		done[file] = true
		ops := "process-exec* file-map-executable file-read-data"
		if w.writable(file) {
			ops += " " + opsWrite
		}
		w.add("(deny "+ops+" "+only(file)+")", "deny.exec "+name+": cannot be executed or copied", from)
		if w.writable(file) {
			w.keep(file, from)
		}
	}
	for _, e := range w.p.Programs {
		if e.Multicall {
			many = append(many, fmt.Sprintf("%s (%s)", e.Name, e.Path))
			continue
		}
		deny(e.Name, w.real(e.Path), e.From)
	}
	if w.f.Developer != "" {
		// What a shim of /usr/bin runs is another file of the same name.
		for _, e := range w.p.DenyExec {
			if e.Text == "" || strings.ContainsRune(e.Text, '/') || unspeakable("/"+e.Text) != "" {
				continue
			}
			for _, dir := range []string{"usr/bin", "Toolchains/XcodeDefault.xctoolchain/usr/bin"} {
				if file := path.Join(w.f.Developer, dir, e.Text); w.f.Exists(file) {
					deny(e.Text, w.real(file), e.From)
				}
			}
		}
	}
	if len(many) == 0 {
		w.finding("programs", backends.Ready, fmt.Sprintf("%d files of denied programs cannot be executed or copied", len(done)), "")
	} else {
		w.finding("programs", backends.Degraded,
			"one file is many programs, so the profile cannot deny it by path: "+strings.Join(many, ", "),
			"the command line is checked all the same; deny the file's own name to close it for all of them")
	}
}

// writable reports whether some tree around a path is writable.
func (w *writer) writable(p string) bool {
	for _, t := range w.trees {
		if t.write && mayBeWithin(p, t.path) {
			return true
		}
	}
	return false
}
