package sbpl

import (
	"slices"
	"testing"
)

// anthropic-experimental/sandbox-runtime#8: a deny of reading alone is undone by
// renaming the file or a directory above it.
func TestRenameUndoesAPathDeny(t *testing.T) {
	const allowAll = `(allow file-read* file-write* (subpath "/p"))`
	tree := func() *World { return Tree("/p/s/k/key=secret", "/p/open=open") }
	for _, tt := range []struct {
		name     string
		rules    string
		from, to string
		leaks    bool
	}{
		{"reading alone, the file", `(deny file-read* (subpath "/p/s/k"))`, "/p/s/k/key", "/p/x", true},
		{"reading alone, above", `(deny file-read* (subpath "/p/s/k"))`, "/p/s", "/p/x", true},
		{"writing too, the file", `(deny file-read* file-write* (subpath "/p/s/k"))`, "/p/s/k/key", "/p/x", false},
		{"writing too, the directory", `(deny file-read* file-write* (subpath "/p/s/k"))`, "/p/s/k", "/p/x", false},
		{"writing too, above", `(deny file-read* file-write* (subpath "/p/s/k"))`, "/p/s", "/p/x", true},
		{"unlinking above", `(deny file-read* file-write* (subpath "/p/s/k"))(deny file-write-unlink (literal "/p/s"))`, "/p/s", "/p/x", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := tree()
			p := parse(t, "(deny default)", allowAll, tt.rules)
			if slices.Contains(w.Leaks(p), "secret") {
				t.Fatal("leaks before anything was renamed")
			}
			a := w.Rename(p, tt.from, tt.to)
			if a.Verdict == Unknown {
				t.Fatal(a)
			}
			if got := slices.Contains(w.Leaks(p), "secret"); got != tt.leaks {
				t.Errorf("leaks: %v, want %v (rename: %v)", got, tt.leaks, a)
			}
		})
	}
}

// nolabs-ai/nono#393: what counts is the path the kernel resolves.
func TestLinksAreResolved(t *testing.T) {
	w := Tree("/private/tmp/a=a", "/p/l -> /private/tmp/a", "/Users/u/f=f")
	const links = `(allow file-read-metadata (literal "/tmp") (literal "/p/l"))`
	for _, tt := range []struct {
		name, rules, path string
		want              Verdict
	}{
		{"both spellings by the real path", `(allow file-read* (literal "/private/tmp/a"))` + links, "/tmp/a", Allow},
		{"the real path itself", `(allow file-read* (literal "/private/tmp/a"))`, "/private/tmp/a", Allow},
		{"a link is no way around", `(allow file-read* (subpath "/p"))` + links, "/p/l", Deny},
		{"/tmp never matches", `(allow file-read* (subpath "/tmp"))` + links, "/tmp/a", Deny},
		{"a link that may not be looked at", `(allow file-read* (literal "/private/tmp/a"))`, "/tmp/a", Deny},
		{"the data volume is the same tree", `(allow file-read* (literal "/Users/u/f"))`, "/System/Volumes/Data/Users/u/f", Allow},
		{"and has no paths of its own", `(allow file-read* (subpath "/System/Volumes/Data/Users/u"))`, "/Users/u/f", Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.Do(parse(t, "(deny default)", tt.rules), "file-read-data", tt.path); got.Verdict != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHardLinks(t *testing.T) {
	const rules = `(allow file-read* file-write* file-link (subpath "/p"))`
	w := Tree("/p/key=secret")
	p := parse(t, "(deny default)", rules, `(deny file-read* (literal "/p/key"))`)
	if a := w.Link(p, "/p/key", "/p/x"); a.Verdict != Allow || !slices.Contains(w.Leaks(p), "secret") {
		t.Errorf("a deny of reading alone: %v, leaks %v", a, w.Leaks(p))
	}
	w = Tree("/p/key=secret")
	p = parse(t, "(deny default)", rules, `(deny file-read* file-link (literal "/p/key"))`)
	if a := w.Link(p, "/p/key", "/p/x"); a.Verdict != Deny || slices.Contains(w.Leaks(p), "secret") {
		t.Errorf("linking denied too: %v, leaks %v", a, w.Leaks(p))
	}
}

func TestFoldedNames(t *testing.T) {
	p := parse(t, "(deny default)", `(allow file-read* (subpath "/p"))`, `(deny file-read* (literal "/p/Key"))`)
	for _, typed := range []bool{false, true} {
		w := Tree("/p/Key=secret")
		w.FoldCase, w.AsTyped = true, typed
		want := Deny
		if typed {
			want = Unknown
		}
		if a := w.Do(p, "file-read-data", "/p/KEY"); a.Verdict != want {
			t.Errorf("as typed %v: %v, want %v", typed, a, want)
		}
	}
}

func TestSymlinkAndPlace(t *testing.T) {
	p := parse(t, "(deny default)", `(allow file-read* file-write* (subpath "/p"))`)
	w := Tree("/p/", "/q/key=secret")
	if a := w.Symlink(p, "/q/key", "/p/l"); a.Verdict != Allow {
		t.Fatal(a)
	}
	if a := w.Do(p, "file-read-data", "/p/l"); a.Verdict != Deny {
		t.Errorf("through a link of one's own: %v", a)
	}
	if a := w.Symlink(p, "/p/l", "/q/l"); a.Verdict != Deny {
		t.Errorf("outside: %v", a)
	}
}
