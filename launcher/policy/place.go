package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is where a launch happens.
type place struct {
	homes   []string // at least one
	dir     string   // the working directory, symlinks resolved
	project string   // the project's root: dir or above it
	files   []string // names that may be a .kgate.yaml, nearest first
}

// projectFile is the name of a project's policy.
const projectFile = ".kgate.yaml"

// locatePlace checks the working directory and finds its project. It is
// refused to work in a home directory, in a directory above one, or in
// kgate's own, by whatever name they are reached.
func locatePlace(o Options) (*place, error) {
	homes, err := homeDirs(o)
	if err != nil {
		return nil, err
	}
	pl := &place{homes: homes}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("working directory %q is not absolute", o.Dir)
	}
	if pl.dir, err = filepath.EvalSymlinks(o.Dir); err != nil {
		return nil, fmt.Errorf("working directory %q: %s (change to a directory that exists)", o.Dir, reason(err))
	}
	kept := protected(homes)
	if err := pl.walk(o.Dir, kept); err != nil {
		return nil, err
	}
	return pl, nil
}

// homeDirs returns $HOME and, when it is another, the user database's home.
func homeDirs(o Options) ([]string, error) {
	var homes []string
	for _, h := range []string{o.Home, o.AccountHome} {
		if h == "" {
			continue
		}
		if !filepath.IsAbs(h) || strings.IndexByte(h, 0) >= 0 {
			return nil, fmt.Errorf("home directory %q is not an absolute path (set HOME)", h)
		}
		h = filepath.Clean(h)
		if h == "/" {
			if len(homes) > 0 {
				// A daemon's account. Working in / is refused and / is never shown
				// as a whole, so nothing more is there to protect.
				continue
			}
			return nil, &RefusedError{o.Dir, "is in the home directory /, which is the whole machine", "set HOME to a directory of its own"}
		}
		if len(homes) == 0 || homes[0] != h {
			homes = append(homes, h)
		}
	}
	if len(homes) == 0 {
		return nil, errNoHome
	}
	return homes, nil
}

// guard is a directory that must not be the scope of a launch.
type guard struct {
	info os.FileInfo
	what string
	// below is true when its subdirectories must not be either.
	below bool
}

// protected lists the homes and every directory above them, along the names
// given and along the real ones. A home that does not exist protects nothing.
func protected(homes []string) []guard {
	var out []guard
	seen := map[string]bool{}
	add := func(name, what string, below bool) {
		if seen[name] {
			return
		}
		seen[name] = true
		if info, err := os.Stat(name); err == nil {
			out = append(out, guard{info, what, below})
		}
	}
	for _, h := range homes {
		add(filepath.Join(h, ".kgate"), "is kgate's own directory", true)
		names := []string{h}
		if real, err := filepath.EvalSymlinks(h); err == nil && real != h {
			names = append(names, real)
		}
		for _, n := range names {
			for i, a := range ancestors(n) {
				what := fmt.Sprintf("is the home directory %q", h)
				if i > 0 {
					what = fmt.Sprintf("contains the home directory %q", h)
				}
				add(a, what, false)
			}
		}
	}
	return out
}

// walk goes from the working directory up to the first protected directory or
// to /, refusing where it must, and finds the project's root on the way.
func (pl *place) walk(given string, kept []guard) error {
	found := false
	pl.project = pl.dir
	stopped := false // reached home or above: nothing more belongs to a project
	for i, dir := range ancestors(pl.dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("working directory %q: %s (change to a directory that exists)", given, reason(err))
		}
		if i == 0 && !info.IsDir() {
			return fmt.Errorf("working directory %q is not a directory", given)
		}
		for _, g := range kept {
			if !os.SameFile(info, g.info) {
				continue
			}
			if i == 0 || g.below {
				what := g.what
				if i > 0 {
					what = "lies in " + strings.TrimPrefix(what, "is ")
				}
				return &RefusedError{given, what, "change to a project's directory below home, or elsewhere"}
			}
			stopped = true
		}
		if stopped {
			continue
		}
		if i > 0 && !trustedDir(info) {
			continue
		}
		file := filepath.Join(dir, projectFile)
		has := hasPolicy(file)
		if has {
			pl.files = append(pl.files, file)
		}
		if !found && trustedDir(info) && (has || isRepository(filepath.Join(dir, ".git"))) {
			found = true
			pl.project = dir
		}
	}
	return nil
}

// trustedDir reports whether a directory may make what is below it a project:
// it belongs to the user or to root, and it is not a place where everybody may
// put a file, such as /tmp.
func trustedDir(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mine := int(st.Uid) == userID()
	if !mine && st.Uid != 0 {
		return false
	}
	shared := info.Mode().Perm()&0o002 != 0
	return !shared || (mine && info.Mode()&os.ModeSticky == 0)
}

// hasPolicy reports whether something is at file that has to be read or
// complained about. The placeholder of a running launch, an empty directory,
// is nothing.
func hasPolicy(file string) bool {
	info, err := os.Lstat(file)
	if err != nil {
		// An unreadable directory is for readFile to complain about.
		return !os.IsNotExist(err)
	}
	return !info.IsDir() || !emptyDir(file)
}

// isRepository reports whether git would take name for a repository: a
// directory with a HEAD, or the file that a linked worktree has.
func isRepository(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return false
	}
	if info.Mode().IsRegular() {
		return true
	}
	_, err = os.Lstat(filepath.Join(name, "HEAD"))
	return err == nil
}
