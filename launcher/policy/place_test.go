package policy

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

func TestWorkingDirectoryRefused(t *testing.T) {
	w := newWorld(t)
	top := filepath.Dir(w.home)
	link := func(to, name string) string {
		name = filepath.Join(top, name)
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
		return name
	}
	far, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	farLink := filepath.Join(far, "home")
	if err := os.Symlink(w.home, farLink); err != nil {
		t.Fatal(err)
	}
	account := w.mkdir(top, "account")
	w.mkdir(account, "proj")
	w.mkdir(w.home, ".kgate", "run")
	w.mkdir(w.home, ".ssh", "sub")
	tests := []struct {
		name, dir, home, account string
		reason                   string // "" when it is fine
	}{
		{"project", w.project, w.home, w.home, ""},
		{"project through a link", link(w.project, "toproj"), w.home, w.home, ""},
		{"home", w.home, w.home, w.home, "is the home directory"},
		{"home with a slash", w.home + "/", w.home, w.home, "is the home directory"},
		{"home with dots", w.project + "/..", w.home, w.home, "is the home directory"},
		{"home by a link", link(w.home, "tohome"), w.home, w.home, "is the home directory"},
		{"above home", top, w.home, w.home, "contains the home directory"},
		{"root", "/", w.home, w.home, "contains the home directory"},
		{"above home by a link", link(top, "self"), w.home, w.home, "contains the home directory"},
		{"home named by a link", w.home, link(w.home, "homelink"), "", "is the home directory"},
		{"above a home named by a link", top, filepath.Join(top, "homelink"), "", "contains the home directory"},
		{"above the home that a link elsewhere leads to", top, farLink, "", "contains the home directory"},
		{"$HOME elsewhere, in the account's home", account, w.home, account, "is the home directory"},
		{"$HOME elsewhere, in $HOME", w.home, w.home, account, "is the home directory"},
		{"$HOME elsewhere, in a project", account + "/proj", w.home, account, ""},
		{"$HOME absent", w.project, filepath.Join(top, "absent"), w.home, ""},
		{"$HOME unset", w.home, "", w.home, "is the home directory"},
		{"$HOME is /", w.project, "/", w.home, "is in the home directory /"},
		{"the account's home is /", w.project, w.home, "/", ""},
		{"kgate's own", filepath.Join(w.home, ".kgate"), w.home, w.home, "kgate's own directory"},
		{"below kgate's own", filepath.Join(w.home, ".kgate", "run"), w.home, w.home, "kgate's own directory"},
		{"denied", filepath.Join(w.home, ".ssh"), w.home, w.home, "must not be read (default deny.read)"},
		{"below denied", filepath.Join(w.home, ".ssh", "sub"), w.home, w.home, "must not be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load(Options{Dir: tt.dir, Home: tt.home, AccountHome: tt.account})
			if tt.reason == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.reason) {
				t.Fatalf("err = %v, want a refusal that says %q", err, tt.reason)
			}
			if refused.Dir != tt.dir {
				t.Errorf("names %q, not %q", refused.Dir, tt.dir)
			}
		})
	}
}

func TestWorkingDirectoryErrors(t *testing.T) {
	w := newWorld(t)
	file := w.write(filepath.Join(w.project, "file"), "")
	for name, tt := range map[string]struct {
		o    Options
		says string
	}{
		"gone":           {Options{Dir: filepath.Join(w.project, "gone"), Home: w.home}, "change to a directory that exists"},
		"relative":       {Options{Dir: "proj", Home: w.home}, "is not absolute"},
		"empty":          {Options{Home: w.home}, "is not absolute"},
		"file":           {Options{Dir: file, Home: w.home}, "is not a directory"},
		"no home":        {Options{Dir: w.project}, "set HOME"},
		"relative home":  {Options{Dir: w.project, Home: "home"}, "is not an absolute path (set HOME)"},
		"account's too":  {Options{Dir: w.project, Home: w.home, AccountHome: "home"}, "is not an absolute path"},
		"NUL in a home":  {Options{Dir: w.project, Home: w.home + "\x00"}, "is not an absolute path"},
		"NUL in the dir": {Options{Dir: w.project + "\x00", Home: w.home}, "working directory"},
	} {
		_, err := Load(tt.o)
		var refused *RefusedError
		if err == nil || errors.As(err, &refused) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: err = %v, want a plain error that says %q", name, err, tt.says)
		}
	}
}

