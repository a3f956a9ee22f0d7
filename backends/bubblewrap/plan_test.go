package bubblewrap

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// fakeHost is a machine made of names: a value that starts with "-> " is a
// symlink, "dir" a directory, "sock" a socket ("sock 5": with that inode), "setuid"
// a program, anything else a file's content. All of it is on device 1.
type fakeHost struct {
	files      map[string]string
	path       []string
	sockets    []Bound
	namesOnly  bool // of the sockets
	noSockets  bool // nor those
	noDevices  bool
	unreadable bool
	names      map[string]int // of files with more than one, by the last element
	mounts     []mountLine
}

type fakeInfo struct {
	name  string
	mode  fs.FileMode
	size  int64
	inode uint32
}

func (i fakeInfo) Name() string               { return i.name }
func (i fakeInfo) Size() int64                { return i.size }
func (i fakeInfo) Mode() fs.FileMode          { return i.mode }
func (i fakeInfo) ModTime() time.Time         { return time.Time{} }
func (i fakeInfo) IsDir() bool                { return i.mode.IsDir() }
func (i fakeInfo) Sys() any                   { return nil }
func (i fakeInfo) Type() fs.FileMode          { return i.mode.Type() }
func (i fakeInfo) Info() (fs.FileInfo, error) { return i, nil }

func (h *fakeHost) Lstat(p string) (os.FileInfo, error) {
	v, ok := h.files[p]
	if !ok {
		for name := range h.files {
			if strings.HasPrefix(name, p+"/") {
				v, ok = "dir", true
			}
		}
	}
	switch {
	case p == "/":
		v = "dir"
	case !ok:
		return nil, &fs.PathError{Op: "lstat", Path: p, Err: fs.ErrNotExist}
	}
	i := fakeInfo{path.Base(p), 0o755, int64(len(v)), 0}
	fmt.Sscanf(v, "sock %d", &i.inode)
	switch {
	case v == "dir":
		i.mode |= fs.ModeDir
	case v == "sock", i.inode != 0:
		i.mode |= fs.ModeSocket
	case v == "setuid":
		i.mode |= fs.ModeSetuid
	case strings.HasPrefix(v, "-> "):
		i.mode |= fs.ModeSymlink
	}
	return i, nil
}

func (h *fakeHost) Readlink(p string) (string, error) { return h.files[p][3:], nil }

func (h *fakeHost) ReadDir(p string, most int) ([]os.DirEntry, bool, error) {
	names := map[string]bool{}
	for name := range h.files {
		if rest, ok := strings.CutPrefix(name, p+"/"); ok {
			first, _, _ := strings.Cut(rest, "/")
			names[first] = true
		}
	}
	var out []os.DirEntry
	for name := range names {
		info, err := h.Lstat(p + "/" + name)
		if err != nil {
			return nil, false, err
		}
		out = append(out, info.(fakeInfo))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name() < out[j].Name() })
	if len(out) > most {
		return out[:most], true, nil
	}
	return out, false, nil
}

func (h *fakeHost) ReadFile(p string) ([]byte, error) {
	v, ok := h.files[p]
	if !ok || v == "dir" {
		return nil, fs.ErrNotExist
	}
	return []byte(v), nil
}
func (h *fakeHost) Readable(string, os.FileInfo) bool { return !h.unreadable }
func (h *fakeHost) Writable(string, os.FileInfo) bool { return true }
func (h *fakeHost) Path() []string                    { return h.path }

func (h *fakeHost) Sockets() ([]Bound, bool, error) {
	if h.noSockets {
		return nil, false, fs.ErrPermission
	}
	return h.sockets, !h.namesOnly, nil
}

func (h *fakeHost) Inode(info os.FileInfo) (Inode, bool) {
	return Inode{1, info.(fakeInfo).inode}, true
}

func (h *fakeHost) Names(info os.FileInfo) int   { return max(1, h.names[info.Name()]) }
func (h *fakeHost) Mounts() ([]mountLine, error) { return h.mounts, nil }

func (h *fakeHost) Devices() (map[uint64]bool, error) {
	if h.noDevices {
		return nil, fs.ErrPermission
	}
	return map[uint64]bool{1: true, 2: true}, nil
}

