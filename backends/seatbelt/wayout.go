package seatbelt

import (
	"path"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// toolFiles are what a person's own tools read in a project and act on: whoever
// writes them runs commands outside the box later. They stay readable. Here a
// rule alone keeps an absent one absent.
var toolFiles = []struct{ name, why string }{
	{".envrc", "direnv runs it"},
	{".vscode", "the editor runs tasks and takes programs' paths from it"},
	{".idea", "the editor runs tasks from it"},
	{".devcontainer", "the editor runs commands from it"},
	{".mcp.json", "agents start the servers it names"},
	{".claude", "hooks and permissions of an agent"},
	{".codex", "hooks and permissions of an agent"},
	{".cursor", "hooks and permissions of an agent"},
	{".gemini", "hooks and permissions of an agent"},
	{".qwen", "hooks and permissions of an agent"},
	{".opencode", "plugins of an agent"},
	{"opencode.json", "shell and plugins of an agent"},
	{".kgate.yaml", "narrows the next launch"},
}

// gitRules are expressions below a tree for what git runs out of a repository,
// at any depth: a repository's own entry, its hooks and its configuration, also
// of submodules and worktrees, and the directories that hold those.
var gitRules = []struct{ ops, expr, kind, why string }{
	{opsWrite, "[.][Gg][Ii][Tt]", "", "a repository cannot be made, replaced or redirected"},
	{opsWrite, "[.][Gg][Ii][Tt]/" + gitInner + gitRun, "", "git runs hooks, and what the configuration names"},
	{"file-write-unlink", "[.][Gg][Ii][Tt]/([Mm][Oo][Dd][Uu][Ll][Ee][Ss]|[Ww][Oo][Rr][Kk][Tt][Rr][Ee][Ee][Ss])(/.*)?", "DIRECTORY",
		"the repositories of submodules and worktrees cannot be renamed"},
}

const (
	gitInner = "([Mm][Oo][Dd][Uu][Ll][Ee][Ss]/(.*/)?|[Ww][Oo][Rr][Kk][Tt][Rr][Ee][Ee][Ss]/[^/]*/)?"
	gitRun   = "([Hh][Oo][Oo][Kk][Ss](/.*)?|[Cc][Oo][Nn][Ff][Ii][Gg]([.][Ww][Oo][Rr][Kk][Tt][Rr][Ee][Ee])?|[Cc][Oo][Mm][Mm][Oo][Nn][Dd][Ii][Rr])"
)

// waysOut denies writing what would run outside the box later, and then allows
// what the person granted by name in spite of that.
func (w *writer) waysOut() {
	w.group = "what a person's own tools would run out of the project"
	from := built("ways out of the project")
	for _, t := range w.trees {
		if !t.write || t.path == w.temp {
			continue
		}
		if w.writableRootAbove(t.path) {
			continue // its expressions reach down here
		}
		w.gitIn(t.path, from)
	}
	for _, dir := range w.toolDirs() {
		for _, f := range toolFiles {
			w.protect(path.Join(dir, f.name), f.why, from)
		}
	}
	for _, f := range w.p.ProjectFiles {
		w.protect(w.realParent(f), "narrows the next launch", from)
	}
	w.protect(w.kgate, "the next launch runs it", from)
	w.grants()
}

// writableRootAbove reports whether a writable tree strictly contains a path.
func (w *writer) writableRootAbove(p string) bool {
	for _, t := range w.trees {
		if t.write && t.path != p && within(p, t.path) {
			return true
		}
	}
	return false
}

// toolDirs are the directories whose settings tools act on.
func (w *writer) toolDirs() []string {
	dirs := []string{w.real(w.p.Project)}
	if d := w.real(w.p.Dir); d != dirs[0] {
		dirs = append(dirs, d)
	}
	return dirs
}

func (w *writer) gitIn(root string, from policy.Origin) {
	if dir := gitDir(root); dir != "" {
		// A repository granted by name from outside the project, for a linked
		// worktree: it is the tree, and not below it.
		w.add("(deny "+opsWrite+" "+regex("^"+anyCase(dir)+"/"+gitInner+gitRun+"$")+")", gitRules[1].why, from)
		w.add("(deny file-write-unlink "+only(root)+")", "the repository cannot be renamed, and with it its hooks", from)
		return
	}
	prefix := "^" + anyCase(root) + "/(.*/)?"
	if root == "/" {
		prefix = "^/(.*/)?"
	}
	for _, r := range gitRules {
		filter := regex(prefix + r.expr + "$")
		if r.kind != "" {
			filter = "(require-all (vnode-type " + r.kind + ") " + filter + ")"
		}
		w.add("(deny "+r.ops+" "+filter+")", r.why, from)
	}
	w.keep(path.Join(root, ".git"), from)
}

// gitDir is the part of a path up to its .git, "" when it has none.
func gitDir(p string) string {
	for d := p; d != "/"; d = path.Dir(d) {
		if strings.EqualFold(path.Base(d), ".git") {
			return d
		}
	}
	return ""
}

// protect denies writing to one path and keeps it where it is.
func (w *writer) protect(p, why string, from policy.Origin) {
	if !w.writable(p) {
		return
	}
	for _, l := range w.lines {
		if l.Group == w.group && l.Text == "(deny "+opsWrite+" "+every(p)+")" {
			return
		}
	}
	w.add("(deny "+opsWrite+" "+every(p)+")", why, from)
	w.keep(p, from)
}

// grants lifts the protections for what is allowed for writing by name within
// the project, be it the protected path, something in it, or the repository.
func (w *writer) grants() {
	project := w.real(w.p.Project)
	for _, t := range w.trees {
		if !t.write || t.path == w.temp || t.path == project || !within(t.path, project) {
			continue
		}
		if w.protected(t.path, project) {
			ops := opsWrite
			if gitDir(strings.TrimPrefix(t.path, project)) != "" {
				ops += " file-write-unlink"
			}
			w.add("(allow "+ops+" "+all(t.path)+")", "granted by name in spite of the rules above", t.from)
		}
	}
}

func (w *writer) protected(p, project string) bool {
	if gitDir(strings.TrimPrefix(p, project)) != "" {
		return true
	}
	for _, dir := range w.toolDirs() {
		for _, f := range toolFiles {
			if mayBeWithin(p, path.Join(dir, f.name)) {
				return true
			}
		}
	}
	return false
}