func TestHomesAreBothKept(t *testing.T) {
	w := newWorld(t)
	other := w.mkdir(filepath.Dir(w.home), "other")
	for _, tt := range []struct {
		home, account string
		want          []string
	}{
		{w.home, w.home, []string{w.home}},
		{w.home + "/", w.home, []string{w.home}},
		{w.home, other, []string{w.home, other}},
		{w.home, "", []string{w.home}},
		{"", other, []string{other}},
		{w.home, "/", []string{w.home}},
	} {
		p, err := Load(Options{Dir: w.project, Home: tt.home, AccountHome: tt.account})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p.Homes, tt.want) || p.Home != tt.want[0] {
			t.Errorf("%q, %q: homes %q", tt.home, tt.account, p.Homes)
		}
	}
}

// The test makes a user and mount namespace and runs itself again in it, where
// home is bound to a second place.
func TestWorkingDirectoryRefusedThroughBind(t *testing.T) {
	if os.Getenv("POLICY_TEST_BOUND") == "" {
		w := newWorld(t)
		alias := w.mkdir(filepath.Dir(w.home), "alias")
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("unshare", "-Urm", "sh", "-c", `mount --bind "$1" "$2" && exec "$3" -test.run='^TestWorkingDirectoryRefusedThroughBind$'`,
			"sh", w.home, alias, self)
		cmd.Env = append(os.Environ(), "POLICY_TEST_BOUND=1", "POLICY_TEST_HOME="+w.home, "POLICY_TEST_ALIAS="+alias)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return
		}
		if probe := exec.Command("unshare", "-Urm", "true").Run(); probe != nil && !strings.Contains(os.Getenv("KGATE_MUST"), "userns") {
			t.Skipf("no user namespace here: %v", probe)
		}
		t.Fatalf("%v\n%s", err, out)
	}
	home, alias := os.Getenv("POLICY_TEST_HOME"), os.Getenv("POLICY_TEST_ALIAS")
	var refused *RefusedError
	if _, err := Load(Options{Dir: alias, Home: home, AccountHome: home}); !errors.As(err, &refused) {
		t.Errorf("bound home accepted: %v", err)
	}
	p, err := Load(Options{Dir: filepath.Join(alias, "proj"), Home: home, AccountHome: home})
	if err != nil {
		t.Fatalf("a project in the bound home: %v", err)
	}
	if p.Project != filepath.Join(alias, "proj") {
		t.Errorf("project = %q", p.Project)
	}
}

func TestProjectIsFound(t *testing.T) {
	w := newWorld(t)
	git := func(dir string) { w.write(filepath.Join(dir, ".git", "HEAD"), "ref: x\n") }
	policy := func(dir, text string) string { return w.write(filepath.Join(dir, ".kgate.yaml"), text) }
	h := w.home
	top := filepath.Dir(h)

	git(h + "/a")
	a := policy(h+"/a", "deny: {read: [x]}\n")
	w.mkdir(h, "a/b/c")
	git(h + "/a/sub")
	sub := policy(h+"/a/sub/deep", "deny: {read: [y]}\n")
	w.write(h+"/wt/.git", "gitdir: elsewhere\n")
	w.mkdir(h, "wt/src")
	w.mkdir(h, "held/.git")          // an empty directory: a placeholder
	w.mkdir(h, "held/.kgate.yaml")   // likewise
	w.mkdir(h, "held/src")           //
	policy(h, "unknown: in home\n")  // home is no project: never read
	policy(top, "unknown: above\n")  //
	w.mkdir(top, "elsewhere", "src") // beside home: above it is protected too
	git(top + "/elsewhere")
	shared := w.mkdir(top, "shared", "mine")
	git(top + "/shared")
	policy(top+"/shared", "unknown: planted\n")
	if err := os.Chmod(top+"/shared", 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		dir, project string
		files        []string
	}{
		{h + "/a", h + "/a", []string{a}},
		{h + "/a/b/c", h + "/a", []string{a}},
		// A repository made inside a project is a project of its own, and cannot
		// shake off what the outer one narrows.
		{h + "/a/sub", h + "/a/sub", []string{a}},
		{h + "/a/sub/deep", h + "/a/sub/deep", []string{sub, a}},
		{h + "/wt/src", h + "/wt", nil},
		{h + "/held/src", h + "/held/src", nil},
		{w.project, w.project, nil},
		{top + "/elsewhere/src", top + "/elsewhere", nil},
		{shared, shared, nil},
	} {
		p, err := Load(Options{Dir: tt.dir, Home: h, AccountHome: h})
		if err != nil {
			t.Errorf("%s: %v", tt.dir, err)
			continue
		}
		if p.Project != tt.project || p.Dir != tt.dir || !reflect.DeepEqual(p.ProjectFiles, tt.files) {
			t.Errorf("%s: project %q, dir %q, files %q", tt.dir, p.Project, p.Dir, p.ProjectFiles)
		}
		first := ""
		if len(tt.files) > 0 {
			first = tt.files[0]
		}
		if p.ProjectFile != first {
			t.Errorf("%s: file %q", tt.dir, p.ProjectFile)
		}
	}
}

