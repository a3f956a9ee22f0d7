package seatbelt

import (
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// tree is a directory or a file that the command may read, with all below it.
type tree struct {
	path  string // real
	dir   bool   // known to be a directory
	write bool
	why   string
	from  policy.Origin
}

// writer is one profile in the making.
type writer struct {
	f        Facts
	p        *policy.Policy
	temp     string // the launch's own temporary directory
	group    string
	lines    []Line
	findings []backends.Finding

	trees  []tree // the policy's, shallow to deep
	hidden []tree // what may not be read
	kgate  string // the file of the stage
	looked map[string]bool
	kept   map[string]bool // directories that cannot be renamed
}

func newWriter(f Facts, p *policy.Policy) *writer {
	return &writer{f: f, p: p, temp: path.Join(f.Temp, "tmp"), kgate: f.Kgate, looked: map[string]bool{}, kept: map[string]bool{}}
}

func (w *writer) finding(row string, s backends.Status, reason, mend string) {
	w.findings = append(w.findings, backends.Finding{Row: row, Status: s, Reason: reason, Mend: mend})
}

func (w *writer) add(text, why string, from policy.Origin) {
	w.lines = append(w.lines, Line{Group: w.group, Text: text, Why: why, From: from})
}

func (w *writer) addGroup(g group, from policy.Origin) {
	w.group = g.name
	for _, n := range g.needs {
		if name, ok := place(n.rule); ok && w.deniedRead(name) {
			continue
		}
		w.add(n.rule, n.why, from)
	}
}

// write makes the whole profile. A path that has no safe spelling blocks the
// plan and the profile is then not complete; it is never started.
func (w *writer) write() {
	if !w.speakable() {
		return
	}
	w.hide()
	w.collect()
	if w.deniedRead(w.kgate) {
		w.finding("profile", backends.Blocked, fmt.Sprintf("kgate's own file %q lies in what is hidden from the command", w.kgate), "install kgate elsewhere")
	}
	for _, g := range []group{unfiltered, processes, sysctls, services, devices, settings} {
		w.addGroup(g, built("system"))
	}
	w.programs()
	w.network()
	w.look()
	w.policyTrees()
	w.waysOut()
	w.denials()
	w.finding("profile", backends.Ready, fmt.Sprintf("%d rules; what none of them allows is denied", len(w.lines)), "")
	w.finding("home", backends.Ready, "hidden but for what is allowed; a write is refused (EPERM), and so is one to /tmp: TMPDIR is the launch's own", "")
	w.finding("ways out", backends.Ready, "what tools outside the box act on is read-only and cannot be made", "")
}

// speakable reports every path that cannot be written into a profile.
func (w *writer) speakable() bool {
	ok := true
	check := func(name string, from policy.Origin) {
		if name == "" {
			return
		}
		for _, n := range []string{name, w.f.Follow(name).Path} {
			if why := unspeakable(n); why != "" {
				ok = false
				w.finding("profile", backends.Blocked, fmt.Sprintf("path %q (%s) %s", n, from, why), "rename it, or take it out of the policy")
				return
			}
		}
		for _, n := range w.f.Follow(name).Links {
			if why := unspeakable(n); why != "" {
				ok = false
				w.finding("profile", backends.Blocked, fmt.Sprintf("path %q on the way to %q (%s) %s", n, name, from, why), "rename it, or take it out of the policy")
				return
			}
		}
	}
	check(w.p.Project, built("project"))
	check(w.p.Dir, built("working directory"))
	for _, h := range homes(w.p) {
		check(h, built("home"))
	}
	check(w.f.Temp, built("temporary directory"))
	check(w.f.UserTemp, built("temporary directory"))
	check(w.f.Kgate, built("command"))
	check(w.f.Developer, built("developer tools"))
	for _, list := range [][]policy.Path{w.p.Paths, w.p.DenyRead} {
		for _, e := range list {
			check(e.Name, e.From)
		}
	}
	for _, e := range w.p.Programs {
		check(e.Path, e.From)
	}
	for _, f := range w.p.ProjectFiles {
		check(f, built("project file"))
	}
	return ok
}

func homes(p *policy.Policy) []string {
	if len(p.Homes) > 0 {
		return p.Homes
	}
	return []string{p.Home}
}

func (w *writer) real(name string) string { return w.f.Follow(name).Path }

// realParent resolves all but the last name of a path: where the entry itself
// lies, even when it is a symlink.
func (w *writer) realParent(name string) string {
	if name == "/" {
		return name
	}
	return path.Join(w.real(path.Dir(name)), path.Base(name))
}

// collect gathers the trees of the policy that are not denied, each once,
// shallow to deep. Of two
// entries for one real path the writable one counts, as in the policy itself.
func (w *writer) collect() {
	put := func(t tree) {
		if w.deniedRead(t.path) {
			return // deny beats allow
		}
		for i, have := range w.trees {
			if have.path == t.path {
				if t.write && !have.write {
					w.trees[i] = t
				}
				return
			}
		}
		w.trees = append(w.trees, t)
	}
	put(tree{w.real(w.p.Project), true, true, "the project", built("project")})
	put(tree{w.temp, true, true, "TMPDIR of this launch", built("temporary directory")})
	for _, e := range w.p.Paths {
		put(tree{w.real(e.Name), false, e.Write, "allowed", e.From})
	}
	sort.SliceStable(w.trees, func(i, j int) bool {
		return strings.Count(strings.TrimSuffix(w.trees[i].path, "/"), "/") < strings.Count(strings.TrimSuffix(w.trees[j].path, "/"), "/")
	})
}

// programs allows what comes from the system's own trees.
func (w *writer) programs() {
	w.group = "programs and libraries"
	for _, r := range runnable {
		if !w.deniedRead(r.path) {
			w.add("(allow "+r.ops+" "+subpath(r.path)+")", r.why, built("system"))
		}
	}
	if d := w.developer(); d != "" && !w.systemTree(d) && !w.deniedRead(d) {
		w.add("(allow "+opsRun+" "+subpath(d)+")", "git, make, clang and python3 of /usr/bin are shims that run what lies here (microsoft/mxc#1110)", built("developer tools"))
	}
	if db := path.Join(w.f.UserTemp, "xcrun_db"); w.f.UserTemp != "" && !w.deniedRead(db) && !w.inTree(db) {
		// Read only: a path planted in this cache would be run outside the box.
		w.add("(allow "+opsRead+" "+literal(db)+")", "xcrun: which tools it found before (openai/codex#25991)", built("developer tools"))
	}
	if !w.systemTree(w.kgate) && !w.inTree(w.kgate) {
		w.add("(allow "+opsRun+" "+literal(w.kgate)+")", "kgate itself, which becomes the command", built("command"))
	}
	for _, c := range closed {
		if w.deniedRead(c.path) {
			continue
		}
		w.add("(deny "+opsRun+" "+every(c.path)+")", c.why, built("system"))
	}
}

// developer is the directory to allow for the developer tools. Inside an
// application it is the whole of the application's contents: xcrun may run
// xcodebuild, which loads frameworks from beside the tools.
func (w *writer) developer() string {
	if app, ok := strings.CutSuffix(w.f.Developer, "/Contents/Developer"); ok {
		return app + "/Contents"
	}
	return w.f.Developer
}

func (w *writer) systemTree(p string) bool {
	for _, r := range runnable {
		if within(p, r.path) {
			return true
		}
	}
	return false
}

func (w *writer) inTree(p string) bool {
	for _, t := range w.trees {
		if within(p, t.path) {
			return true
		}
	}
	return false
}

// look lets a program see that the directories above what it may read exist,
// and pass the symlinks on the way: getcwd and realpath ask for each of them.
func (w *writer) look() {
	w.group = "the directories and symlinks on the way to what is allowed"
	for _, t := range w.trees {
		w.lookAt(path.Dir(t.path), t.from)
	}
	for _, e := range w.p.Paths {
		w.lookLinks(e.Name, e.From)
	}
	w.lookLinks(w.p.Project, built("project"))
	w.lookLinks(w.p.Dir, built("working directory"))
	for _, p := range []struct{ path, key string }{{w.kgate, "command"}, {w.developer(), "developer tools"}, {w.f.UserTemp, "temporary directory"}} {
		if p.path != "" {
			w.lookAt(path.Dir(p.path), built(p.key))
		}
	}
	if w.f.UserTemp != "" {
		w.lookAt(w.f.UserTemp, built("temporary directory"))
	}
}

func (w *writer) lookLinks(name string, from policy.Origin) {
	for _, l := range w.f.Follow(name).Links {
		w.lookAt(l, from)
	}
}

// lookAt allows the metadata of a path and of all above it, where nothing else
// does and nothing denies it.
func (w *writer) lookAt(p string, from policy.Origin) {
	var chain []string
	for ; p != "/" && p != "."; p = path.Dir(p) {
		chain = append(chain, p)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		p := chain[i]
		if w.looked[p] || system().looks[p] || w.systemTree(p) || w.inTree(p) || within(p, settingsTree) || w.deniedRead(p) {
			continue
		}
		w.looked[p] = true
		w.add("(allow "+opsLook+" "+literal(p)+")", "on the way", from)
	}
}

// policyTrees allows the trees of the policy. Where one lies in another the
// deeper one decides, because it stands later; it only says what the one around
// it does not say already.
func (w *writer) policyTrees() {
	w.group = "the trees of the policy, shallow to deep"
	for _, t := range w.trees {
		around, write := w.around(t.path)
		ops, kind := opsRun, ", read-only"
		switch {
		case t.write && write:
			continue
		case t.write && around:
			ops, kind = opsWrite, ", writable"
		case t.write:
			ops, kind = opsRun+" "+opsWrite, ", writable"
		case write:
			w.add("(deny "+opsWrite+" "+every(t.path)+")", t.why+", read-only within what is writable", t.from)
			w.keep(t.path, t.from)
			continue
		case around:
			continue
		}
		filter := all(t.path)
		if t.dir {
			filter = subpath(t.path)
		}
		w.add("(allow "+ops+" "+filter+")", t.why+kind, t.from)
	}
	w.add("(allow network-bind network-inbound network-outbound "+subpath(w.temp)+")",
		"python multiprocessing, node: unix sockets of the launch's own", built("temporary directory"))
}

// around reports whether something around a path is readable already, and
// whether it is writable.
func (w *writer) around(p string) (readable, write bool) {
	readable = w.systemTree(p)
	for _, c := range closed {
		readable = readable && !mayBeWithin(p, c.path)
	}
	for _, t := range w.trees {
		if t.path != p && within(p, t.path) {
			readable, write = true, t.write
		}
	}
	return readable, write
}

// keep holds the directories between a protected path and the root of each
// writable tree around it in place: whoever renames one of them has the path
// under a name that no rule knows (anthropic-experimental/sandbox-runtime#8).
func (w *writer) keep(p string, from policy.Origin) {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		if !w.writable(dir) {
			return
		}
		if w.kept[dir] {
			continue
		}
		w.kept[dir] = true
		w.add("(deny file-write-unlink "+only(dir)+")", "cannot be renamed, and with it what is protected below", from)
	}
}
