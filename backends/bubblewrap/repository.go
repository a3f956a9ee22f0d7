package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/kgate-dev/kgate/backends"
)

// dotGit protects what .git in a working tree is: a repository, or a file that
// names one elsewhere (gitrepository-layout(5)). With hold set, an absent one
// cannot be made: a repository that a command makes is one whose configuration
// it writes.
func (w *planner) dotGit(path string, hold bool) {
	const why = "git runs hooks, and what the configuration names"
	info, err := w.h.Lstat(path)
	switch {
	case err != nil:
		w.guard(path, why, hold)
	case info.Mode()&fs.ModeSymlink != 0:
		w.guard(path, why, hold)
		if real := w.real(path); w.bare(real) {
			w.repository(real)
		}
	case info.IsDir() && w.vacant(path):
		w.guard(path, why, hold)
	case info.IsDir():
		w.repository(path)
		if !hold {
			w.unbare(filepath.Dir(path))
		}
	default:
		w.guard(path, "names the repository", hold)
		w.elsewhere(path)
	}
}

// unbare keeps a directory from becoming a repository itself. Git takes it for one
// when it has the three parts and what .git is there is none, and a command can take
// .git's own parts away. HEAD is the last choice: as a name of a file it would make
// git ask which of the two is meant.
func (w *planner) unbare(dir string) {
	if info, err := w.h.Lstat(filepath.Join(dir, ".git")); err == nil && info.Mode().IsRegular() {
		return // git looks nowhere else
	}
	for _, name := range []string{"refs", "objects", "HEAD"} {
		path := filepath.Join(dir, name)
		if info, err := w.h.Lstat(path); err != nil || info.IsDir() && w.vacant(path) {
			w.guard(path, "git would take the directory for a repository", true)
			return
		}
	}
}

// bare says whether a directory is a repository itself.
func (w *planner) bare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if !w.exists(filepath.Join(dir, name)) {
			return false
		}
	}
	return true
}

// repository protects one repository's hooks and configuration, and its
// submodules' and worktrees', and keeps it from being led to another one's.
func (w *planner) repository(dir string) {
	if w.at(dir).kind != writable {
		return
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	w.guard(in("hooks"), "git runs hooks", true)
	none, self := "", ".\n"
	w.guardAs(in("config"), "git runs what the configuration names", true, &none)
	// The file names the repository whose configuration counts. Git fails on one
	// that is a directory or empty; "." is the repository itself.
	w.guardAs(in("commondir"), "names the repository whose configuration counts", true, &self)
	config := w.config(in("config"))
	w.guardAs(in("config.worktree"), "git runs what the configuration names", config.worktree, &none)
	for _, p := range config.paths {
		if !filepath.IsAbs(p.path) {
			base := dir
			if p.work {
				base = filepath.Dir(dir)
			}
			p.path = filepath.Join(base, p.path)
		}
		w.guard(p.path, "the repository's configuration names it", true)
	}
	w.modules(in("modules"), 0)
	entries, more, _ := w.h.ReadDir(in("worktrees"), 64)
	for _, e := range entries {
		w.guard(filepath.Join(in("worktrees"), e.Name(), "commondir"), "names the repository whose configuration counts", false)
		w.guard(filepath.Join(in("worktrees"), e.Name(), "config.worktree"), "git runs what the configuration names", false)
	}
	if more {
		w.finding("ways out", backends.Degraded, fmt.Sprintf("%q has more worktrees than are protected", dir), "git worktree prune")
	}
}

// modules protects the repositories of submodules, whose names may hold slashes.
func (w *planner) modules(dir string, depth int) {
	entries, more, err := w.h.ReadDir(dir, 128)
	if err != nil {
		return
	}
	if more || depth > 4 {
		w.finding("ways out", backends.Degraded, fmt.Sprintf("%q has more submodules than are protected", dir), "")
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		// A part of one is enough: the rest could be taken away in one launch and
		// put back in the next.
		if w.exists(filepath.Join(sub, "config")) || w.exists(filepath.Join(sub, "HEAD")) || w.exists(filepath.Join(sub, "hooks")) {
			w.repository(sub)
		} else {
			w.modules(sub, depth+1)
		}
	}
}

// named is a path that a repository's configuration names.
type named struct {
	path string
	work bool // counts from the working tree
}

type gitConfig struct {
	worktree bool // extensions.worktreeConfig
	paths    []named
}

// config looks in a configuration for the files that are part of it, or that git
// runs. It reads what git itself writes and what is usual by hand, not all that
// git-config(1) allows.
func (w *planner) config(file string) gitConfig {
	var c gitConfig
	data, err := w.h.ReadFile(file)
	if err != nil {
		return c
	}
	section := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, ok := strings.Cut(line[1:], "]")
			if !ok {
				continue
			}
			section, _, _ = strings.Cut(strings.ToLower(head), " ")
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "extensions.worktreeconfig":
			c.worktree = !strings.EqualFold(value, "false")
		case "core.hookspath":
			c.paths = append(c.paths, named{value, true})
		case "core.fsmonitor":
			if strings.Contains(value, "/") {
				c.paths = append(c.paths, named{value, true})
			}
		case "include.path", "includeif.path":
			c.paths = append(c.paths, named{value, false})
		}
	}
	kept := c.paths[:0]
	for _, p := range c.paths {
		if p.path != "" && !strings.HasPrefix(p.path, "~") && !strings.ContainsAny(p.path, " \t") {
			kept = append(kept, p)
		}
	}
	c.paths = kept
	return c
}

// elsewhere follows a .git file and says which path to allow when the repository
// is not in the box.
func (w *planner) elsewhere(file string) {
	data, err := w.h.ReadFile(file)
	if err != nil {
		return
	}
	line, _, _ := strings.Cut(string(data), "\n")
	dir, ok := strings.CutPrefix(line, "gitdir:")
	if !ok {
		return
	}
	dir = strings.TrimSpace(dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(file), dir)
	}
	dir = w.real(dir)
	common := dir
	if data, err := w.h.ReadFile(filepath.Join(dir, "commondir")); err == nil {
		common = strings.TrimSpace(string(data))
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
		common = w.real(common)
	}
	if w.at(common).kind == writable && w.at(dir).kind == writable {
		if !w.bare(w.at(common).path) {
			w.repository(common)
		}
		return
	}
	w.finding("repository", backends.Degraded,
		fmt.Sprintf("%q is a linked worktree or a submodule; its repository %q is not in the box, so git does not work there", filepath.Dir(file), common),
		"kgate run --allow-path "+quote(common+":rw")+" -- …")
}
