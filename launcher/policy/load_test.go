package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// world is a home with a project in it.
type world struct {
	t             testing.TB
	home, project string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), project: filepath.Join(dir, "home", "proj")}
	w.mkdir(w.home, ".kgate")
	w.mkdir(w.project)
	return w
}

func (w *world) mkdir(elem ...string) string {
	w.t.Helper()
	name := filepath.Join(elem...)
	if err := os.MkdirAll(name, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	w.mkdir(filepath.Dir(name))
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return name
}

func (w *world) user(text string) string {
	return w.write(filepath.Join(w.home, ".kgate", "config.yaml"), text)
}

func (w *world) proj(text string) string {
	return w.write(filepath.Join(w.project, ".kgate.yaml"), text)
}

func (w *world) options() Options {
	return Options{Dir: w.project, Home: w.home, AccountHome: w.home}
}

func (w *world) load() *Policy {
	w.t.Helper()
	p, err := Load(w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestDefaultsHoldWithoutFiles(t *testing.T) {
	w := newWorld(t)
	p := w.load()
	if got := p.Effective(); got.Value != Off || got.From.Kind != FromDerived {
		t.Errorf("effective network = %+v, want off, derived", got)
	}
	if p.Network.Value != Restricted || p.IPv6.Value || p.Nested.Value || len(p.Hosts) != 0 {
		t.Errorf("defaults are not the tight ones: %+v", p)
	}
	if p.Project != w.project || p.Dir != w.project || p.ProjectFile != "" {
		t.Errorf("project %q, dir %q, file %q", p.Project, p.Dir, p.ProjectFile)
	}
	for _, want := range []string{"curl", "wget", "ssh", "nc"} {
		if !hasWord(p.DenyExec, want) {
			t.Errorf("default deny.exec lacks %s", want)
		}
	}
	if !hasPath(p.DenyRead, w.home+"/.ssh") {
		t.Error("default deny.read lacks ~/.ssh")
	}
}

func hasWord(words []Word, text string) bool {
	for _, w := range words {
		if w.Text == text {
			return true
		}
	}
	return false
}

func hasPath(paths []Path, name string) bool {
	for _, p := range paths {
		if p.Name == name {
			return true
		}
	}
	return false
}

func hostNames(hosts []Host) string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.String())
	}
	return strings.Join(out, " ")
}
