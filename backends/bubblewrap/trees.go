package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// tree is a file or directory of the host that the policy shows.
type tree struct {
	name    string // as the policy has it
	path    string // real
	links   []link
	write   bool
	dir     bool
	project bool
	from    policy.Origin
}

// trees lays out the homes, the allowed paths and the project.
func (w *planner) trees() {
	for _, home := range w.homes() {
		real, links, err := resolve(w.h, home)
		if err != nil {
			real = home
		}
		w.reproduce(links, built("home"))
		w.fresh(real, "0700", "a home of the box's own: what is written to it is gone afterwards")
	}
	w.roots = append(w.roots, w.project())
	for _, g := range w.p.Paths {
		if t, ok := w.grant(g); ok {
			w.roots = append(w.roots, t)
		}
	}
	sort.SliceStable(w.roots, func(i, j int) bool { return before(w.roots[i].path, w.roots[j].path) })
	kept := w.roots[:0]
	for _, t := range w.roots {
		if n := len(kept) - 1; n >= 0 && kept[n].path == t.path {
			kept[n].write = kept[n].write || t.write
			kept[n].project = kept[n].project || t.project
			kept[n].links = append(kept[n].links, t.links...)
			continue
		}
		kept = append(kept, t)
	}
	w.roots = kept[:0]
	for _, t := range kept {
		w.reproduce(t.links, t.from)
		if k := w.at(t.path).kind; k == writable || k == readOnly && !t.write {
			w.add("allow:"+t.name, "shown already", t.from)
			if k == writable && !t.project {
				continue
			}
		}
		w.roots = append(w.roots, t)
		switch {
		case t.project:
			w.bind("project:"+t.path, t.path, true, "the project: the one place the command may write", t.from)
		case w.at(t.path).kind != readOnly || t.write:
			w.bind("allow:"+t.path, t.path, t.write, "allowed", t.from)
		}
	}
}

// homes are the homes to hide, shallow ones first.
func (w *planner) homes() []string {
	homes := w.p.Homes
	if len(homes) == 0 {
		homes = []string{w.p.Home}
	}
	homes = append([]string(nil), homes...)
	sort.Slice(homes, func(i, j int) bool { return before(homes[i], homes[j]) })
	return homes
}

func (w *planner) project() tree {
	t := tree{name: w.p.Project, write: true, dir: true, project: true, from: built("project")}
	var err error
	if t.path, t.links, err = resolve(w.h, t.name); err != nil {
		t.path = filepath.Clean(t.name)
		w.finding("project", backends.Blocked, fmt.Sprintf("the project %q cannot be looked at: %v", t.name, err), "change to a directory that exists")
	}
	if k := w.at(t.path).kind; t.path == "/" || k == special || within(t.path, "/sys") {
		w.finding("project", backends.Blocked, fmt.Sprintf("%q cannot be a project: it is the kernel's or the whole machine", t.path), "change to a project's directory")
	}
	return t
}

// grant looks an allowed path up. What it leads to comes into the box, so a link
// that a command in a box could have made is not followed out of its tree.
func (w *planner) grant(g policy.Path) (tree, bool) {
	t := tree{name: g.Name, write: g.Write, from: g.From}
	skip := func(why string) (tree, bool) {
		w.add("allow:"+g.Name, why, g.From)
		return t, false
	}
	var err error
	if t.path, t.links, err = resolve(w.h, g.Name); err != nil {
		return skip("does not exist, so nothing is shown")
	}
	info, err := w.h.Lstat(t.path)
	if err != nil {
		return skip("cannot be looked at, so nothing is shown")
	}
	t.dir = info.IsDir()
	if by := w.denies(g.Name, t.path); by != nil {
		return skip("denied by " + by.From.String())
	}
	for _, home := range w.homes() {
		own := filepath.Join(home, ".kgate")
		for _, own := range append(w.twins(w.real(own)), own, w.real(own)) {
			if within(g.Name, own) || within(t.path, own) {
				return skip("kgate's own directory, which is always hidden")
			}
		}
	}
	if t.path == "/" || within(t.path, "/proc") || within(t.path, "/sys") || within(t.path, "/dev") {
		w.finding("allow.paths", backends.Blocked,
			fmt.Sprintf("%q (%s) cannot be allowed: it is the kernel's or the whole machine", g.Name, g.From), "allow the directories that are needed")
		return skip("cannot be allowed")
	}
	if within(InsidePath, t.path) {
		w.finding("allow.paths", backends.Blocked,
			fmt.Sprintf("%q (%s) cannot be allowed: what the box has of its own there would be hidden", g.Name, g.From), "allow what is needed in it")
		return skip("cannot be allowed")
	}
	project := w.real(w.p.Project)
	if within(t.path, project) && !g.Write {
		return skip("in the project, so shown already")
	}
	for _, k := range t.links {
		if by := w.made(k.at, g.Name); by != "" && !within(t.path, by) {
			w.finding("allow.paths", backends.Degraded,
				fmt.Sprintf("%q is not shown: the symlink %q lies in %q, where a command in the box can make one", g.Name, k.at, by),
				fmt.Sprintf("allow %q itself, if that is meant", t.path))
			return skip("a symlink that a command could have made is not followed")
		}
	}
	return t, true
}

// made returns the writable tree that a path lies in, "" when there is none.
// The grant under that very name does not count.
func (w *planner) made(path, name string) string {
	all := []string{w.real(w.p.Project)}
	for _, g := range w.p.Paths {
		if g.Write && g.Name != name {
			all = append(all, w.real(g.Name))
		}
	}
	for _, t := range all {
		if path != t && within(path, t) {
			return t
		}
	}
	return ""
}

