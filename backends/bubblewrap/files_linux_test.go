package bubblewrap

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func TestProjectIsWritableAndHomeIsNot(t *testing.T) {
	s := newSite(t)
	s.write("~/.bash_history", "secret\n")
	s.write("~/src/other/file", "secret\n")
	before := snapshot(t, s.home)
	if out := s.works("pwd; ls -A ~; ls -A ~/src; echo x >file && mkdir -p d && mv file d/"); out != s.project+"\nsrc\nproject\n" {
		t.Errorf("seen in the box: %q", out)
	}
	if _, err := os.Lstat(s.path("d/file")); err != nil {
		t.Error(err)
	}
	os.RemoveAll(s.path("d"))
	s.works("echo x >~/.bash_history && echo y >~/new && cat ~/.bash_history")
	s.fails("cat " + s.home + "/src/other/file")
	if after := snapshot(t, s.home); after != before {
		t.Errorf("the real home changed:\n%s", after)
	}
}

func TestSystemIsReadOnly(t *testing.T) {
	s := newSite(t)
	s.works("test -r /etc/passwd && test -x /usr/bin/env && test -c /dev/null && test -d /proc/self")
	s.fails("touch /usr/x || touch /etc/x || touch /opt/x || touch /bin/x")
	s.fails("cat /etc/shadow || cat /etc/gshadow || cat /etc/shadow-")
	s.fails("ls /etc/ssl/private/ | grep .")
	s.works("touch /tmp/a /var/tmp/b /run/c && test ! -e /run/dbus")
	for _, path := range []string{"/tmp/a", "/var/tmp/b", "/run/c"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made on the host", path)
		}
	}
	if out := s.works("ls /"); strings.Contains(out, "srv") || strings.Contains(out, "boot") || strings.Contains(out, "sys") {
		t.Errorf("at the root: %s", out)
	}
}

// containers/bubblewrap#142 and the rest of what root without capabilities
// could still do to the machine. Run by root, these are about uid 0.
func TestPrivileges(t *testing.T) {
	s := newSite(t)
	out := s.works("grep -E '^(Cap|NoNewPrivs)' /proc/self/status; ls -d /proc/[0-9]* | wc -l; grep -c : /proc/net/dev")
	if strings.Count(out, "0000000000000000") != 5 || !strings.Contains(out, "NoNewPrivs:\t1\n") || !strings.HasSuffix(out, "\n1\n") {
		t.Errorf("in the box: %s", out)
	}
	for _, script := range []string{
		"umount ~", "umount /etc/shadow", "mount -t tmpfs none /mnt", "mount -o remount,rw,bind /usr", "mount --bind /usr /tmp",
		"mknod sda b 8 0", "mknod /tmp/sda b 8 0", "chroot . /bin/true",
		": >/proc/sys/kernel/core_pattern", ": >/proc/sysrq-trigger", ": >/proc/sys/kernel/hostname", "hostname other",
		"kill -0 -1", "nsenter -t 1 -m true",
	} {
		s.fails(script)
	}
	// A directory's entries say what a file is below what is bound over it, so each is looked at.
	writable := s.works(`find /proc -maxdepth 5 \( -path '/proc/[0-9]*' -o -path /proc/self -o -path /proc/thread-self \) -prune -o -type f -writable -exec test -f {} \; -print 2>/dev/null; true`)
	if writable != "" {
		t.Errorf("writable in /proc: %s", writable)
	}
}

func TestAllowedPaths(t *testing.T) {
	s := newSite(t)
	s.write("~/docs/note", "a note\n")
	s.write("~/data/deep/er/file", "x\n")
	s.write("~/real/target", "target\n")
	s.write("~/with space/note", "space\n")
	s.symlink(s.path("~/real"), "~/link")
	s.symlink("real/target", "~/.config-file")
	s.write("~/bytes\xff/f", "bytes\n")
	s.allow("~/docs", false)
	s.allow("~/data", false)
	s.allow("~/data/deep/er", true)
	s.allow("~/link", false)
	s.allow("~/.config-file", false)
	s.allow("~/with space", false)
	s.allow("~/bytes\xff", false)
	s.allow("~/absent", true)
	s.works("cat ~/docs/note ~/link/target ~/real/target ~/.config-file '" + s.home + "/with space/note' ~/bytes*/f")
	s.fails("touch ~/docs/x")
	s.fails("touch ~/data/deep/x")
	s.works("touch ~/data/deep/er/made")
	if _, err := os.Lstat(s.path("~/data/deep/er/made")); err != nil {
		t.Error(err)
	}
	if out := s.works("readlink ~/link ~/.config-file"); out != s.home+"/real\nreal/target\n" {
		t.Errorf("links: %s", out)
	}
	if _, err := os.Lstat(s.path("~/absent")); err == nil {
		t.Error("an allowed path that is absent was made")
	}
}

