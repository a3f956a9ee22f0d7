package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Offer is a path below home that the box would hide and tools need.
type Offer struct {
	Path string // absolute
	Why  string // one line
}

// Short is the path as a person writes it.
func (o Offer) Short(home string) string {
	if within(o.Path, home) && o.Path != home {
		return "~" + o.Path[len(home):]
	}
	return o.Path
}

// Vanishing returns the directories of pathEnv ($PATH), as they stand there,
// that exist below home, by name or by what they lead to, and that no allowed
// path shows: in the box their programs are not found.
func Vanishing(pathEnv, home string, allowed []Path) []string {
	var out []string
	seen := map[string]bool{}
	for _, entry := range filepath.SplitList(pathEnv) {
		if !filepath.IsAbs(entry) || seen[entry] {
			continue
		}
		seen[entry] = true
		real, err := filepath.EvalSymlinks(entry)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			continue
		}
		if hidden(filepath.Clean(entry), home, allowed) || hidden(real, home, allowed) {
			out = append(out, entry)
		}
	}
	return out
}

func hidden(name, home string, allowed []Path) bool {
	if !within(name, home) {
		// Home may itself be reached through a symlink.
		real, err := filepath.EvalSymlinks(home)
		if err != nil || !within(name, real) {
			return false
		}
		name = home + name[len(real):]
	}
	for _, a := range allowed {
		if within(name, a.Name) {
			return false
		}
	}
	return true
}

// managers are directories of tools that work only as a whole: what PATH names
// are shims or links into the rest.
var managers = []string{
	".pyenv", ".rbenv", ".nodenv", ".goenv", ".jenv", ".asdf", ".volta", ".proto", ".sdkman", ".rye",
	".fnm", ".local/share/fnm", ".local/share/mise", ".local/share/uv", ".local/share/pipx", ".bun", ".deno",
	".juliaup", ".julia", ".ghcup", ".opam", ".elan", ".rustup", ".linuxbrew",
	"miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba",
}

// caches are what package managers have fetched and builds read. They are
// offered read-only: written from inside, they would be a way out.
var caches = []struct{ dir, why string }{
	{"go/pkg/mod", "Go's downloaded modules"},
	{".cargo/registry", "cargo's downloaded crates"},
	{".m2/repository", "Maven's downloaded artifacts"},
}

// Offers returns the paths below home to show for pathEnv's tools to work in
// the box, in the order of PATH, then caches that exist. None of them is home,
// a directory around everything, or holds credentials by default.
func Offers(pathEnv, home string) []Offer {
	denied := defaults(home).DenyRead
	var out []Offer
	add := func(path, why string) {
		if !utf8.ValidString(path) || strings.ContainsAny(path, "\n*?") || !within(path, home) || path == home {
			return
		}
		for _, broad := range []string{".local", ".local/share", ".config", ".cache", ".kgate"} {
			if path == filepath.Join(home, broad) {
				return
			}
		}
		for _, d := range denied {
			if within(path, d.Name) {
				return
			}
		}
		for _, have := range out {
			if within(path, have.Path) {
				return
			}
		}
		if _, err := os.Stat(path); err != nil {
			return
		}
		out = append(out, Offer{path, why})
	}
	for _, entry := range Vanishing(pathEnv, home, nil) {
		entry = filepath.Clean(entry)
		why := "in PATH: " + Offer{Path: entry}.Short(home) + programs(entry)
		if strings.IndexFunc(why, func(r rune) bool { return r < 0x20 || r == 0x7f || r == utf8.RuneError }) >= 0 {
			why = "in PATH"
		}
		if !within(entry, home) { // a link into home
			if real, err := filepath.EvalSymlinks(entry); err == nil {
				entry = real
			}
		}
		add(whole(entry, home), why)
		if entry == filepath.Join(home, ".cargo", "bin") {
			add(filepath.Join(home, ".rustup"), "what the programs in ~/.cargo/bin start")
		}
		for _, target := range leads(entry, home) {
			add(target, "where links in "+Offer{Path: entry}.Short(home)+" lead")
		}
	}
	for _, c := range caches {
		add(filepath.Join(home, c.dir), c.why)
	}
	return out
}

// programs names some of the programs in a directory, in brackets: what would
// not be found in the box. "" when there are none.
func programs(dir string) string {
	const most = 500
	d, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer d.Close()
	list, _ := d.ReadDir(most)
	var names []string
	for _, e := range list {
		plain := strings.IndexFunc(e.Name(), func(r rune) bool {
			return r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r)
		}) < 0
		info, err := os.Stat(filepath.Join(dir, e.Name()))
		if err == nil && plain && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			names = append(names, e.Name())
		}
	}
	sort.Strings(names)
	const shown = 4
	switch n := len(names); {
	case n == 0:
		return ""
	case n > shown+1:
		return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:shown], ", "), n-shown)
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// whole returns the directory that a directory of programs needs around it:
// the manager's, or the one above bin when libraries stand beside it.
func whole(entry, home string) string {
	for _, m := range managers {
		if m = filepath.Join(home, m); within(entry, m) {
			return m
		}
	}
	above := filepath.Dir(entry)
	if filepath.Base(entry) != "bin" || above == home || above == filepath.Join(home, ".local") {
		return entry
	}
	for _, beside := range []string{"lib", "libexec", "share", "VERSION"} {
		if _, err := os.Stat(filepath.Join(above, beside)); err == nil {
			return above
		}
	}
	return entry
}

// leads returns the directories below home that symlinks in a directory of
// programs lead to.
func leads(entry, home string) []string {
	const most = 500
	d, err := os.Open(entry)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.ReadDir(most)
	realHome, err := filepath.EvalSymlinks(home)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range list {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(filepath.Join(entry, e.Name()))
		if err != nil || !within(real, realHome) {
			continue
		}
		real = home + real[len(realHome):]
		if within(real, entry) {
			continue
		}
		dir := whole(filepath.Dir(real), home)
		if rest, ok := strings.CutPrefix(real, filepath.Join(home, ".local", "share")+"/"); ok {
			first, _, below := strings.Cut(rest, "/")
			if below {
				dir = filepath.Join(home, ".local", "share", first)
			}
		}
		out = append(out, dir)
	}
	return out
}