func machine(more map[string]string) *fakeHost {
	h := &fakeHost{path: []string{"/usr/bin"}, files: map[string]string{
		"/usr/bin/bwrap": "x", "/usr/lib/libc.so": "x", "/bin": "-> usr/bin", "/lib": "-> usr/lib",
		"/etc/passwd": "x", "/etc/shadow": "x", "/etc/ssl/private/key": "x", "/etc/ssh/ssh_host_ed25519_key": "x", "/etc/ssh/ssh_host_ed25519_key.pub": "x",
		"/etc/resolv.conf": "nameserver 192.0.2.1\n", "/proc/sys/kernel/core_pattern": "x", "/proc/sysrq-trigger": "x", "/proc/keys": "x",
		"/var/run": "-> /run", "/run": "dir",
		"/home/u/src/p/.git/HEAD": "x", "/home/u/src/p/.git/config": "[core]\n", "/home/u/src/p/.git/hooks/pre-commit": "x",
	}}
	for name, v := range more {
		if v == "" {
			delete(h.files, name)
		} else {
			h.files[name] = v
		}
	}
	return h
}

func person() *policy.Policy {
	return &policy.Policy{Home: "/home/u", Homes: []string{"/home/u"}, Project: "/home/u/src/p", Dir: "/home/u/src/p", Network: policy.Mode{Value: policy.Off}}
}

func planOf(t *testing.T, h Host, p *policy.Policy) *backends.Plan {
	t.Helper()
	plan, err := New(h).Plan(p, backends.Command{Argv: []string{"true", "--", "@x"}, Dir: p.Dir, Env: []string{"TMPDIR=/tmp/mine"}})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// line is the argument list as one string with a space at both ends.
func line(plan *backends.Plan) string { return " " + strings.Join(plan.Argv(), " ") + " " }

func order(t *testing.T, plan *backends.Plan, words ...string) {
	t.Helper()
	at := -1
	for _, w := range words {
		i := strings.Index(line(plan), " "+w+" ")
		if i < 0 {
			t.Errorf("%q is not in %s", w, line(plan))
		} else if i < at {
			t.Errorf("%q comes too early in %s", w, line(plan))
		}
		at = i
	}
}

func never(t *testing.T, plan *backends.Plan, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(line(plan), w) {
			t.Errorf("%q is in %s", w, line(plan))
		}
	}
}

func TestPlanInOrder(t *testing.T) {
	plan := planOf(t, machine(nil), person())
	order(t, plan, "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try", "--unshare-net",
		"--die-with-parent", "--cap-drop ALL", "--ro-bind /usr /usr", "--symlink usr/bin /bin", "--ro-bind /etc /etc",
		"--proc /proc", "--ro-bind /proc/sys /proc/sys", "--ro-bind /proc/sysrq-trigger /proc/sysrq-trigger", "--ro-bind /dev/null /proc/keys", "--dev /dev",
		"--perms 1777 --tmpfs /tmp", "--tmpfs /run", "--symlink /run /var/run", "--perms 0700 --tmpfs /home/u",
		"--bind /home/u/src/p /home/u/src/p", "--perms 0700 --dir /tmp/mine", "--ro-bind /dev/null /etc/shadow", "--bind /home/u/src/p/.git /home/u/src/p/.git",
		"--ro-bind /home/u/src/p/.git/config /home/u/src/p/.git/config", "--perms 0555 --tmpfs /home/u/src/p/.vscode",
		"--chdir /home/u/src/p", "-- true -- @x")
	order(t, plan, "--ro-bind /dev/null /etc/ssh/ssh_host_ed25519_key", "--perms 0000 --tmpfs /etc/ssl/private")
	never(t, plan, "ssh_host_ed25519_key.pub", "--share-net", " / ")
	seen := map[string]bool{}
	for _, p := range plan.Parts {
		if seen[p.Name] || p.Name == "" || p.Why == "" {
			t.Errorf("part %q: not unique, or without a reason", p.Name)
		}
		seen[p.Name] = true
	}
	again := planOf(t, machine(nil), person())
	if !slices.Equal(plan.Argv(), again.Argv()) {
		t.Error("the same policy on the same machine gives another plan")
	}
}

// An empty host list is off: bounty-challenge#8721.
func TestPlanOfNetworks(t *testing.T) {
	p := person()
	p.Network.Value = policy.Open
	plan := planOf(t, machine(nil), p)
	never(t, plan, "--unshare-net")
	order(t, plan, "--block-fd @block")
	if !hasRow(plan, "network", backends.Degraded) {
		t.Error("open is not told")
	}
	p.Network.Value = policy.Restricted
	plan = planOf(t, machine(nil), p)
	order(t, plan, "--unshare-net")
	never(t, plan, "resolv")
	if plan.Network.Value != policy.Off {
		t.Errorf("restricted without hosts is %v", plan.Network)
	}
	p.Hosts = []policy.Host{{Name: "host.example"}}
	plan = planOf(t, machine(nil), p)
	order(t, plan, "--unshare-net", "--ro-bind-data @resolv.conf /etc/resolv.conf", "--block-fd @block")
	i := slices.IndexFunc(plan.Files, func(f backends.File) bool { return f.Name == "resolv.conf" })
	if i < 0 || !strings.Contains(string(plan.Files[i].Content), "\nnameserver 10.0.2.3\n") {
		t.Errorf("no resolv.conf that names the gate: %d", i)
	}
	plan = planOf(t, machine(map[string]string{"/usr/bin/bwrap": "setuid"}), p)
	if !hasRow(plan, "bubblewrap", backends.Blocked) {
		t.Error("a setuid bwrap and a host list are not blocked")
	}
}