// A link that a command in a box can have made must not decide what the next
// box shows.
func TestAllowedThroughALinkInTheProject(t *testing.T) {
	s := newSite(t)
	s.write("~/private/key", "secret\n")
	s.symlink(s.path("~/private"), "data")
	s.mkdir("~/shared")
	s.symlink(s.path("~/private"), "~/shared/link")
	s.allow("data", false)
	s.allow("~/shared", true)
	s.allow("~/shared/link", false)
	s.fails("cat data/key")
	s.fails("cat ~/shared/link/key")
	if !hasFinding(s.plan("true"), "allow.paths", backends.Degraded, "~") && !hasFinding(s.plan("true"), "allow.paths", backends.Degraded, "data") {
		t.Error("nothing is said of it")
	}
}

func hasFinding(plan *backends.Plan, row string, status backends.Status, word string) bool {
	for _, f := range plan.Findings {
		if f.Row == row && f.Status == status && strings.Contains(f.Reason+f.Mend, word) {
			return true
		}
	}
	return false
}

func TestDenied(t *testing.T) {
	s := newSite(t)
	s.write("~/.ssh/id", "secret\n")
	s.write(".env", "secret\n")
	s.write("secrets/key", "secret\n")
	s.write("sub/dir/key", "secret\n")
	s.write("file", "plain\n")
	s.write("~/shared/env", "secret\n")
	s.symlink(s.path("~/shared/env"), ".env.link")
	s.symlink(".env", "alias")
	s.allow("~", false)
	for _, name := range []string{"~/.ssh", ".env", "secrets", "sub/dir/key", ".env.link", "absent", "no/such/dir"} {
		s.deny(name)
	}
	before := snapshot(t, s.project)
	for _, script := range []string{
		"cat ~/.ssh/id", "cat .env", "cat secrets/key", "ls secrets", "cat sub/dir/key", "cat .env.link", "cat ~/shared/env",
		"cat alias", "cp .env copy", "ln .env hard", "ln sub/dir/key hard", "mv .env moved", "mv secrets moved", "mv sub moved", "mv sub/dir moved",
		"rm .env", "rm -r secrets", "chmod 644 .env && cat .env", "chmod 755 secrets && cat secrets/key",
		"cat /proc/self/root" + s.project + "/.env", "cat /proc/self/cwd/.env", "echo x >.env", "cat <.env",
	} {
		if r := s.fails(script); strings.Contains(r.out, "secret") {
			t.Errorf("%s shows what is denied: %v", script, r)
		}
	}
	s.works("cat file && cat ~/src/project/file && mv file file2 && mv file2 file")
	os.Remove(s.path("moved")) // mv makes it before it fails
	if after := snapshot(t, s.project); after != before {
		t.Errorf("changed:\n%s\nbefore:\n%s", after, before)
	}
	if _, err := os.Lstat(s.path("absent")); err == nil {
		t.Error("a denied path that is absent was made")
	}
}

// Deny beats allow, whichever names the other's inside.
func TestDenyBeatsAllow(t *testing.T) {
	s := newSite(t)
	s.write("~/.aws/config", "secret\n")
	s.symlink(s.path("~/.aws"), "~/aws-link")
	s.deny("~/.aws")
	s.allow("~/.aws", false)
	s.allow("~/.aws/config", true)
	s.allow("~/aws-link", false)
	s.fails("cat ~/.aws/config || cat ~/aws-link/config")
	s.policy.DenyRead = append(s.policy.DenyRead, policy.Path{Name: filepath.Dir(s.project)})
	if len(s.plan("true").Blocked()) == 0 {
		t.Error("a denial that covers the project does not block the plan")
	}
}

// kgate's own directory is hidden whatever is allowed: opencompany#775.
func TestOwnDirectoryIsHidden(t *testing.T) {
	for _, name := range []string{"~", "~/.kgate", "~/.kgate/audit.jsonl", "~/.."} {
		s := newSite(t)
		s.write("~/.kgate/audit.jsonl", "record\n")
		s.write("~/.kgate/config.yaml", "version: 1\n")
		s.allow(name, true)
		s.fails("cat ~/.kgate/audit.jsonl || echo x >>" + s.home + "/.kgate/audit.jsonl")
		s.sh("rm -rf ~/.kgate; mv ~/.kgate ~/k; mkdir -p ~/.kgate && echo 'network: open' >~/.kgate/config.yaml")
		for file, want := range map[string]string{"audit.jsonl": "record\n", "config.yaml": "version: 1\n"} {
			if data, err := os.ReadFile(s.path("~/.kgate/" + file)); string(data) != want {
				t.Errorf("with %s allowed: %s: %q %v", name, file, data, err)
			}
		}
	}
	s := newSite(t)
	os.RemoveAll(s.path("~/.kgate"))
	s.mkdir("~/elsewhere")
	s.write("~/elsewhere/audit.jsonl", "record\n")
	s.symlink("elsewhere", "~/.kgate")
	s.allow("~", false)
	s.fails("cat ~/.kgate/audit.jsonl || cat ~/elsewhere/audit.jsonl")
	s.policy.Paths[0].Write = true
	if len(s.plan("true").Blocked()) == 0 {
		t.Error("a link that the command can replace does not block the plan")
	}
}

