package policy

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// systemDirs is where programs are beside what PATH names.
var systemDirs = []string{
	"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
	"/snap/bin", "/opt/homebrew/bin", "/opt/local/bin",
}

// multicall is programs that are many programs, chosen by the name they are
// called by. A denied name that leads to one of them must not take the rest.
var multicall = map[string]bool{
	"busybox": true, "toybox": true, "coreutils": true, "sbase-box": true, "ubase-box": true,
	"snap": true, "rustup": true, "mise": true, "volta-shim": true, "systemctl": true,
	"busybox.static": true, "busybox-static": true, "busybox.nosuid": true, "busybox.suid": true,
}

// programDirs is where denied programs are looked for: PATH, the system's
// directories and the allowed paths, without what the box does not show.
// Looking is paid at every launch, and PATH may name slow network drives.
func (p *Policy) programDirs(env []string) []string {
	var dirs []string
	seen := map[string]bool{}
	add := func(dir string, sure bool) {
		if !filepath.IsAbs(dir) || seen[dir] {
			return
		}
		seen[dir] = true
		if !sure && foreign(dir) && !p.shown(dir) {
			return
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || (real != dir && seen[real]) || (!sure && !p.shown(real)) {
			return
		}
		seen[real] = true
		dirs = append(dirs, real)
	}
	for _, dir := range systemDirs {
		add(dir, true)
	}
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				add(filepath.Clean(dir), false)
			}
		}
	}
	for _, a := range p.Paths {
		if a.From.Kind == FromDefault {
			continue // files
		}
		add(a.Name, true)
		add(filepath.Join(a.Name, "bin"), true)
		add(filepath.Join(a.Name, "sbin"), true)
	}
	return dirs
}

// hidesHome is whether the box shows nothing of home but what is allowed.
var hidesHome = runtime.GOOS == "linux"

// foreign reports whether a directory is where drives are mounted, which can
// be slow to look at. The box does not show these unless they are allowed.
func foreign(dir string) bool {
	for _, d := range []string{"/mnt", "/media", "/run", "/Volumes"} {
		if within(dir, d) {
			return true
		}
	}
	return false
}

// shown reports whether a directory can be in the box.
func (p *Policy) shown(dir string) bool {
	if within(dir, p.Project) {
		return true
	}
	for _, a := range p.Paths {
		if within(dir, a.Name) {
			return true
		}
	}
	if !hidesHome {
		return !foreign(dir)
	}
	for _, h := range append([]string{"/tmp", "/home", "/root"}, p.Homes...) {
		if within(dir, h) {
			return false
		}
	}
	return !foreign(dir)
}

// Locate finds the files that the denied words stand for: each name in each of
// dirs, each word that is a path where it is, symlinks resolved, and for a
// file with several hard links its other names in dirs. A file is returned
// once, for the first word that leads to it. Dirs are absolute.
func Locate(words []Word, dirs []string) []Program {
	var real []string
	seen := map[string]bool{}
	for _, dir := range dirs {
		r, err := filepath.EvalSymlinks(dir)
		if err != nil || seen[r] {
			continue
		}
		seen[r] = true
		real = append(real, r)
	}
	return locate(words, real)
}

// locate is Locate for directories whose symlinks are resolved already.
func locate(words []Word, dirs []string) []Program {
	l := locator{dirs: dirs, have: map[string]int{}}
	names := make(map[string]int, len(words))
	for i, w := range words {
		if _, ok := names[w.Text]; !ok && !filepath.IsAbs(w.Text) {
			names[w.Text] = i
		}
	}
	// Which words are where is found directory by directory; what comes back is
	// in the order of the words.
	hits := make([][]string, len(words))
	for _, dir := range dirs {
		if present, ok := smallDir(dir, names); ok {
			for _, i := range present {
				hits[i] = append(hits[i], dir)
			}
			continue
		}
		for name, i := range names {
			if isFile(dir + "/" + name) {
				hits[i] = append(hits[i], dir)
			}
		}
	}
	for i, w := range words {
		if filepath.IsAbs(w.Text) {
			l.look(w, w.Text, false)
			continue
		}
		for _, dir := range hits[i] {
			l.look(w, dir+"/"+w.Text, true)
		}
	}
	l.links()
	return l.found
}

// isFile asks the kernel without an error value: most names are in no
// directory, and making one would cost as much as asking.
func isFile(name string) bool {
	var st syscall.Stat_t
	return syscall.Stat(name, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG
}

type locator struct {
	dirs  []string
	have  map[string]int // index in found of a path
	found []Program
	many  []Program // those with several hard links
}

// look adds the file that name leads to. The directory of name is known to be
// free of symlinks when real is set.
func (l *locator) look(w Word, name string, real bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return
	}
	if !real || info.Mode()&os.ModeSymlink != 0 {
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return
		}
		if info, err = os.Lstat(name); err != nil {
			return
		}
	}
	if !info.Mode().IsRegular() {
		return
	}
	base := filepath.Base(name)
	many := multicall[base] && base != filepath.Base(w.Text)
	if i, ok := l.have[name]; ok {
		if l.found[i].Multicall && !many { // denied by its own name after all
			l.found[i].Name, l.found[i].From, l.found[i].Multicall = w.Text, w.From, false
		}
		return
	}
	l.have[name] = len(l.found)
	prog := Program{Name: w.Text, Path: name, Info: info, From: w.From, Multicall: many}
	l.found = append(l.found, prog)
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Nlink > 1 && !many {
		l.many = append(l.many, prog)
	}
}

// links adds the other names of found files that have several. When one of
// them is a multi-call program, the denied name is but one of its faces: only
// the names that were denied are taken, and the program itself is marked.
func (l *locator) links() {
	if len(l.many) == 0 {
		return
	}
	names := make([][]string, len(l.many))
	for _, dir := range l.dirs {
		for i, list := range linksIn(dir, l.many) {
			names[i] = append(names[i], list...)
		}
	}
	for i, prog := range l.many {
		faces := false
		for _, n := range names[i] {
			base := filepath.Base(n)
			faces = faces || (multicall[base] && base != filepath.Base(prog.Name))
		}
		for _, n := range names[i] {
			many := faces && multicall[filepath.Base(n)]
			if _, ok := l.have[n]; ok || (faces && !many) {
				continue
			}
			l.have[n] = len(l.found)
			l.found = append(l.found, Program{Name: prog.Name, Path: n, Info: prog.Info, From: prog.From, Multicall: many})
		}
	}
}

// linksInSlow looks at every file of dir: for each program, the names there
// that are the same file.
func linksInSlow(dir string, programs []Program) map[int][]string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	out := map[int][]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		for i, p := range programs {
			if os.SameFile(info, p.Info) {
				out[i] = append(out[i], dir+"/"+e.Name())
			}
		}
	}
	return out
}
