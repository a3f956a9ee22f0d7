package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kgate-dev/kgate/backends"
)

// wayOut is a name in a writable tree that a person's own tools act on later,
// outside the box: whoever can write it runs commands there.
type wayOut struct {
	name string
	why  string
	// anywhere: kept absent in every writable tree, not in projects alone,
	// because it acts as soon as somebody enters the directory.
	anywhere bool
}

// toolFiles lie in a project. What is there is read-only, and what is not there
// cannot be made. Makefiles, package scripts and the like are not among them:
// they are what the command was asked to work on, and run when they are asked
// to.
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
	{".bashrc", "the shell runs it", false}, {".bash_profile", "the shell runs it", false},
	{".bash_login", "the shell runs it", false}, {".bash_logout", "the shell runs it", false},
	{".bash_aliases", "the shell runs it", false}, {".profile", "the shell runs it", false},
	{".zshenv", "the shell runs it", false}, {".zshrc", "the shell runs it", false},
	{".zprofile", "the shell runs it", false}, {".zlogin", "the shell runs it", false},
	{".zlogout", "the shell runs it", false}, {".config/fish", "the shell runs it", false},
	{".inputrc", "keys that type commands", false}, {".xprofile", "the session runs it", false},
	{".pam_environment", "variables of every login", false},
	{".config/environment.d", "variables of every login", false},
	{".config/autostart", "the session starts it", false},
	{".config/systemd", "the session starts it", false},
	{".local/share/systemd", "the session starts it", false},
	{".local/bin", "programs on PATH", false}, {"bin", "programs on PATH", false},
	{".gitconfig", "git runs what it names", false}, {".config/git", "git runs what it names", false},
	{".vimrc", "the editor runs it", false}, {".vim", "the editor runs it", false},
	{".config/nvim", "the editor runs it", false}, {".emacs.d", "the editor runs it", false},
	{".tmux.conf", "tmux runs what it names", false}, {".config/tmux", "tmux runs what it names", false},
	{".config/direnv", "what direnv may run", false}, {".local/share/direnv", "what direnv may run", false},
}

// Hold is something that must exist on the host for the length of the launch so
// that the box can keep it from being made: a mount needs a place.
type Hold struct {
	Path string
	// File: an empty directory will not do, because git fails on one. The file
	// holds Content, which means the same to git as no file.
	File    bool
	Content string
	// Found: it was there when the plan was made, and may be another launch's.
	Found bool
}

// maxContent is the size of the largest file that a launch makes to hold a name.
// A larger one is somebody else's.
const maxContent = 2

const whyAbsent = ", so it cannot be made"

// protect keeps what lies in the writable trees from becoming a way out.
func (w *planner) protect() {
	for _, t := range w.roots {
		if !t.write || !t.dir {
			continue
		}
		isProject := t.project || w.exists(filepath.Join(t.path, ".kgate.yaml")) || w.exists(filepath.Join(t.path, ".git", "HEAD"))
		w.toolsIn(t.path, isProject)
		if w.bare(t.path) {
			w.repository(t.path)
			w.meet(t.path)
			w.unseen = true
		} else {
			w.dotGit(filepath.Join(t.path, ".git"), true)
			w.unbare(t.path)
			w.nested(t.path)
		}
	}
	w.programsLater()
	if dir := w.real(w.p.Dir); dir != w.real(w.p.Project) && within(dir, w.real(w.p.Project)) {
		w.toolsIn(dir, true)
	}
	for _, f := range w.p.ProjectFiles {
		w.guard(f, "narrows the next launch", true)
	}
	for _, home := range w.homes() {
		for _, f := range homeFiles {
			w.guard(filepath.Join(w.real(home), f.name), f.why, true)
		}
	}
	w.finding("ways out", backends.Ready, fmt.Sprintf("%d paths that tools outside the box act on are read-only or cannot be made", w.guarded()), "")
}

// guarded counts the ways out that the plan closes.
func (w *planner) guarded() int {
	n := 0
	for _, o := range w.over {
		if o.does == freeze || o.does == absent {
			n++
		}
	}
	return n
}

func (w *planner) toolsIn(dir string, isProject bool) {
	for _, f := range toolFiles {
		w.guard(filepath.Join(dir, f.name), f.why, isProject || f.anywhere)
	}
}