func TestDeniedPrograms(t *testing.T) {
	s := newSite(t)
	real, err := filepath.EvalSymlinks("/usr/bin/env")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(real)
	if err != nil {
		t.Fatal(err)
	}
	s.works("env true") // control
	s.policy.Programs = []policy.Program{{Name: "env", Path: real, Info: info}}
	for _, script := range []string{"env true", "/usr/bin/env true", "/bin/env true", "/proc/self/root/usr/bin/env true",
		"cp /usr/bin/env e && ./e true", "cat /usr/bin/env >e", "ln /usr/bin/env e", "sh -c 'exec env true'"} {
		s.fails(script)
	}
	s.policy.Programs = []policy.Program{{Name: "env", Path: real, Info: info, Multicall: true}}
	s.works("env true")
	if !hasFinding(s.plan("true"), "programs", backends.Degraded, real) {
		t.Error("nothing is said of a program that cannot be masked")
	}
}

// greywall#32, nono#781: a read-only mount does not keep anybody from
// connecting.
func TestSockets(t *testing.T) {
	s := newSite(t)
	s.mkdir("~/allowed/deep")
	var paths []string
	for _, name := range []string{"~/allowed/s", "~/allowed/deep/s", "s.sock", "~/hidden.sock"} {
		l, err := net.Listen("unix", s.path(name))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("answered\n"))
				c.Close()
			}
		}()
		paths = append(paths, s.path(name))
	}
	s.allow("~/allowed", false)
	client := `import socket,sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
print(s.recv(100))`
	for _, path := range paths {
		if out, err := exec.Command("python3", "-c", client, path).CombinedOutput(); err != nil || !strings.Contains(string(out), "answered") {
			t.Fatalf("control: %s does not answer outside: %v %s", path, err, out)
		}
		if r := s.run("python3", "-c", client, path); r.status == 0 || strings.Contains(r.out, "answered") {
			t.Errorf("%s answers in the box: %v", path, r)
		}
	}
	// One that is allowed by name is meant.
	s.allow("~/hidden.sock", false)
	if r := s.run("python3", "-c", client, s.path("~/hidden.sock")); r.status != 0 {
		t.Errorf("a socket that is allowed by name does not answer: %v", r)
	}
	// The command's own work.
	s.works(`python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("own.sock")' && rm own.sock`)
}

// landrun#43
func TestNoServiceManager(t *testing.T) {
	s := newSite(t)
	if _, err := exec.LookPath("systemd-run"); err != nil {
		s.fails("test -S /run/systemd/private || test -S /run/dbus/system_bus_socket || test -e /run/user")
		return
	}
	s.fails("systemd-run --user touch " + s.path("made"))
	if _, err := os.Lstat(s.path("made")); err == nil {
		t.Error("the service manager answered")
	}
}

// A thousand denied files in a directory of denied files are one mask.
func TestManyDeniedFiles(t *testing.T) {
	s := newSite(t)
	for i := range 10000 {
		name := "many/" + string(rune('a'+i%26)) + strings.Repeat("x", i/26%50) + string(rune('a'+i/1300))
		s.write(name, "secret\n")
		s.deny(name)
	}
	r := s.run("sh", "-c", "cat many/*; ls many")
	if r.status == 0 || r.err != nil || strings.Contains(r.out, "secret") {
		t.Error(r)
	}
	// Where they cannot be put together, nothing is started.
	s.write("many/plain", "x\n")
	if n := len(s.plan("true").Argv()); n < maxWords {
		t.Skipf("%d words", n)
	}
	if r := s.run("true"); r.err == nil {
		t.Error("a box was made that bwrap cannot make")
	}
}

func TestTooManyWords(t *testing.T) {
	s := newSite(t)
	plan := s.plan(append([]string{"true"}, make([]string, maxWords)...)...)
	if len(plan.Blocked()) == 0 {
		t.Error("not blocked")
	}
}

// A file of the project that is odd does not hang or break the plan.
func TestOddFiles(t *testing.T) {
	s := newSite(t)
	s.mkdir(".git")
	s.write(".git/HEAD", "ref: refs/heads/main\n")
	if err := syscall.Mkfifo(s.path(".git/config"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(s.path(".envrc"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.symlink("loop", "loop")
	s.symlink("loop", ".vscode")
	s.deny("loop")
	s.deny("loop/x")
	s.works("true")
}
