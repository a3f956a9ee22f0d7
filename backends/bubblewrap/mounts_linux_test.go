package bubblewrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
)

// table reads mounts from "DEVICE ROOT POINT KIND" lines.
func table(t *testing.T, text string) []mountLine {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 4 {
			b.WriteString("1 2 " + strings.Join(f[:3], " ") + " rw,relatime shared:1 - " + f[3] + " none rw\n")
		}
	}
	file := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := readMounts(file)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAstray gives mount tables of boxes to the check, with what the plan asked for.
func TestAstray(t *testing.T) {
	host := table(t, `8:1 / / ext4
		0:5 / /dev devtmpfs
		8:2 /@home /home btrfs
		8:3 / /home/p/proj/data ext4
		8:4 / /home/p/my\040work xfs`)
	all := []bound{
		{"/usr", "/usr", false},
		{"/home/p/proj", "/home/p/proj", true},
		{"/home/p/proj/lib", "/home/p/proj/lib", true},
		{"/home/p/proj/lib/.git/config", "/home/p/proj/lib/.git/config", false},
		{"/dev/null", "/home/p/proj/.env", false},
		{"/home/p/docs", "/home/p/docs", false},
		{"/home/p/docs/out", "/home/p/docs/out", true},
		{"/home/p/my work", "/home/p/my work", true},
	}
	for _, tc := range []struct{ name, mount, want string }{
		{"the project", "8:2 /@home/p/proj /home/p/proj btrfs", ""},
		{"a directory in it", "8:2 /@home/p/proj/lib /home/p/proj/lib btrfs", ""},
		{"one that has been moved in it", "8:2 /@home/p/proj/evil /home/p/proj/lib btrfs", ""},
		{"one that has been removed", "8:2 /@home/p/proj/lib//deleted /home/p/proj/lib btrfs", ""},
		{"a file system mounted in it", "8:3 / /home/p/proj/data ext4", ""},
		{"a mask", "0:5 /null /home/p/proj/.env devtmpfs", ""},
		{"what cannot be made", "0:77 / /home/p/proj/.vscode tmpfs", ""},
		{"the system", "8:1 /usr /usr ext4", ""},
		{"a name with a blank", "8:4 / /home/p/my\\040work xfs", ""},
		{"bwrap's own", "0:78 / /tmp tmpfs", ""},
		{"another directory", "8:2 /@home/p/.config /home/p/proj/lib btrfs", "/@home/p/.config"},
		{"a neighbour with the same start", "8:2 /@home/p/project2 /home/p/proj/lib btrfs", "/@home/p/project2"},
		{"another directory, moved since", "8:2 /@home/p/.config /home/p/proj/elsewhere btrfs", "/@home/p/.config"},
		{"a file of the home in place of one of the project's", "8:2 /@home/p/.git/config /home/p/proj/lib/.git/config btrfs", "/@home/p/.git/config"},
		{"the same path of another file system", "8:1 /@home/p/proj/lib /home/p/proj/lib ext4", "/@home/p/proj/lib"},
		{"the project itself elsewhere", "8:2 /@home/p /home/p/proj btrfs", "/@home/p"},
		{"a tmpfs of the host", "0:5 / /home/p/proj/lib tmpfs", "/"},
		{"what may be read, where it could be written", "8:2 /@home/p/docs /home/p/proj/lib btrfs", "/@home/p/docs"},
		{"the same below what may be read", "8:2 /@home/p/docs/in /home/p/docs/out btrfs", "/@home/p/docs/in"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if m := astray(host, table(t, tc.mount), all); m != nil {
				got = m.root
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOuterEnv shows that nothing which a program loads reaches bwrap, and all of
// it the command.
func TestOuterEnv(t *testing.T) {
	env := []string{"PATH=/bin", "LD_PRELOAD=/p/x.so", "LD_LIBRARY_PATH=/p/lib:/q", "LDFLAGS=-g", "LOCPATH=/p", "EMPTY=", "LD_AUDIT="}
	if got, want := outerEnv(env), []string{"PATH=/bin", "LDFLAGS=-g", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("bwrap gets %q, want %q", got, want)
	}
	w := &planner{layout: &layout{}, c: backends.Command{Env: append(env, "TZDIR=@seccomp")}}
	w.innerEnv()
	var got [][]string
	for _, part := range w.parts {
		got = append(got, part.Words)
	}
	want := [][]string{{"--setenv", "LD_PRELOAD", "/p/x.so"}, {"--setenv", "LD_LIBRARY_PATH", "/p/lib:/q"}, {"--setenv", "LOCPATH", "/p"},
		{"--setenv", "LD_AUDIT", ""}, {"--setenv", "TZDIR", "@seccomp"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the command gets %q, want %q", got, want)
	}
	p := &box{held: &holder{}}
	words, _, err := p.argv(&backends.Plan{Parts: w.parts}, &descriptors{number: map[string]int{"seccomp": 7}})
	if err != nil || !strings.HasSuffix(string(words), "--setenv\x00TZDIR\x00@seccomp\x00") {
		t.Errorf("bwrap is told %q, %v", words, err)
	}
	script := Paste(&backends.Plan{Parts: w.parts, Command: w.c, Extra: &own{Bwrap: "bwrap"}}, w.c.Env)
	for _, word := range []string{"-u LD_PRELOAD ", "--setenv LD_PRELOAD /p/x.so", "--setenv TZDIR @seccomp"} {
		if !strings.Contains(script, word) {
			t.Errorf("by hand it is not %q:\n%s", word, script)
		}
	}
	if got := outerEnv(nil); got == nil || len(got) != 0 {
		t.Errorf("no environment is %q: a nil one would be kgate's own", got)
	}
}

// TestLook makes boxes in which something more is mounted than was planned: nothing
// runs in one that shows what it should not.
func TestLook(t *testing.T) {
	s := newSite(t)
	keep, lib := filepath.Join(s.home, "keep"), filepath.Join(s.project, "lib")
	for _, dir := range []string{keep, lib, filepath.Join(s.project, "other")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name, shows string
		runs        bool
	}{
		{"a directory of the project", filepath.Join(s.project, "other"), true},
		{"a directory of the home", keep, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan := s.plan("touch", "ran")
			o := plan.Extra.(*own)
			real := o.Bwrap
			o.Bwrap = filepath.Join(t.TempDir(), "bwrap")
			script := "#!/bin/sh\na=$1 b=$2\nshift 2\nexec " + real + " \"$a\" \"$b\" --bind " + tc.shows + " " + lib + " \"$@\"\n"
			if err := os.WriteFile(o.Bwrap, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			l, err := s.start(plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := l.wait()
			ran := os.Remove(filepath.Join(s.project, "ran")) == nil
			if ran != tc.runs || (r.err == nil) != tc.runs || !tc.runs && !strings.Contains(r.err.Error(), "changed while the box was made") {
				t.Errorf("ran %v: %v", ran, r)
			}
		})
	}
}

// TestLookFindsWhatIsMissing puts a link to an allowed directory in the place of
// one of the project while bwrap mounts what protects it. All of it lands on the
// former, where it may lie; put back, the latter would be free.
func TestLookFindsWhatIsMissing(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q", "lib")
	s.git("init", "-q", s.path("~/shared"))
	s.allow("~/shared", true)
	s.symlink("../../shared", "evil")
	for _, swaps := range []bool{false, true} {
		plan := s.plan("sh", "-c", "echo evil >lib/.git/hooks/x; touch ran")
		o := plan.Extra.(*own)
		real := o.Bwrap
		o.Bwrap = filepath.Join(t.TempDir(), "bwrap")
		swap := "cd " + s.project + " && mv lib was && mv evil lib && "
		if !swaps {
			swap = ""
		}
		if err := os.WriteFile(o.Bwrap, []byte("#!/bin/sh\n"+swap+"exec "+real+" \"$@\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := s.start(plan, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := l.wait()
		ran := os.Remove(s.path("ran")) == nil
		if ran == swaps || swaps && (r.err == nil || !strings.Contains(r.err.Error(), "what should cover it does not")) {
			t.Errorf("exchanged %v: ran %v: %v", swaps, ran, r)
		}
	}
}

// What a launch is given to mount on is there before bwrap comes. Where a link has
// come into its way since, bwrap makes what it misses, outside of the box too:
// its own root has the host's at /oldroot meanwhile. It is empty, whatever happens.
func TestBwrapMakesNothingButEmptyNames(t *testing.T) {
	s := newSite(t)
	keep := s.mkdir("~/keep")
	s.symlink("/oldroot"+keep, "lib")
	bwrap := s.plan("true").Extra.(*own).Bwrap
	args := []string{"--ro-bind", "/", "/", "--bind", s.project, s.project, "--tmpfs", s.path("lib/.git/hooks"), "--ro-bind", "/dev/null", s.path("lib/.envrc"),
		"sh", "-c", "echo evil >lib/.git/hooks/x; echo evil >lib/.envrc; exit 0"}
	if out, err := exec.Command(bwrap, args...).CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, out) // it may well refuse
	}
	for line := range strings.Lines(snapshot(t, keep)) {
		switch name, mode, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case name == "/.envrc" && strings.HasSuffix(mode, ` ""`), name == "/.git", name == "/.git/hooks":
			t.Logf("left: %s", line)
		case strings.HasPrefix(name, "/"):
			t.Errorf("left: %s", line)
		}
	}
}

// A box that is never finished is not waited for for ever.
func TestLookIsBounded(t *testing.T) {
	defer func(d time.Duration) { lookWithin = d }(lookWithin)
	lookWithin = 200 * time.Millisecond
	s := newSite(t)
	plan := s.plan("touch", "ran")
	plan.Parts = slices.DeleteFunc(plan.Parts, func(p backends.Part) bool { return p.Name == "fresh:"+InsidePath })
	l, err := s.start(plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := l.wait()
	if r.err == nil || !strings.Contains(r.err.Error(), "not finished") || os.Remove(filepath.Join(s.project, "ran")) == nil {
		t.Error(r)
	}
}
