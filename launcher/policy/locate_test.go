package policy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"
)

// shelf is directories of programs.
type shelf struct {
	t   testing.TB
	dir string
}

func newShelf(t testing.TB) *shelf {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &shelf{t, dir}
}

func (s *shelf) path(name string) string { return filepath.Join(s.dir, name) }

func (s *shelf) file(name string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(name), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) symlink(to, name string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Symlink(to, s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) hardlink(to, name string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Link(s.path(to), s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// locate returns "name path" of what is found, sorted, "name path (many)" for a
// multi-call program.
func (s *shelf) locate(dirs, words string) string {
	s.t.Helper()
	var list []Word
	for _, w := range strings.Fields(words) {
		list = append(list, Word{Text: strings.Replace(w, "@", s.dir, 1), From: Origin{Key: w}})
	}
	var in []string
	for _, d := range strings.Fields(dirs) {
		in = append(in, s.path(d))
	}
	var out []string
	for _, p := range Locate(list, in) {
		info, err := os.Lstat(p.Path)
		if err != nil || !os.SameFile(info, p.Info) || !info.Mode().IsRegular() || strings.Replace(p.From.Key, "@", s.dir, 1) != p.Name {
			s.t.Errorf("%+v: %v", p, err)
		}
		line := strings.Replace(p.Name, s.dir, "@", 1) + " " + strings.TrimPrefix(p.Path, s.dir+"/")
		if p.Multicall {
			line += " (many)"
		}
		out = append(out, line)
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

func TestLocate(t *testing.T) {
	s := newShelf(t)
	s.file("bin/curl")
	s.file("local/curl")
	s.file("bin/other")
	s.symlink("curl", "bin/mycurl")
	s.file("bin/nc.openbsd")
	s.symlink(s.path("etc/nc"), "bin/nc")
	s.symlink(s.path("bin/nc.openbsd"), "etc/nc")
	s.symlink("nc", "bin/netcat")
	s.file("bin/hard")
	s.hardlink("bin/hard", "bin/hard2")
	s.hardlink("bin/hard", "local/hard3")
	s.hardlink("bin/hard", "hidden/hard4")
	s.symlink("bin", "alias")
	s.file("bin/dir/x")
	s.symlink("nowhere", "bin/dangling")
	s.symlink("loop", "bin/loop")
	s.file("opt/tool")
	if err := os.Chmod(s.path("local/curl"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, dirs, words, want string }{
		{"in each directory, executable or not", "bin local", "curl", "curl bin/curl, curl local/curl"},
		{"not there", "bin local absent", "wget", ""},
		{"no directories", "", "curl", ""},
		{"a denied link is its file", "bin", "mycurl", "mycurl bin/curl"},
		{"through alternatives", "bin", "nc", "nc bin/nc.openbsd"},
		{"two names, one file, once", "bin", "nc netcat nc.openbsd", "nc bin/nc.openbsd"},
		{"hard links in the directories", "bin local", "hard", "hard bin/hard, hard bin/hard2, hard local/hard3"},
		{"the same directory twice", "bin alias", "curl hard", "curl bin/curl, hard bin/hard, hard bin/hard2"},
		{"by its link alone", "alias", "hard", "hard bin/hard, hard bin/hard2"},
		{"no file", "bin", "dir dangling loop", ""},
		{"by path", "bin", "@/opt/tool", "@/opt/tool opt/tool"},
		{"by a path that is a link", "local", "@/bin/mycurl", "@/bin/mycurl bin/curl"},
		{"by a path that is absent", "bin", "@/opt/none", ""},
		{"by a path with hard links", "local", "@/hidden/hard4", "@/hidden/hard4 hidden/hard4, @/hidden/hard4 local/hard3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.locate(tt.dirs, tt.words); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A denied applet must not take the whole of the program away.
func TestLocateMulticall(t *testing.T) {
	s := newShelf(t)
	s.file("bin/busybox")
	s.symlink("busybox", "bin/wget")
	s.symlink("busybox", "bin/cat")
	s.file("hard/busybox")
	s.hardlink("hard/busybox", "hard/wget")
	s.hardlink("hard/busybox", "hard/cat")
	for _, tt := range []struct{ name, dirs, words, want string }{
		{"link", "bin", "wget", "wget bin/busybox (many)"},
		{"by its own name", "bin", "busybox", "busybox bin/busybox"},
		{"both", "bin", "wget busybox", "busybox bin/busybox"},
		{"both, the other way", "bin", "busybox wget", "busybox bin/busybox"},
		{"hard link", "hard", "wget", "wget hard/busybox (many), wget hard/wget"},
		{"hard link, by its own name", "hard", "busybox", "busybox hard/busybox, busybox hard/cat, busybox hard/wget"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.locate(tt.dirs, tt.words); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The fast and the slow way of finding hard links agree on this file system.
func TestLinksAgree(t *testing.T) {
	s := newShelf(t)
	for i := range 300 {
		s.file(fmt.Sprintf("bin/f%d", i))
	}
	s.hardlink("bin/f7", "bin/g")
	s.hardlink("bin/f7", "bin/h")
	s.hardlink("bin/f9", "bin/i")
	var programs []Program
	for _, n := range []string{"f7", "f9", "f11"} {
		info, err := os.Lstat(s.path("bin/" + n))
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, Program{Name: n, Info: info})
	}
	fast, slow := linksIn(s.path("bin"), programs), linksInSlow(s.path("bin"), programs)
	for i := range programs {
		sort.Strings(fast[i])
	}
	if len(slow[0]) != 3 || len(slow[1]) != 2 || len(slow[2]) != 1 || !reflect.DeepEqual(fast, slow) {
		t.Errorf("fast %v, slow %v", fast, slow)
	}
	if got := linksIn(s.path("absent"), programs); len(got) != 0 {
		t.Errorf("in no directory: %v", got)
	}
}

func TestLoadFillsPrograms(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(sh)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	tool := func(dir string) string {
		name := filepath.Join(w.mkdir(dir), "tool")
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	w.user("deny: {exec: [sh, tool]}\nallow: {paths: [~/kit, ~/other]}\n")
	inProject := tool(w.project + "/bin")
	inKit := tool(w.home + "/kit/bin")
	inOther := tool(w.home + "/other/deep")
	hidden := tool(w.home + "/hidden/bin")
	// A link in the hidden home to a directory that the box shows.
	linked := tool(w.project + "/linked")
	if err := os.Symlink(filepath.Dir(linked), w.home+"/link"); err != nil {
		t.Fatal(err)
	}
	o := w.options()
	o.Env = []string{"X=1", "PATH=" + strings.Join([]string{"", ".", "/usr/bin", filepath.Dir(inProject), filepath.Dir(inOther), filepath.Dir(hidden), w.home + "/link"}, ":")}
	p, err := Load(o)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, prog := range p.Programs {
		found[prog.Path] = prog.Name
	}
	if found[real] != "sh" {
		t.Errorf("%s is not among %v", real, found)
	}
	for name, want := range map[string]bool{inProject: true, inKit: true, inOther: true, linked: true, hidden: !hidesHome} {
		if _, ok := found[name]; ok != want {
			t.Errorf("%s found: %v, want %v", name, ok, want)
		}
	}
}

func BenchmarkLocate(b *testing.B) {
	p := defaults("/nonexistent")
	p.Project = "/nonexistent/project"
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games:/usr/local/games:/usr/local/go/bin"}
	b.ReportAllocs()
	for b.Loop() {
		Locate(p.DenyExec, p.programDirs(env))
	}
}

func BenchmarkLoad(b *testing.B) {
	w := newWorld(b)
	if _, err := Init(w.home, "", "", false); err != nil {
		b.Fatal(err)
	}
	w.proj("network: off\ndeny:\n  read: [.env, secrets/]\n  exec: [npm]\ndrop:\n  hosts: [a.test]\n  paths: [~/.gitconfig]\n")
	w.write(w.project+"/.git/HEAD", "x")
	o := w.options()
	o.Env = os.Environ()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(o); err != nil {
			b.Fatal(err)
		}
	}
}
