package policy

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestInitWritesALoadableDefault(t *testing.T) {
	for _, activate := range []bool{false, true} {
		w := newWorld(t)
		if err := os.Remove(filepath.Join(w.home, ".kgate")); err != nil {
			t.Fatal(err)
		}
		bare := w.load() // without a file
		bin := w.mkdir(w.home, "tools with space", "bin")
		w.mkdir(w.home, "tools with space", "lib")
		c, err := Init(w.home, "/usr/bin:"+bin, "", activate)
		if err != nil {
			t.Fatal(err)
		}
		for name, mode := range map[string]os.FileMode{c.File: 0o600, filepath.Dir(c.File): os.ModeDir | 0o700} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != mode {
				t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
			}
		}
		noLitter(t, filepath.Dir(c.File), "config.yaml")
		p := w.load()
		if p.Network.Value != Restricted || p.Network.From.File != c.File || p.Network.From.Line == 0 {
			t.Errorf("network = %+v", p.Network)
		}
		want := filepath.Join(w.home, "tools with space")
		if hasPath(p.Paths, want) != activate {
			t.Errorf("activate %v: paths %v", activate, p.Paths)
		}
		// Apart from the offers, the file says what holds without it.
		if !activate && !reflect.DeepEqual(p.Paths, bare.Paths) {
			t.Errorf("paths differ from the defaults: %v", p.Paths)
		}
		if !reflect.DeepEqual(p.DenyRead, bare.DenyRead) || !reflect.DeepEqual(p.DenyExec, bare.DenyExec) || !reflect.DeepEqual(p.EnvDrop, bare.EnvDrop) {
			t.Error("denials differ from the defaults")
		}
	}
}

// Every commented-out example of the template must be right when the mark is
// taken away.
func TestInitTemplateExamplesParse(t *testing.T) {
	home := t.TempDir()
	text := template([]Offer{{home + "/.nvm", "x"}, {home + "/a: #b\"", "y"}}, home, false)
	n := 0
	var out []string
	for _, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimLeft(line, " ")
		if rest, ok := strings.CutPrefix(trimmed, "# "); ok && (strings.HasPrefix(rest, "- ") || strings.HasPrefix(rest, "nested:")) {
			line = line[:len(line)-len(trimmed)] + rest
			n++
		}
		out = append(out, line)
	}
	doc, err := parse([]byte(strings.Join(out, "\n")), "t", FromUser, home, home)
	if err != nil {
		t.Fatal(err)
	}
	if n < 14 || len(doc.hosts) != 3 || !hasPath(doc.paths, home+"/a: #b\"") || !hasPath(doc.paths, home+"/.nvm") ||
		len(doc.envDrop) != 1 || len(doc.dropExec) != 1 || doc.nested == nil {
		t.Errorf("%d examples; %+v", n, doc)
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	for name, prepare := range map[string]func(w *world, file string){
		"file":          func(w *world, file string) { w.write(file, "mine") },
		"empty file":    func(w *world, file string) { w.write(file, "") },
		"directory":     func(w *world, file string) { w.mkdir(file) },
		"dangling link": func(w *world, file string) { _ = os.Symlink("/nowhere/at/all", file) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			file := filepath.Join(w.home, ".kgate", "config.yaml")
			prepare(w, file)
			before, _ := os.Lstat(file)
			content, _ := os.ReadFile(file)
			_, err := Init(w.home, "", "", false)
			if err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("err = %v", err)
			}
			after, err := os.Lstat(file)
			if err != nil || !os.SameFile(before, after) {
				t.Error("replaced")
			}
			if now, _ := os.ReadFile(file); string(now) != string(content) {
				t.Errorf("content changed to %q", now)
			}
			noLitter(t, filepath.Dir(file), "config.yaml")
		})
	}
}

func TestInitRacesHaveOneWinner(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Add(1)
		go func() { defer wg.Done(); _, errs[i] = Init(w.home, "", "", false) }()
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d calls made the file: %v", won, errs)
	}
	noLitter(t, filepath.Join(w.home, ".kgate"), "config.yaml")
}

func TestInitRefusesBadHomes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.MkdirAll(filepath.Join(open, ".kgate"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(open, ".kgate"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", "relative", "/", file, filepath.Join(dir, "absent"), open} {
		if _, err := Init(home, "", "", false); err == nil {
			t.Errorf("Init(%q) = nil", home)
		}
	}
	noLitter(t, filepath.Join(open, ".kgate"))
	noLitter(t, dir, "file", "open")
}

func TestVanishingAndOffers(t *testing.T) {
	w := newWorld(t)
	h := w.home
	nvm := w.mkdir(h, ".nvm/versions/node/v20/bin")
	w.mkdir(h, ".nvm/versions/node/v20/lib")
	shims := w.mkdir(h, ".pyenv/shims")
	cargo := w.mkdir(h, ".cargo/bin")
	w.mkdir(h, ".cargo/registry")
	w.mkdir(h, ".rustup")
	local := w.mkdir(h, ".local/bin")
	w.mkdir(h, ".local/share/tool/v1")
	w.write(h+"/.local/share/tool/v1/run", "x")
	link := func(to, name string) {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	link("../share/tool/v1/run", local+"/tool")
	link("/bin/sh", local+"/shell")
	sdk := w.mkdir(h, "sdk/go1/bin")
	w.write(h+"/sdk/go1/VERSION", "go1")
	w.mkdir(h, "go/pkg/mod")
	gobin := w.mkdir(h, "go/bin")
	secret := w.mkdir(h, ".aws/bin")
	outside := filepath.Join(filepath.Dir(h), "opt")
	link(w.mkdir(h, "real/bin"), outside)
	path := strings.Join([]string{"/usr/bin", nvm, shims, cargo, local, sdk, gobin, secret, outside, h, nvm,
		filepath.Join(h, "absent"), "", ".", "relative/bin"}, ":")

	got := Vanishing(path, h, []Path{{Name: h + "/sdk"}})
	want := []string{nvm, shims, cargo, local, gobin, secret, outside, h}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("Vanishing =\n%q, want\n%q", got, want)
	}

	var offers []string
	for _, o := range Offers(path, h) {
		offers = append(offers, o.Short(h))
		if o.Why == "" {
			t.Errorf("%s has no reason", o.Path)
		}
	}
	wantOffers := []string{"~/.nvm/versions/node/v20", "~/.pyenv", "~/.cargo/bin", "~/.rustup", "~/.local/bin", "~/.local/share/tool",
		"~/sdk/go1", "~/go/bin", "~/real/bin", "~/go/pkg/mod", "~/.cargo/registry"}
	if !reflect.DeepEqual(offers, wantOffers) {
		t.Errorf("Offers =\n%q, want\n%q", offers, wantOffers)
	}
}
