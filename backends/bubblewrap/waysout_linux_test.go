package bubblewrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
)

// gitWorks is what must go on working, whatever is protected.
const gitWorks = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@test GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@test
echo $$ >>file && git add . && git commit -qm one && git status --porcelain && git log --oneline && git checkout -qb b$$ && git stash list && git gc -q && git fsck`

func needGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "git") {
			t.Fatal(err)
		}
		t.Skip("no git")
	}
}

func TestWaysOut(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q")
	s.write(".claude/settings.json", "{}\n")
	s.write(".envrc", "true\n")
	s.write(".kgate.yaml", "version: 1\n")
	s.works(gitWorks)
	s.git("status")
	before := snapshot(t, s.project)
	for _, script := range []string{
		"echo evil >.git/hooks/pre-commit", "git config core.fsmonitor evil", "echo evil >>.git/config", "mv .git/config .git/c",
		"rm .git/config", "mv .git/hooks .git/h", "mv .git .g", "ln -sf /tmp .git/config", "echo /evil >.git/commondir", "mkdir .git/commondir",
		"ln -s /evil .git/commondir", "chmod 777 .git/hooks && echo evil >.git/hooks/x",
		"echo evil >.envrc", "rm .envrc", "mv .envrc e", "ln -sf /tmp/x .envrc", "echo evil >.claude/settings.json", "mv .claude c", "rm -r .claude",
		"touch .claude/x", "mkdir .claude/hooks", "echo network: open >.kgate.yaml", "rm .kgate.yaml", "mv .kgate.yaml k",
		"echo evil >.mcp.json", "echo x >m && mv -T m .mcp.json", "mkdir .vscode", "echo evil >.vscode/tasks.json", "chmod 755 .vscode && echo evil >.vscode/tasks.json && test -e /proc/1/root/x",
		"rmdir .vscode", "mv .vscode v", "ln -s /tmp .idea", "ln -sT /tmp .idea", "echo evil >opencode.json", "echo evil >.git/config.worktree && git config extensions.worktreeConfig true",
	} {
		s.fails(script)
		os.Remove(s.path("m"))
		os.Remove(s.path(".git/config.worktree"))
		if after := snapshot(t, s.project); after != before {
			t.Fatalf("%s changed:\n%s\nbefore:\n%s", script, after, before)
		}
	}
	s.git("status")
}

// A directory of the host that was made to hold a name is not written to, even
// where the command makes its own view of it writable.
func TestHeldNamesStayEmptyOnTheHost(t *testing.T) {
	s := newSite(t)
	s.git("init", "-q")
	l, err := s.start(s.plan("sh", "-c", "chmod 755 .vscode; echo evil >.vscode/tasks.json; touch ready; sleep 60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command is done", func() bool { _, err := os.Lstat(s.path("ready")); return err == nil })
	if entries, err := os.ReadDir(s.path(".vscode")); err != nil || len(entries) != 0 {
		t.Errorf("%v %v", entries, err)
	}
	l.proc.Kill()
	l.wait()
}

// A repository that a command makes is one whose configuration it writes: a
// project without one does not get one.
func TestNoRepositoryIsMade(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.fails("git init -q .")
	s.allow(".git", true)
	s.works("git init -q . && git config user.name x")
	if _, err := os.Lstat(s.path(".git/config")); err != nil {
		t.Error(err)
	}
	s.works("git config core.editor true")
}

func TestProtectionIsLiftedByName(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q")
	s.mkdir(".vscode")
	s.write(".claude/settings.json", "{}\n")
	s.allow(".vscode", false) // for reading, it lifts nothing
	s.fails("touch .vscode/x || touch .git/hooks/x || touch .claude/x")
	s.policy.Paths = nil
	s.allow(".vscode", true)
	s.works("echo '{}' >.vscode/tasks.json")
	s.fails("touch .git/hooks/x || touch .claude/x")
	s.allow(".git/hooks", true)
	s.allow(".claude/settings.json", true)
	s.works("touch .git/hooks/x && echo 1 >.claude/settings.json")
	s.fails("touch .claude/x || git config a.b c")
}

// Files that a repository's configuration names are run by git as well.
func TestConfiguredFiles(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q")
	s.write(".hooks/pre-commit", "true\n")
	s.write("shared.inc", "[user]\n")
	s.git("config", "core.hooksPath", ".hooks")
	s.git("config", "include.path", "../shared.inc")
	s.fails("echo evil >.hooks/pre-commit || touch .hooks/pre-push || mv .hooks h || echo evil >shared.inc || rm shared.inc")
	os.RemoveAll(s.path(".hooks"))
	s.fails("mkdir .hooks")
}

func TestNestedRepositories(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q")
	s.git("init", "-q", "sub/deep")
	s.git("init", "-q", "--bare", "bare.git")
	os.RemoveAll(s.path("bare.git/hooks"))
	s.mkdir(".git/modules/a")
	s.git("init", "-q", "--bare", ".git/modules/a/b")
	// mv would copy what it cannot rename.
	rename := func(name string) string { return "perl -e 'rename \"" + name + "\", \"x\" or exit 1'" }
	s.works("touch plain && " + rename("plain") + " && rm x")
	for _, script := range []string{
		"touch sub/deep/.git/hooks/x", "git -C sub/deep config a.b c", rename("sub/deep/.git"), rename("sub/deep"), rename("sub"),
		"git -C bare.git config a.b c", "mkdir bare.git/hooks && touch bare.git/hooks/x", "touch bare.git/hooks/x", rename("bare.git"),
		"touch .git/modules/a/b/hooks/x", rename(".git/modules/a"), rename(".git/modules"), "echo x >.git/modules/a/b/config",
		"echo /x >.git/modules/a/b/commondir",
	} {
		s.fails(script)
	}
	s.works("cd sub/deep && " + gitWorks)
}

// claude-code#33615: in a linked worktree the repository lies elsewhere. It works
// with that path allowed, and is protected the same; without it, the plan says
// which path to allow.
func TestLinkedWorktree(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q", s.path("~/main"))
	s.git("-C", s.path("~/main"), "commit", "-q", "--allow-empty", "-m", "x")
	s.git("-C", s.path("~/main"), "worktree", "add", "-q", s.path("~/wt"))
	s.policy.Project, s.policy.Dir, s.project = s.path("~/wt"), s.path("~/wt"), s.path("~/wt")
	s.fails("git status")
	if !hasFinding(s.plan("true"), "repository", backends.Degraded, "--allow-path "+s.path("~/main/.git")+":rw") {
		t.Errorf("nothing is said of the repository: %v", s.plan("true").Findings)
	}
	s.allow("~/main/.git", true)
	s.works(gitWorks)
	for _, script := range []string{
		"touch ~/main/.git/hooks/x", "git config a.b c", "rm .git", "echo gitdir: /x >.git", "mv .git g",
		"echo /x >~/main/.git/commondir", "echo /x >~/main/.git/worktrees/wt/commondir", "mv ~/main/.git/worktrees ~/main/.git/w",
	} {
		s.fails(script)
	}
	if hasFinding(s.plan("true"), "repository", backends.Degraded, "") {
		t.Error("the repository is in the box, and the plan says it is not")
	}
}

// What is writable beside the project is protected too.
func TestOtherWritableTrees(t *testing.T) {
	needGit(t)
	s := newSite(t)
	s.git("init", "-q", s.path("~/other"))
	s.write("~/.bashrc", "true\n")
	s.write("~/.config/app/x", "")
	s.allow("~/other", true)
	s.fails("touch ~/other/.git/hooks/x || echo x >~/other/.envrc || mkdir ~/other/.vscode || mkdir ~/other/.claude")
	s.policy.Paths = nil
	s.allow("~/.config", true)
	s.works("touch ~/.config/app/y")
	s.fails("mkdir ~/.config/autostart || mkdir -p ~/.config/systemd/user || echo x >~/.config/fish")
	s.policy.Paths = nil
	s.allow("~", true)
	s.works("touch ~/file")
	s.fails("echo x >>~/.bashrc || rm ~/.bashrc || mv ~/.bashrc ~/b || echo x >~/.bash_profile || echo x >~/.zshenv || mkdir ~/bin || mkdir -p ~/.local/bin")
	for _, name := range []string{"~/.bash_profile", "~/.zshenv", "~/bin", "~/.local"} {
		if _, err := os.Lstat(s.path(name)); err == nil {
			t.Errorf("%s is left behind", name)
		}
	}
}

// A link cannot be held in place by a mount: what it leads to is protected, and
// the plan says what is not.
func TestWayOutThatIsALink(t *testing.T) {
	s := newSite(t)
	s.write("shared/settings.json", "{}\n")
	s.symlink("shared", ".claude")
	s.fails("echo x >.claude/settings.json || echo x >shared/settings.json || mv shared x")
	if !hasFinding(s.plan("true"), "ways out", backends.Degraded, s.path(".claude")) {
		t.Error("nothing is said of the link")
	}
}

// Nothing that a project holds makes kgate look at more than it should.
func TestLargeProject(t *testing.T) {
	s := newSite(t)
	for i := range 400 {
		s.mkdir(filepath.Join("d", string(rune('a'+i%26)), string(rune('a'+i/26%26)), "x"))
	}
	if !hasFinding(s.plan("true"), "ways out", backends.Degraded, "too large") {
		t.Error("a search that was cut short is not told")
	}
	s.works("true")
}

// A directory that cannot be written to is no hole: the command may make it
// writable.
func TestUnwritableDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root writes anywhere")
	}
	s := newSite(t)
	os.Chmod(s.project, 0o500)
	r := s.run("sh", "-c", "chmod 700 . && mkdir .vscode && echo evil >.vscode/tasks.json")
	os.Chmod(s.project, 0o700)
	if _, err := os.Lstat(s.path(".vscode/tasks.json")); err == nil {
		t.Errorf("a way out was made: %v", r)
	}
	if r.err == nil || !strings.Contains(r.err.Error(), "chmod u+w") {
		t.Error(r)
	}
}