func hasRow(plan *backends.Plan, row string, status backends.Status) bool {
	return slices.ContainsFunc(plan.Findings, func(f backends.Finding) bool { return f.Row == row && f.Status == status })
}

// sandbox-runtime#185
func TestPlanWithLinkedResolvConf(t *testing.T) {
	h := machine(map[string]string{
		"/etc/resolv.conf": "-> ../run/systemd/resolve/stub-resolv.conf", "/run/systemd/resolve/stub-resolv.conf": "nameserver 127.0.0.53\n",
	})
	plan := planOf(t, h, person())
	order(t, plan, "--tmpfs /run", "--ro-bind /run/systemd/resolve/stub-resolv.conf /run/systemd/resolve/stub-resolv.conf")
	never(t, plan, " /etc/resolv.conf")
	p := person()
	p.Network.Value, p.Hosts = policy.Restricted, []policy.Host{{Name: "host.example"}}
	order(t, planOf(t, h, p), "--tmpfs /run", "--ro-bind-data @resolv.conf /run/systemd/resolve/stub-resolv.conf")
	h.files["/etc/resolv.conf"] = "-> /nowhere"
	never(t, planOf(t, h, p), "nowhere")
}

func TestPlanOnOtherSystems(t *testing.T) {
	plan := planOf(t, machine(map[string]string{
		"/bin": "", "/bin/sh": "x", "/lib": "", "/lib/libc.so": "x", "/var/run": "", "/var/run/x.sock": "sock",
		"/nix/store/x": "x", "/nix/var/nix/daemon-socket/socket": "sock", "/nix/var/nix/profiles/default": "-> /nix/store/x",
		"/run/current-system": "-> /nix/store/x", "/etc/shadow": "",
	}), person())
	order(t, plan, "--ro-bind /bin /bin", "--ro-bind /lib /lib", "--ro-bind /nix/store /nix/store", "--ro-bind /nix/var/nix/profiles /nix/var/nix/profiles",
		"--tmpfs /run", "--tmpfs /var/run", "--symlink /nix/store/x /run/current-system")
	never(t, plan, "daemon-socket", "/etc/shadow", "--symlink usr/bin")
}

func TestPlanWithLinkedHome(t *testing.T) {
	h := machine(map[string]string{"/home": "-> var/home", "/var/home/u/src/p/file": "x", "/var/home/u/.gitconfig": "x"})
	for name := range h.files {
		if strings.HasPrefix(name, "/home/") {
			delete(h.files, name)
		}
	}
	p := person()
	p.Paths = []policy.Path{{Name: "/home/u/.gitconfig"}}
	plan := planOf(t, h, p)
	order(t, plan, "--symlink var/home /home", "--tmpfs /var/home/u", "--ro-bind /var/home/u/.gitconfig /var/home/u/.gitconfig", "--bind /var/home/u/src/p /var/home/u/src/p", "--chdir /var/home/u/src/p")
	never(t, plan, " /home/u")
}

func TestPlanOfAllowedPaths(t *testing.T) {
	h := machine(map[string]string{
		"/data/a/b/c/f": "x", "/home/u/link": "-> /data/a", "/home/u/.ssh/id": "x", "/home/u/docs/f": "x", "/data/s": "sock", "/data/a/b/s": "sock",
	})
	for _, name := range []string{"/data/s", "/data/a/b/s", "/run/x", "/data/gone"} {
		h.sockets = append(h.sockets, Bound{Name: name})
	}
	p := person()
	for _, name := range []string{"/data/a/b/c", "/data", "/home/u/link", "/home/u/.ssh/id", "/absent", "/home/u/src/p/sub", "/usr/share"} {
		p.Paths = append(p.Paths, policy.Path{Name: name, Write: name == "/data/a/b/c"})
	}
	p.DenyRead = []policy.Path{{Name: "/home/u/.ssh"}}
	plan := planOf(t, h, p)
	order(t, plan, "--ro-bind /data /data", "--bind /data/a/b/c /data/a/b/c")
	order(t, plan, "--symlink /data/a /home/u/link", "--ro-bind /dev/null /data/a/b/s", "--ro-bind /dev/null /data/s")
	never(t, plan, ".ssh", "absent", "gone", " /usr/share", "--bind /data/a /data/a")
	for _, name := range []string{"/", "/proc", "/sys/fs", "/dev/shm"} {
		h.files[name] = "dir"
		p.Paths = []policy.Path{{Name: name}}
		if plan := planOf(t, h, p); !hasRow(plan, "allow.paths", backends.Blocked) {
			t.Errorf("%s can be allowed", name)
		}
	}
}