// guard makes a path of a writable tree read-only. With hold set, one that does
// not exist cannot be made.
func (w *planner) guard(path, why string, hold bool) {
	w.guardAs(path, why, hold, nil)
}

// guardAs is guard for a path that has to be a file with some content to be held.
func (w *planner) guardAs(path, why string, hold bool, content *string) {
	if path = w.past(path); path == "" || w.at(path).kind != writable || w.lifted(path) {
		return
	}
	from := built("ways out")
	info, err := w.h.Lstat(path)
	switch {
	case err != nil && !hold:
		return
	case err != nil:
		// Where the directory around it is absent too, that one is held.
		for above := filepath.Dir(path); !w.exists(above); above = filepath.Dir(above) {
			path, content = above, nil
		}
		if w.at(path).path == path || w.lifted(path) {
			return
		}
		h := Hold{Path: path}
		if content != nil {
			h.File, h.Content = true, *content
		}
		w.hold(h, why)
	case info.Mode()&fs.ModeSymlink != 0:
		w.finding("ways out", backends.Degraded,
			fmt.Sprintf("%q is a symlink, which a command in the box can replace (%s)", path, why),
			"put the file itself there")
		if real, _, err := resolve(w.h, path); err == nil && w.at(real).kind == writable {
			w.freeze(real, why)
		}
	case info.IsDir() && w.vacant(path):
		w.hold(Hold{Path: path, Found: true}, why)
	case content != nil && info.Mode().IsRegular() && info.Size() <= maxContent:
		w.hold(Hold{Path: path, File: true, Content: *content, Found: true}, why)
	default:
		w.freeze(path, why)
		if info.IsDir() {
			w.linksIn(path, why, 0)
		}
		for _, g := range w.p.Paths {
			if g.Write && g.Name != path && within(g.Name, path) && w.real(g.Name) == g.Name && w.exists(g.Name) {
				w.put(overlay{path: g.Name, does: thaw, name: "allow:" + g.Name, why: "allowed by name", from: g.From})
			}
		}
	}
	w.pins(path, from)
}

// linksIn makes read-only what the symlinks in a read-only directory lead to: a hook
// is often a link to a script of the project's.
func (w *planner) linksIn(dir, why string, depth int) {
	entries, _, _ := w.h.ReadDir(dir, 256)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && depth < 2:
			w.linksIn(path, why, depth+1)
		case e.Type()&fs.ModeSymlink != 0:
			target, err := w.h.Readlink(path)
			if err != nil {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			if target = filepath.Clean(target); !within(target, dir) {
				w.guard(target, why, true)
			}
		}
	}
}

// programsLater protects kgate's own file, and tells of directories of PATH, where
// they are the command's to write: what it puts there runs later, outside.
func (w *planner) programsLater() {
	if self := w.real(w.stage.Source); w.stage.Source != "" && w.at(self).kind == writable {
		w.guard(self, "kgate itself", false)
		w.finding("ways out", backends.Degraded,
			fmt.Sprintf("kgate itself is %q, where the command can write: that file is read-only in the box, but links to it are not", self),
			"install kgate outside the project")
	}
	var dirs []string
	for _, dir := range w.h.Path() {
		if !filepath.IsAbs(dir) || w.at(w.real(dir)).kind == writable {
			dirs = append(dirs, strconv.Quote(dir))
		}
	}
	if len(dirs) > 0 {
		w.finding("ways out", backends.Degraded,
			"on PATH, and the command can write there: what it puts there may run outside in another program's place: "+strings.Join(dirs, ", "),
			"take these directories off PATH, or put them last")
	}
}

func (w *planner) hold(h Hold, why string) {
	if old := w.over[h.Path]; old != nil && old.does >= absent {
		return
	}
	w.holds = append(w.holds, h)
	w.put(overlay{path: h.Path, does: absent, dir: !h.File, name: "absent:" + h.Path, why: why + whyAbsent, from: built("ways out")})
}

func (w *planner) freeze(path, why string) {
	w.put(overlay{path: path, does: freeze, name: "freeze:" + path, why: why, from: built("ways out")})
}

// vacant says whether a directory is empty.
func (w *planner) vacant(dir string) bool {
	entries, _, err := w.h.ReadDir(dir, 1)
	return err == nil && len(entries) == 0
}
