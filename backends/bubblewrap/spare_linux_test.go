package bubblewrap

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func entries(t *testing.T, dir string) int {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// holdOnce holds a launch's names, has something done and lets go of them.
func (s *site) holdOnce(do func()) {
	s.t.Helper()
	h, err := hold(s.plan("true").Extra.(*own), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	do()
	if err := h.release(); err != nil {
		s.t.Error(err)
	}
}

// What one launch has made to hold names is what the next one holds them with, and
// the project is left as it was by both.
func TestSpares(t *testing.T) {
	s := newSite(t)
	before := snapshot(t, s.project)
	inode := func(path string) uint64 {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Ino
	}
	spare := s.home + "/.kgate/spare"
	s.holdOnce(func() {})
	kept := entries(t, spare)
	if kept == 0 {
		t.Fatal("nothing is kept")
	}
	inodes := map[uint64]bool{}
	all, _ := filepath.Glob(spare + "/*")
	for _, dir := range all {
		inodes[inode(dir)] = true
	}
	s.holdOnce(func() {
		if !inodes[inode(s.path(".vscode"))] {
			t.Error("held with another directory than was kept")
		}
		if n := entries(t, spare); n != 0 {
			t.Errorf("%d of %d are not used", n, kept)
		}
	})
	if n := entries(t, spare); n != kept {
		t.Errorf("%d are kept, and then %d", kept, n)
	}
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}

	// Where they cannot be moved, they are made and removed as ever.
	renameat2 = func(int, string, int, string, uint) error { return unix.EXDEV }
	defer func() { renameat2 = unix.Renameat2 }()
	s.holdOnce(func() { inode(s.path(".vscode")) })
	if after := snapshot(t, s.project); after != before || entries(t, spare) != kept {
		t.Errorf("on another file system, left behind:\n%s", after)
	}
}

// What somebody puts into a held name stays there, at whatever moment he does. A
// directory whose mode he has changed is not kept, and what is not an empty directory
// is not moved into a project.
func TestSparesAreOnlyEmptyOnes(t *testing.T) {
	defer func() { renameat2 = unix.Renameat2 }()
	s := newSite(t)
	s.holdOnce(func() {})
	s.holdOnce(func() { s.write(".claude/settings.json", "{}") })
	if data, err := os.ReadFile(s.path(".claude/settings.json")); string(data) != "{}" {
		t.Errorf("put in while it was held: %q, %v", data, err)
	}
	os.RemoveAll(s.path(".claude"))

	raced := false
	s.holdOnce(func() {
		renameat2 = func(from int, name string, to int, other string, flags uint) error {
			if name == ".claude" {
				raced = true
				s.write(".claude/settings.json", "{}")
			}
			return unix.Renameat2(from, name, to, other, flags)
		}
	})
	renameat2 = unix.Renameat2
	if data, err := os.ReadFile(s.path(".claude/settings.json")); string(data) != "{}" || !raced {
		t.Errorf("put in at the last moment: %q, %v (raced: %v)", data, err, raced)
	}
	os.RemoveAll(s.path(".claude"))

	s.holdOnce(func() {
		if err := os.Chmod(s.path(".cursor"), 0o777); err != nil {
			t.Fatal(err)
		}
	})
	all, _ := filepath.Glob(s.home + "/.kgate/spare/*")
	if len(all) == 0 {
		t.Error("nothing is kept")
	}
	for _, dir := range all {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("kept for the next launch: %v, %v", info.Mode(), err)
		}
	}

	for _, dir := range all {
		if err := os.WriteFile(dir+"/his", nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.write("~/.kgate/spare/file", "his")
	s.holdOnce(func() {
		if names, err := os.ReadDir(s.path(".vscode")); err != nil || len(names) > 0 {
			t.Errorf("held with what is not empty: %v, %v", names, err)
		}
	})
	for _, name := range append(all, s.home+"/.kgate/spare/file") {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("what is somebody's does not stay: %v", err)
		}
	}
}