// A bwrap that a command in a box can have put there is run by nobody.
func TestPlanFindsBwrap(t *testing.T) {
	for _, c := range []struct {
		path    []string
		blocked bool
		bwrap   string
	}{
		{[]string{"/usr/bin"}, false, "/usr/bin/bwrap"},
		{[]string{"", ".", "bin", "/usr/bin"}, false, "/usr/bin/bwrap"},
		{[]string{"/home/u/src/p/empty", "/usr/bin"}, false, "/usr/bin/bwrap"},
		{[]string{"/home/u/src/p/bin", "/usr/bin"}, true, ""},
		{[]string{"/linked", "/usr/bin"}, true, ""},
		{[]string{"/rw/bin", "/usr/bin"}, true, ""},
		{[]string{"/etc"}, true, ""},
		{nil, true, ""},
	} {
		h := machine(map[string]string{"/home/u/src/p/bin/bwrap": "x", "/linked": "-> /home/u/src/p/bin", "/rw/bin/bwrap": "x"})
		h.path = c.path
		p := person()
		p.Paths = []policy.Path{{Name: "/rw", Write: true}}
		plan := planOf(t, h, p)
		if hasRow(plan, "bubblewrap", backends.Blocked) != c.blocked {
			t.Errorf("PATH %q: %v", c.path, plan.Findings)
		}
		if got := plan.Extra.(*own).Bwrap; !c.blocked && got != c.bwrap {
			t.Errorf("PATH %q: %s", c.path, got)
		}
	}
}

func TestPlanMasksOnlyWhatCanBeRead(t *testing.T) {
	h := machine(nil)
	h.unreadable = true
	never(t, planOf(t, h, person()), "/etc/shadow", "/etc/ssl/private")
	p := person()
	p.Paths = []policy.Path{{Name: "/etc/ssl/private/key"}}
	plan := planOf(t, machine(nil), p)
	order(t, plan, "--ro-bind /dev/null /etc/shadow")
	never(t, plan, "--tmpfs /etc/ssl/private")
}

func TestBefore(t *testing.T) {
	names := []string{"/a/b", "/a.b", "/a", "/a/b/c", "/a b", "/", "/b"}
	slices.SortFunc(names, func(a, b string) int {
		if before(a, b) {
			return -1
		}
		return 1
	})
	if got := strings.Join(names, " "); got != "/ /a /a/b /a/b/c /a b /a.b /b" {
		t.Error(got)
	}
}

func TestResolve(t *testing.T) {
	h := machine(map[string]string{"/l/a": "-> b", "/l/b": "-> ../l/c/..//c", "/l/c/d": "x", "/l/loop": "-> loop", "/l/abs": "-> /l/a/"})
	for name, want := range map[string]string{"/l/a": "/l/c", "/l/abs/d": "/l/c/d", "/bin/bwrap": "/usr/bin/bwrap", "/l/loop": "", "/l/x": "", "/../l/./c": "/l/c"} {
		if got, _, err := resolve(h, name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

func TestConfigNames(t *testing.T) {
	h := machine(map[string]string{"/c": "[core]\n\thooksPath = .husky/_\n[extensions]\n\tworktreeConfig\n[include]\npath=../x.inc\n[IncludeIf \"gitdir:/a]\"]\npath = \"y.inc\"\n[core] fsmonitor = ./watch\n[remote \"o\"]\npath = no\n"})
	w := &planner{layout: newLayout(h)}
	c := w.config("/c")
	var got []string
	for _, p := range c.paths {
		got = append(got, p.path)
	}
	if !c.worktree || strings.Join(got, " ") != ".husky/_ ../x.inc ./watch" && strings.Join(got, " ") != ".husky/_ ../x.inc y.inc ./watch" {
		t.Errorf("%+v", c)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"": "''", "a": "a", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "~": "'~'", "a=b": "'a=b'", "\n": "'\n'", "*": "'*'", "/a/b-c_d.e:f": "/a/b-c_d.e:f"} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
