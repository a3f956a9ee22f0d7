package bubblewrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
)

// exchange puts a link to a directory of the home where lib is in the project,
// and lib where the link was.
func (s *site) exchange() {
	if err := unix.Renameat2(unix.AT_FDCWD, s.path("lib"), unix.AT_FDCWD, s.path("evil"), unix.RENAME_EXCHANGE); err != nil {
		s.t.Error(err)
	}
}

// TestHeldWhereItWasPlanned exchanges a directory in which names are held for a
// link to another while they are made, and while they are removed.
func TestHeldWhereItWasPlanned(t *testing.T) {
	defer func() { openat2, mkdirat = unix.Openat2, unix.Mkdirat }()
	lacking := func(int, string, *unix.OpenHow) (int, error) { return -1, unix.ENOSYS }
	for _, tc := range []struct {
		name    string
		openat2 func(int, string, *unix.OpenHow) (int, error)
	}{{"openat2", unix.Openat2}, {"without openat2", lacking}} {
		t.Run(tc.name, func(t *testing.T) {
			openat2, mkdirat = tc.openat2, unix.Mkdirat
			s := newSite(t)
			s.git("init", "-q", "lib")
			s.mkdir("~/keep/.git")
			s.write("~/keep/.git/config", "")
			s.symlink(s.path("~/keep"), "evil")
			if err := os.RemoveAll(s.path("lib/.git/hooks")); err != nil {
				t.Fatal(err)
			}
			keep := snapshot(t, s.path("~/keep"))
			holds := func(when string) *own {
				o := s.plan("true").Extra.(*own)
				for _, h := range o.Holds {
					if h.Path == s.path("lib/.git/hooks") {
						return o
					}
				}
				t.Fatalf("%s: nothing is held in lib: %v", when, o.Holds)
				return nil
			}
			unmoved := func(when string) {
				t.Helper()
				if now := snapshot(t, s.path("~/keep")); now != keep {
					t.Errorf("%s: the home's directory has changed:\n%s", when, now)
				}
			}

			// By the path alone it would be made there.
			s.exchange()
			if err := os.Mkdir(s.path("lib/.git/hooks"), 0o755); err != nil {
				t.Fatal(err)
			}
			if now := snapshot(t, s.path("~/keep")); now == keep {
				t.Fatal("the link does not mislead a plain mkdir")
			}
			if err := os.Remove(s.path("~/keep/.git/hooks")); err != nil {
				t.Fatal(err)
			}
			s.exchange()

			o := holds("before it is opened")
			s.exchange()
			h, err := hold(o, nil)
			h.release()
			if err == nil || !strings.Contains(err.Error(), "a symlink has come") {
				t.Errorf("exchanged before the directory is opened: %v", err)
			}
			unmoved("before it is opened")
			s.exchange()

			o = holds("after it is opened")
			done := false
			mkdirat = func(fd int, name string, mode uint32) error {
				if !done {
					done = true
					s.exchange()
				}
				return unix.Mkdirat(fd, name, mode)
			}
			h, err = hold(o, nil)
			mkdirat = unix.Mkdirat
			if err != nil {
				t.Fatal(err)
			}
			unmoved("after it is opened")
			if _, err := os.Lstat(s.path("evil/.git/hooks")); err != nil {
				t.Errorf("it is not in the directory that was planned: %v", err)
			}

			// Removed through the link, it would be the home's.
			s.mkdir("~/keep/.git/hooks")
			keep = snapshot(t, s.path("~/keep"))
			if err := h.release(); err != nil {
				t.Error(err)
			}
			unmoved("while it is removed")

			// And the same by the janitor.
			s.exchange()
			for _, name := range []string{"lib/.git/hooks", "lib/.git/commondir"} {
				if err := os.Remove(s.path(name)); err != nil {
					t.Error(err) // left, because its directory was not to be found
				}
			}
			h, err = hold(holds("janitor"), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.exchange()
			for _, l := range h.ledgers {
				l.file.Close()
			}
			h.leash.Close()
			h.box.Close()
			wait(h.janitor)
			unmoved("by the janitor")
			s.exchange()
			sweepOthers(filepath.Join(s.home, ".kgate/run"))
		})
	}
}

// Where a directory is a symlink, what is in it is protected where it is, and the
// plan says that the link is not.
func TestWaysOutBehindALink(t *testing.T) {
	for _, tc := range []struct{ name, target string }{
		{"absolute", "~/dots/config"}, {"relative", "dots/config"}, {"out of the box", "/usr/share"}, {"to nothing", "~/absent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(t)
			s.mkdir("~/dots/config")
			target := tc.target
			if target[0] == '~' {
				target = s.path(target)
			}
			s.symlink(target, "~/.config")
			s.allow("~", true)
			s.works("touch ~/file && rm ~/file")
			s.fails("mkdir ~/.config/autostart")
			if strings.HasSuffix(tc.target, "dots/config") {
				s.fails("mkdir ~/dots/config/autostart")
			}
			if !hasFinding(s.plan("true"), "ways out", backends.Degraded, s.path("~/.config")) {
				t.Error("nothing is said of the link")
			}
		})
	}
}
