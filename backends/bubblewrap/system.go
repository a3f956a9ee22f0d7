package bubblewrap

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// systemDirs are shown read-only where the host has them. Nothing else of the
// host is in the box unless the policy names it.
var systemDirs = []struct{ path, why string }{
	{"/usr", "programs and libraries"},
	{"/bin", "programs"},
	{"/sbin", "programs"},
	{"/lib", "libraries"},
	{"/lib32", "libraries"},
	{"/lib64", "libraries"},
	{"/libx32", "libraries"},
	{"/etc", "the system's settings"},
	{"/opt", "programs installed beside the system's"},
	// Only the stores: the daemon's socket lies beside them.
	{"/nix/store", "programs and libraries of Nix"},
	{"/nix/var/nix/profiles", "the profiles of Nix"},
	{"/gnu/store", "programs and libraries of Guix"},
	{"/var/guix/profiles", "the profiles of Guix"},
}

// systemLinks are symlinks outside those directories that programs are found
// through.
var systemLinks = []string{"/run/current-system"}

// secrets are the files below /etc that hold keys or passwords. They are masked
// where this user could read them: root always can.
var secrets = []string{
	"shadow", "shadow-", "gshadow", "gshadow-", "security/opasswd",
	"sudoers", "sudoers.d", "krb5.keytab", "ipsec.secrets", "crypttab",
	"ssl/private", "pki/tls/private", "letsencrypt/archive", "letsencrypt/live", "letsencrypt/accounts",
	"NetworkManager/system-connections", "netplan", "wpa_supplicant", "wireguard", "openvpn",
	"ppp/chap-secrets", "ppp/pap-secrets", "mysql/debian.cnf", "docker/key.json",
	"kubernetes/admin.conf", "kubernetes/pki", "rancher/k3s/k3s.yaml", "samba/private",
}

// procReadOnly are the parts of /proc that are writable to uid 0 even without
// capabilities: a line written to one of them can be code run on the host
// (/proc/sys/kernel/core_pattern). irq and bus bwrap covers itself.
var procReadOnly = []struct {
	name   string
	always bool // writable to others than uid 0 too, somewhere in it
}{
	{"sys", true}, {"pressure", true}, {"sysrq-trigger", false}, {"acpi", false}, {"fs", false}, {"mtrr", false}, {"scsi", false},
	{"dynamic_debug", false},
}

// procHidden are the files of /proc that tell of more than the box: the person's
// keys in the kernel belong to a user and not to a namespace (keyrings(7)), and
// the machine's memory, page by page, is shown to uid 0 even without capabilities.
var procHidden = []struct{ path, why string }{
	{"/proc/keys", "tells of the person's keys in the kernel"}, {"/proc/key-users", "tells of the person's keys in the kernel"},
	{"/proc/kpagecount", "tells of the machine's memory"}, {"/proc/kpageflags", "tells of the machine's memory"},
	{"/proc/kpagecgroup", "tells of the machine's memory"},
}

// system lays out what is not the person's: programs, libraries, settings,
// /proc, /dev and the trees that start empty.
func (w *planner) system() {
	for _, d := range systemDirs {
		info, err := w.h.Lstat(d.path)
		if err != nil {
			continue
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := w.h.Readlink(d.path)
			if err == nil {
				w.links[d.path] = true
				w.add("link:"+d.path, d.why+", where the host has a symlink", built("system"), "--symlink", target, d.path)
			}
			continue
		}
		w.bind("ro:"+d.path, d.path, false, d.why, built("system"))
	}
	w.add("proc", "the box's own processes", built("system"), "--proc", "/proc")
	w.tree("/proc", special)
	for _, p := range procReadOnly {
		path := "/proc/" + p.name
		info, err := w.h.Lstat(path)
		if err != nil || !p.always && !w.h.Writable(path, info) {
			continue
		}
		w.add("ro:"+path, "root in the box could change the host through it", built("system"), "--ro-bind", path, path)
	}
	for _, p := range procHidden {
		if info, err := w.h.Lstat(p.path); err == nil && w.h.Readable(p.path, info) {
			w.add("mask:"+p.path, p.why, built("system"), "--ro-bind", "/dev/null", p.path)
		}
	}
	w.add("dev", "null, zero, full, random, tty and terminals of the box's own", built("system"), "--dev", "/dev")
	w.tree("/dev", special)

	w.fresh("/tmp", "1777", "no files or sockets of the host's /tmp")
	w.fresh("/var/tmp", "1777", "no files of the host's /var/tmp")
	w.fresh("/run", "0755", "no sockets of the host's services")
	// A mount cannot be taken away in the box, so a kgate that is started there
	// knows by it where it is.
	w.fresh(InsidePath, "0555", "tells a kgate inside which box it is in")
	if info, err := w.h.Lstat("/var/run"); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := w.h.Readlink("/var/run"); err == nil {
			w.links["/var/run"] = true
			w.add("link:/var/run", "a symlink that the host has there", built("system"), "--symlink", target, "/var/run")
		}
	} else {
		w.fresh("/var/run", "0755", "no sockets of the host's services")
	}
	for _, path := range systemLinks {
		if _, links, err := resolve(w.h, path); err == nil {
			w.reproduce(links, built("system"))
		}
	}
	if w.staged() {
		w.add("ro:"+stagePath, "the program that hands over the terminal", built("terminal"), "--ro-bind", w.stage.Source, stagePath)
	}
	w.hideSecrets()
}

