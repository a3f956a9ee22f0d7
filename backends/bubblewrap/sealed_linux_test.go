package bubblewrap

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSealed starts boxes with a bwrap that this user may write, and looks from
// inside at what their first process was started from.
func TestSealed(t *testing.T) {
	s := newSite(t)
	plan := s.plan("sh", "-c", "stat -Lc %d:%i /proc/1/exe; readlink /proc/1/exe; : >>/proc/1/exe")
	o := plan.Extra.(*own)
	copied := filepath.Join(t.TempDir(), "bwrap")
	if out, err := exec.Command("cp", o.Bwrap, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o.Bwrap = copied
	var st unix.Stat_t
	if err := unix.Stat(copied, &st); err != nil {
		t.Fatal(err)
	}
	l, err := s.start(plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := l.wait()
	if file := fmt.Sprintf("%d:%d\n", st.Dev, st.Ino); r.err != nil || strings.HasPrefix(r.out, file) || !strings.Contains(r.out, "memfd:bwrap") || r.status == 0 {
		t.Errorf("the file is %q: %v", file, r)
	}
}

// TestSealedCopy is about the copy: the same bytes, which cannot be changed, and
// nothing where it is not needed.
func TestSealedCopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err := programOf(file); err != nil || c.copy != nil || c.path != file {
		t.Errorf("a script: %+v, %v", c, err)
	}
	want := strings.Repeat("0123456789abcdef", 1<<16)
	if err := os.WriteFile(file, []byte(want), 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := programOf(file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if got, err := os.ReadFile(c.path); err != nil || string(got) != want {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	for name, err := range map[string]error{
		"write":    func() error { _, err := c.copy.WriteAt([]byte("x"), 0); return err }(),
		"truncate": c.copy.Truncate(0),
		"grow":     c.copy.Truncate(1 << 21),
	} {
		if err == nil {
			t.Errorf("%s: it can be done", name)
		}
	}
	if os.Geteuid() == 0 {
		return // root may write every file
	}
	if c, err := programOf("/bin/sh"); err != nil || c.copy != nil || c.path != "/bin/sh" {
		t.Errorf("one that only root may write is copied: %+v, %v", c, err)
	}
}