func TestForeignDirectoryIsNoProject(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("giving a directory away needs root; pretending to be somebody else instead")
	}
	w := newWorld(t)
	w.write(filepath.Join(w.project, ".git", "HEAD"), "x")
	w.proj("deny: {exec: [npm]}\n")
	src := w.mkdir(w.project, "src")
	old := userID
	defer func() { userID = old }()
	owner := os.Geteuid()
	if owner == 0 {
		owner = 12345
		if err := os.Lchown(w.project, owner, owner); err != nil {
			t.Fatal(err)
		}
	} else {
		userID = func() int { return owner + 1 }
	}
	p, err := Load(Options{Dir: src, Home: w.home, AccountHome: w.home})
	if err != nil {
		t.Fatal(err)
	}
	if p.Project != src || p.ProjectFile != "" {
		t.Errorf("project %q, file %q", p.Project, p.ProjectFile)
	}
	// It does not end the search for a project around it either.
	w.write(filepath.Join(w.project, "src", ".git", "HEAD"), "x")
	if owner == 12345 {
		if err := os.Lchown(src, owner, owner); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(w.project, 0, 0); err != nil {
			t.Fatal(err)
		}
		p, err = Load(Options{Dir: src, Home: w.home, AccountHome: w.home})
		if err != nil || p.Project != w.project {
			t.Errorf("project %q, %v", p.Project, err)
		}
		if err := os.Lchown(w.project, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	// Work in the directory itself is asked for by name, and its file narrows.
	p, err = Load(Options{Dir: w.project, Home: w.home, AccountHome: w.home})
	if err != nil || !hasWord(p.DenyExec, "npm") {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestUserFileMustBeTrusted(t *testing.T) {
	w := newWorld(t)
	file := w.user("version: 1\n")
	w.load()
	if err := os.Chmod(file, 0o646); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(w.options()); err == nil || !strings.Contains(err.Error(), "written by everybody") {
		t.Errorf("world-writable: %v", err)
	}
	if err := os.Chmod(file, 0o664); err != nil {
		t.Fatal(err)
	}
	w.load()
	dir := filepath.Dir(file)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(w.options()); err == nil || !strings.Contains(err.Error(), "written by everybody") {
		t.Errorf("in a world-writable directory: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	owner := uint32(0)
	if info, err := os.Stat(file); err == nil {
		owner = info.Sys().(*syscall.Stat_t).Uid
	}
	if owner == 0 {
		if err := os.Lchown(file, 12345, -1); err != nil {
			t.Fatal(err)
		}
	} else {
		old := userID
		defer func() { userID = old }()
		userID = func() int { return int(owner) + 1 }
	}
	if _, err := Load(w.options()); err == nil || !strings.Contains(err.Error(), "not to you or root") {
		t.Errorf("somebody else's: %v", err)
	}
}