// denies returns the denial that covers a path under one of its names.
func (w *planner) denies(name, real string) *policy.Path {
	for i, d := range w.p.DenyRead {
		if within(name, d.Name) || within(real, d.Name) {
			return &w.p.DenyRead[i]
		}
		if r := w.real(d.Name); r != d.Name && within(real, r) {
			return &w.p.DenyRead[i]
		}
	}
	return nil
}

// lifted says whether the policy allows by name, for writing, what kgate would
// protect of its own accord: the path itself or, inside its tree, a directory
// around it.
func (w *planner) lifted(path string) bool {
	top := w.at(path).path
	for _, g := range w.p.Paths {
		if g.Write && within(path, g.Name) && (g.Name == path || g.Name != top && within(g.Name, top)) {
			return true
		}
	}
	return false
}

// past is a path with the symlinks in its directories followed: only there can a
// mount keep something. "" when one leads nowhere. A link in a writable tree is
// not kept itself, and the plan says so.
func (w *planner) past(path string) string {
	dir := filepath.Dir(path)
	for !w.exists(dir) {
		dir = filepath.Dir(dir)
	}
	real := w.real(dir)
	info, err := w.h.Lstat(real)
	dangling := err == nil && info.Mode()&fs.ModeSymlink != 0
	if real == dir && !dangling {
		return path
	}
	if w.at(path).kind == writable && !w.lifted(path) {
		f := backends.Finding{Row: "ways out", Status: backends.Degraded,
			Reason: fmt.Sprintf("%q leads through a symlink, which a command in the box can replace: what lies there is protected, the link is not", dir),
			Mend:   "put the directory itself there"}
		if !slices.Contains(w.findings, f) {
			w.findings = append(w.findings, f)
		}
	}
	if dangling {
		return ""
	}
	return filepath.Join(real, strings.TrimPrefix(path, dir))
}

// hideDenied masks what may not be read, where the box would show it.
func (w *planner) hideDenied() {
	project := w.real(w.p.Project)
	hidden := 0
	for _, d := range w.p.DenyRead {
		real, _, err := resolve(w.h, d.Name)
		if err != nil {
			continue
		}
		if within(project, real) {
			w.finding("deny.read", backends.Blocked, fmt.Sprintf("%q (%s) covers the project %q", d.Name, d.From, project), "change to another directory")
			continue
		}
		for _, real := range append(w.twins(real), real) {
			if !w.visible(real) {
				continue
			}
			w.hideReal("deny-read:"+d.Name, real, "cannot be read", d.From)
			hidden++
			if info, err := w.h.Lstat(real); err == nil && info.Mode().IsRegular() && w.h.Names(info) > 1 {
				w.finding("deny.read", backends.Degraded,
					fmt.Sprintf("%q (%s) is a file with %d names (hard links): under another one that the box shows it can be read", real, d.From, w.h.Names(info)),
					"give it a file of its own: cp FILE NEW && mv NEW FILE")
			}
		}
	}
	if hidden > fewMasks {
		w.gather()
	}
}

// fewMasks is how many masks are worth no second thought. Each costs bwrap a
// reading of the mount table, so that many cost much: 100 take 20 ms and 1000
// take 700 ms (measured with 0.8.0).
const fewMasks = 64

// gather puts one mask over a directory in which everything is masked.
func (w *planner) gather() {
	in := map[string]int{}
	for path, o := range w.over {
		if o.does == hide {
			in[filepath.Dir(path)]++
		}
	}
	for dir, n := range in {
		if n < fewMasks/4 || w.at(dir).path == dir || within(w.real(w.p.Dir), dir) {
			continue
		}
		entries, more, err := w.h.ReadDir(dir, n)
		if err != nil || more || len(entries) != n {
			continue
		}
		all := true
		for _, e := range entries {
			o := w.over[filepath.Join(dir, e.Name())]
			all = all && o != nil && o.does == hide
		}
		if all {
			w.hideReal("deny-read:"+dir, dir, fmt.Sprintf("all %d files in it may not be read", n), built("denied files"))
		}
	}
}

// hideManaged hides kgate's own directory, whatever is allowed: its record, and
// the policy of the next launch.
func (w *planner) hideManaged() {
	for _, home := range w.homes() {
		dir := w.realParent(filepath.Join(home, ".kgate"))
		info, err := w.h.Lstat(dir)
		isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
		if isLink && w.at(dir).kind == writable {
			w.finding("~/.kgate", backends.Blocked,
				fmt.Sprintf("%q is a symlink in a writable path, where the command could replace it", dir), "allow the directory around it for reading only")
			continue
		}
		name := "hide:" + dir
		if isLink {
			for _, real := range append(w.twins(w.real(dir)), w.real(dir)) {
				w.hideReal("hide:"+real, real, "kgate's own record and policy", built("kgate's own directory"))
			}
			continue
		}
		if k := w.at(dir).kind; k == writable || k == readOnly && err == nil {
			w.put(overlay{path: dir, does: hide, dir: true, name: name, why: "kgate's own record and policy", from: built("kgate's own directory")})
			w.pins(dir, built("kgate's own directory"))
		}
		for _, twin := range w.twins(dir) {
			w.hideReal("hide:"+twin, twin, "kgate's own record and policy, by another name", built("kgate's own directory"))
		}
	}
}