// hideSecrets masks the keys and passwords below /etc.
func (w *planner) hideSecrets() {
	paths := make([]string, 0, len(secrets)+8)
	for _, name := range secrets {
		paths = append(paths, "/etc/"+name)
	}
	if entries, _, err := w.h.ReadDir("/etc/ssh", 256); err == nil {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "ssh_host_") && !strings.HasSuffix(e.Name(), ".pub") {
				paths = append(paths, "/etc/ssh/"+e.Name())
			}
		}
	}
	for _, path := range paths {
		real, _, err := resolve(w.h, path)
		if err != nil || w.named(path) {
			continue
		}
		info, err := w.h.Lstat(real)
		if err != nil || !w.h.Readable(real, info) {
			continue
		}
		w.hideReal("mask:"+path, real, "holds keys or passwords of the machine", built("secrets of the machine"))
	}
}

// resolver shows the file that /etc/resolv.conf is a symlink to, where that lies
// outside what the box shows: below /run on most systems with systemd-resolved.
// With a host list it is a file of the launch's own.
func (w *planner) resolver() {
	from := built("name resolution")
	real, links, err := resolve(w.h, "/etc/resolv.conf")
	if err != nil {
		return
	}
	own := w.p.Effective().Value == policy.Restricted
	if !own && w.visible(real) {
		return
	}
	w.reproduce(links, from)
	if own {
		w.files = append(w.files, backends.File{Name: "resolv.conf", Mode: 0o644, Content: resolvConf(), Why: "names are asked of the gate"})
		w.add("resolv.conf", "names are asked of the gate", from, "--ro-bind-data", "@resolv.conf", real)
	} else {
		w.add("resolv.conf", "what /etc/resolv.conf is a symlink to", from, "--ro-bind", real, real)
	}
	w.tree(real, readOnly)
}

// named says whether the policy allows exactly this path, or something below it.
func (w *planner) named(path string) bool {
	for _, g := range w.p.Paths {
		if within(g.Name, path) {
			return true
		}
	}
	return false
}

// hidePrograms masks the file of every denied program that the box shows. One
// that is many programs in one file cannot be masked for one of its names.
func (w *planner) hidePrograms() {
	var many []string
	for _, prog := range w.p.Programs {
		if prog.Multicall {
			if w.visible(prog.Path) {
				many = append(many, fmt.Sprintf("%s (%s)", prog.Name, prog.Path))
			}
			continue
		}
		w.hideReal("mask-exec:"+prog.Path, prog.Path, "deny.exec "+prog.Name+": cannot be executed", prog.From)
	}
	if len(many) > 0 {
		w.finding("programs", backends.Degraded,
			"part of a file that is many programs, so refused by kgate's check alone and not by the kernel: "+strings.Join(many, ", "),
			"remove that program, or deny the whole file by its path")
		return
	}
	w.finding("programs", backends.Ready, fmt.Sprintf("%d files of denied programs cannot be executed", len(w.p.Programs)), "")
}
