package seatbelt

import (
	"path"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// toolFiles are what a person's own tools read in a project and act on: whoever
// writes them runs commands outside the box later. They stay readable. Here a
// rule alone keeps an absent one absent.
var toolFiles = []wayOut{
	{".envrc", "direnv runs it", true},
	{".vscode", "the editor runs tasks and takes programs' paths from it", true},
	{".idea", "the editor runs tasks from it", false},
	{".devcontainer", "the editor runs commands from it", false},
	{".devcontainer.json", "the editor runs commands from it", false},
	{".exrc", "vi runs it where that is turned on", false},
	{".nvim.lua", "nvim runs it where that is turned on", false},
	{".nvimrc", "nvim runs it where that is turned on", false},
	{".mcp.json", "agents start the servers it names", false},
	{".claude", "hooks and permissions of an agent", false},
	{".codex", "hooks and permissions of an agent", false},
	{".cursor", "hooks and permissions of an agent", false},
	{".gemini", "hooks and permissions of an agent", false},
	{".qwen", "hooks and permissions of an agent", false},
	{".opencode", "plugins of an agent", false},
	{"opencode.json", "shell and plugins of an agent", false},
	{"opencode.jsonc", "shell and plugins of an agent", false},
	{".aider.conf.yml", "commands that an agent runs", false},
	{".kgate.yaml", "narrows the next launch", false},
}

// homeFiles lie in a home and matter where a policy makes one, or a part of one,
// writable.
var homeFiles = []wayOut{
	{".bashrc", "the shell runs it", false},
	{".bash_profile", "the shell runs it", false},
	{".bash_login", "the shell runs it", false},
	{".bash_logout", "the shell runs it", false},
	{".profile", "the shell runs it", false},
	{".zshenv", "the shell runs it", false},
	{".zshrc", "the shell runs it", false},
	{".zprofile", "the shell runs it", false},
	{".zlogin", "the shell runs it", false},
	{".zlogout", "the shell runs it", false},
	{".config/fish", "the shell runs it", false},
	{".inputrc", "keys that type commands", false},
	{"Library/LaunchAgents", "the session starts it", false},
	{".local/bin", "programs on PATH", false},
	{"bin", "programs on PATH", false},
	{".gitconfig", "git runs what it names", false},
	{".config/git", "git runs what it names", false},
	{".vimrc", "the editor runs it", false},
	{".vim", "the editor runs it", false},
	{".config/nvim", "the editor runs it", false},
	{".emacs.d", "the editor runs it", false},
	{".tmux.conf", "tmux runs what it names", false},
	{".config/tmux", "tmux runs what it names", false},
	{".config/direnv", "what direnv may run", false},
	{".local/share/direnv", "what direnv may run", false},
}

// wayOut is a name that a person's own tools act on, outside the box.
type wayOut struct {
	name string
	why  string
	// anywhere: in every writable tree and not in projects alone, because it acts
	// as soon as somebody enters the directory.
	anywhere bool
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
			if t.path == w.real(w.p.Project) {
				w.unbare(t.path, from)
			}
			continue // its expressions reach down here
		}
		w.gitIn(t.path, from)
		w.unbare(t.path, from)
		for _, f := range toolFiles {
			if f.anywhere && gitDir(t.path) == "" {
				w.protect(path.Join(t.path, f.name), f.why, from)
			}
		}
	}
	for _, dir := range w.toolDirs() {
		for _, f := range toolFiles {
			w.protect(path.Join(dir, f.name), f.why, from)
		}
	}
	for _, f := range w.p.ProjectFiles {
		w.protect(w.realParent(f), "narrows the next launch", from)
	}
	for _, h := range homes(w.p) {
		for _, f := range homeFiles {
			w.protect(path.Join(w.real(h), f.name), f.why, from)
		}
	}
	w.repository()
	w.protect(w.kgate, "the next launch runs it", from)
	w.grants()
}

// unbare keeps a directory from becoming a repository itself. Git takes it for one
// where what .git is there is none, and a command can take .git's own parts away.
func (w *writer) unbare(dir string, from policy.Origin) {
	if head := path.Join(dir, "HEAD"); gitDir(dir) == "" && !w.f.Exists(head) {
		w.protect(head, "with it git would take the directory for a repository", from)
	}
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
	if !w.writable(p) || w.granted(p) {
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

// granted reports whether the policy allows writing to exactly this path: kgate's
// own protections give way to what a person names.
func (w *writer) granted(p string) bool {
	for _, t := range w.trees {
		if t.write && t.path == p {
			return true
		}
	}
	return false
}

func (w *writer) protected(p, project string) bool {
	if gitDir(strings.TrimPrefix(p, project)) != "" {
		return true
	}
	for _, dir := range w.toolDirs() {
		for _, f := range toolFiles {
			if at := path.Join(dir, f.name); p != at && mayBeWithin(p, at) {
				return true
			}
		}
	}
	return false
}
