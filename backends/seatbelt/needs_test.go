package seatbelt

import (
	"strings"

	"github.com/kgate-dev/kgate/verify/sbpl"
)

// files are rows for operations on one path, separated by blanks.
func files(what string, want sbpl.Verdict, ops, name string, typ sbpl.Type) []row {
	var rows []row
	for _, op := range strings.Fields(ops) {
		rows = append(rows, row{what: what, q: sbpl.Query{Op: op, Path: name, Type: typ}, want: want})
	}
	return rows
}

// denied are rows for operations that are denied to a path and to what lies
// below it, also when no regular expression can be relied on.
func denied(what, ops, name string) []row {
	var rows []row
	for _, at := range []string{name, name + "/x"} {
		for _, r := range files(what, sbpl.Deny, ops, at, sbpl.Regular) {
			rows = append(rows, r)
			r.q.NoRegex = true
			rows = append(rows, r)
		}
		rows = append(rows, files(what, sbpl.Deny, ops, strings.ToUpper(at), sbpl.Regular)...)
	}
	return rows
}

// allowed are rows for operations that are allowed to a path, be it a file or a
// directory, and to what lies below it.
func allowed(what, ops, name string) []row {
	return append(files(what, sbpl.Allow, ops, name, sbpl.Regular), files(what, sbpl.Allow, ops, name+"/x", sbpl.Regular)...)
}

// stays are rows for a directory that cannot be renamed or removed, under its
// own name or another case of it.
func stays(what, name string) []row {
	rows := files(what, sbpl.Deny, "file-write-unlink", name, sbpl.Directory)
	rows = append(rows, rows[0])
	rows[1].q.NoRegex = true
	return append(rows, files(what, sbpl.Deny, "file-write-unlink", strings.ToUpper(name), sbpl.Directory)...)
}

func named(what string, want sbpl.Verdict, op, name string) row {
	return row{what: what, q: sbpl.Query{Op: op, Name: name}, want: want}
}

const (
	reading   = "file-read-data file-read-metadata file-read-xattr file-test-existence"
	running   = reading + " file-map-executable process-exec process-exec-interpreter"
	writing   = "file-write-create file-write-data file-write-unlink file-write-mode file-write-xattr file-write-times file-link"
	looking   = "file-read-metadata file-test-existence"
	everyFile = running + " " + writing
)

// needs are what real programs ask of the system, and what none of them gets,
// whatever the policy is. It is written from what programs do, not from the
// profile.
func needs() []row {
	var rows []row
	add := func(more ...row) { rows = append(rows, more...) }
	reg, dir, dev := sbpl.Regular, sbpl.Directory, sbpl.Device

	// dyld and libSystem, before any program's own first line.
	add(files("dyld", sbpl.Allow, reading, "/", dir)...)
	add(files("dyld", sbpl.Allow, running, "/usr/lib/dyld", reg)...)
	add(files("dyld", sbpl.Allow, running, "/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation", reg)...)
	add(files("dyld", sbpl.Allow, running, "/System/Volumes/Preboot/Cryptexes/OS/System/Library/dyld/dyld_shared_cache_arm64e", reg)...)
	add(files("dyld", sbpl.Allow, reading, "/System/Cryptexes/OS", sbpl.Symlink)...)
	add(files("dyld", sbpl.Allow, running, "/Library/Apple/usr/lib/libRosetta.dylib", reg)...)
	add(files("dyld", sbpl.Allow, "file-read-data file-write-data file-ioctl file-test-existence", "/dev/dtracehelper", dev)...)
	add(files("libSystem", sbpl.Allow, reading, "/dev/autofs_nowait", dev)...)
	add(files("libSystem", sbpl.Allow, reading, "/private/var/db/timezone/tz/2026a/zoneinfo/Europe/Berlin", reg)...)
	add(files("libSystem", sbpl.Allow, looking, "/private/var/db", dir)...)
	add(row{what: "dyld", q: sbpl.Query{Op: "system-mac-syscall", Name: "vnguard"}, want: sbpl.Allow})
	add(row{what: "libSystem", q: sbpl.Query{Op: "system-mac-syscall", Name: "Sandbox", Words: map[string]string{"mac-syscall-number": "67"}}, want: sbpl.Allow})
	add(row{what: "libSystem", q: sbpl.Query{Op: "system-fsctl", Words: map[string]string{"fsctl-command": "FSIOC_CAS_BSDFLAGS"}}, want: sbpl.Allow})
	add(named("libSystem", sbpl.Allow, "mach-lookup", "com.apple.system.notification_center"))
	add(named("libSystem", sbpl.Allow, "ipc-posix-shm-read-data", "apple.shm.notification_center"))
	for _, name := range []string{"kern.osvariant_status", "kern.secure_kernel"} {
		add(named("libSystem", sbpl.Allow, "sysctl-read", name))
	}

	// Shells and make.
	add(row{what: "sh", q: sbpl.Query{Op: "process-fork"}, want: sbpl.Allow})
	add(row{what: "sh: kill %1", q: sbpl.Query{Op: "signal", Target: "same-sandbox"}, want: sbpl.Allow})
	add(row{what: "sh: wait", q: sbpl.Query{Op: "process-info-pidinfo", Target: "same-sandbox"}, want: sbpl.Allow})
	add(files("sh", sbpl.Allow, running, "/bin/sh", reg)...)
	add(files("sh", sbpl.Allow, reading, "/private/var/select/sh", sbpl.Symlink)...)
	add(files("zsh", sbpl.Allow, reading, "/private/etc/zshrc", reg)...)
	add(files("zsh", sbpl.Allow, reading, "/usr/share/zsh/5.9/functions/compinit", reg)...)
	add(files("sh: > /dev/null", sbpl.Allow, reading+" file-write-data file-ioctl", "/dev/null", dev)...)
	add(files("dd if=/dev/zero", sbpl.Allow, reading+" file-write-data file-ioctl", "/dev/zero", dev)...)
	add(files("sh: diff <(a) <(b)", sbpl.Allow, reading+" file-write-data", "/dev/fd/63", sbpl.UnknownType)...)
	add(files("ls /dev", sbpl.Allow, reading, "/dev", dir)...)
	for _, name := range []string{"stdin", "stdout", "stderr"} {
		add(files("sh", sbpl.Allow, reading+" file-write-data", "/dev/"+name, sbpl.Symlink)...)
	}
	add(files("realpath /tmp", sbpl.Allow, looking, "/tmp", sbpl.Symlink)...)
	add(files("realpath /tmp", sbpl.Allow, looking, "/private", dir)...)
	add(files("test -d /tmp", sbpl.Allow, looking, "/private/tmp", dir)...)
	add(files("realpath /var", sbpl.Allow, looking, "/var", sbpl.Symlink)...)
	add(files("realpath /var", sbpl.Allow, looking, "/private/var", dir)...)
	add(files("realpath /etc", sbpl.Allow, looking, "/etc", sbpl.Symlink)...)
	for _, d := range []string{"/usr", "/System", "/Library"} {
		add(files("realpath", sbpl.Allow, looking, d, dir)...)
	}
	for _, name := range []string{"kern.hostname", "kern.osrelease", "kern.ostype", "kern.version", "kern.argmax", "kern.ngroups"} {
		add(named("sh, uname, xargs, id", sbpl.Allow, "sysctl-read", name))
	}
	add(named("id", sbpl.Allow, "mach-lookup", "com.apple.system.opendirectoryd.membership"))
	add(named("make -l", sbpl.Allow, "sysctl-read", "vm.loadavg"))
	add(named("make -j", sbpl.Allow, "sysctl-read", "hw.ncpu"))
	add(named("clang", sbpl.Allow, "sysctl-read", "sysctl.proc_cputype"))

	// git, through the shim of /usr/bin.
	add(files("git", sbpl.Allow, running, "/usr/bin/git", reg)...)
	add(files("git", sbpl.Allow, running, "/Library/Developer/CommandLineTools/usr/bin/git", reg)...)
	add(files("git", sbpl.Allow, reading, "/private/var/db/xcode_select_link", sbpl.Symlink)...)
	add(files("git", sbpl.Allow, reading, "/private/var/folders/ab/cd/T/xcrun_db", reg)...)
	add(files("git", sbpl.Allow, looking, "/private/var/folders/ab/cd/T", dir)...)
	add(files("git", sbpl.Allow, looking, "/private/var/folders/ab/cd", dir)...)
	add(files("git", sbpl.Allow, looking, "/private/var/folders/ab", dir)...)
	add(files("git", sbpl.Allow, looking, "/private/var/folders", dir)...)
	add(named("git", sbpl.Allow, "mach-lookup", "com.apple.bsd.dirhelper"))
	add(named("git", sbpl.Allow, "mach-lookup", "com.apple.system.opendirectoryd.libinfo"))
	add(files("git", sbpl.Allow, running, "/usr/libexec/path_helper", reg)...)

	// go, node, python.
	add(files("go", sbpl.Allow, running, "/usr/local/go/bin/go", reg)...)
	add(files("node", sbpl.Allow, running, "/opt/homebrew/Cellar/node/24.1.0/bin/node", reg)...)
	add(files("python", sbpl.Allow, running, "/Library/Frameworks/Python.framework/Versions/3.14/bin/python3", reg)...)
	add(files("port", sbpl.Allow, running, "/opt/local/bin/port", reg)...)
	add(files("nix", sbpl.Allow, running, "/nix/store/x-hello/bin/hello", reg)...)
	add(files("go", sbpl.Allow, reading, "/dev/random", dev)...)
	add(files("node", sbpl.Allow, reading, "/dev/urandom", dev)...)
	add(files("mount", sbpl.Allow, running, "/sbin/mount", reg)...)
	add(files("sysctl", sbpl.Allow, running, "/usr/sbin/sysctl", reg)...)
	for _, name := range []string{"machdep.cpu.brand_string", "kern.boottime", "kern.maxfilesperproc", "kern.osproductversion", "kern.osversion", "kern.usrstack64"} {
		add(named("go, node, python", sbpl.Allow, "sysctl-read", name))
	}
	add(row{what: "python multiprocessing", q: sbpl.Query{Op: "ipc-posix-sem", Name: "/mp-1"}, want: sbpl.Allow})
	for _, op := range []string{"network-bind", "network-inbound", "network-outbound"} {
		add(row{what: "python multiprocessing", q: sbpl.Query{Op: op, Path: testTemp + "/tmp/pymp-1/listener", Type: sbpl.Socket}, want: sbpl.Allow})
	}
	add(files("mktemp", sbpl.Allow, everyFile, testTemp+"/tmp/x", reg)...)
	add(files("mktemp", sbpl.Allow, looking, testTemp, dir)...)
	add(files("ls $TMPDIR", sbpl.Allow, reading, testTemp+"/tmp", dir)...)

	// Terminals.
	add(row{what: "script", q: sbpl.Query{Op: "pseudo-tty"}, want: sbpl.Allow})
	add(files("less", sbpl.Allow, reading+" file-write-data file-ioctl", "/dev/tty", dev)...)
	add(files("script", sbpl.Allow, reading+" file-write-data file-ioctl", "/dev/ptmx", dev)...)
	add(files("stty", sbpl.Allow, "file-ioctl", "/dev/ttys004", dev)...)
	for _, op := range strings.Fields(reading + " file-write-data") {
		add(row{what: "script", q: sbpl.Query{Op: op, Path: "/dev/ttys009", Type: dev, Extensions: []string{"com.apple.sandbox.pty"}}, want: sbpl.Allow})
	}

	// What no program gets.
	add(files("another terminal of the person's", sbpl.Deny, "file-read-data file-write-data", "/dev/ttys001", dev)...)
	add(files("a disk", sbpl.Deny, "file-read-data file-write-data", "/dev/disk0", dev)...)
	add(files("programs are not written", sbpl.Deny, writing, "/usr/local/bin/kgate", reg)...)
	add(files("programs are not written", sbpl.Deny, writing, "/bin/sh", reg)...)
	add(files("settings are not written", sbpl.Deny, writing, "/private/etc/hosts", reg)...)
	add(files("the cache of xcrun is not written", sbpl.Deny, writing, "/private/var/folders/ab/cd/T/xcrun_db", reg)...)
	add(files("other programs' temporary files", sbpl.Deny, everyFile, "/private/var/folders/ab/cd/T/other/secret", reg)...)
	add(files("other programs' temporary files", sbpl.Deny, reading+" "+writing, "/private/tmp/other", reg)...)
	add(files("the profile", sbpl.Deny, everyFile, testTemp+"/profile.sb", reg)...)
	for _, d := range []string{"/usr/local/var", "/opt/homebrew/var", "/opt/local/var"} {
		add(denied("a database", running, d)...)
		add(files("a database", sbpl.Deny, running, strings.ToUpper(d)+"/postgresql", reg)...)
	}
	add(files("the person's files", sbpl.Deny, everyFile, testHome+"/x", reg)...)
	add(files("the person's files", sbpl.Deny, everyFile, "/Users/other/x", reg)...)
	add(files("another disk", sbpl.Deny, everyFile, "/Volumes/backup/x", reg)...)
	add(row{what: "another process", q: sbpl.Query{Op: "signal", Target: "others"}, want: sbpl.Deny})
	add(row{what: "another process", q: sbpl.Query{Op: "process-info-pidinfo", Target: "others"}, want: sbpl.Deny})
	add(named("arguments and variables of other processes", sbpl.Deny, "sysctl-read", "kern.procargs2"))
	add(named("settings of the kernel", sbpl.Deny, "sysctl-write", "kern.hostname"))
	for _, name := range []string{
		"com.apple.coreservices.launchservicesd",              // open -a: a program outside the box
		"com.apple.SecurityServer", "com.apple.securityd.xpc", // the keychain
		"com.apple.pasteboard.1", "com.apple.tccd", "com.apple.cfprefsd.agent", "com.apple.windowserver.active",
	} {
		add(named("a service that acts outside the box", sbpl.Deny, "mach-lookup", name))
	}
	for _, op := range []string{"lsopen", "appleevent-send", "job-creation", "mach-register", "iokit-open-user-client", "system-kext-load",
		"system-reboot", "file-mount", "file-mknod", "nvram-set", "user-preference-write", "mach-priv-task-port", "ipc-sysv-shm"} {
		add(row{what: "a way out of the box", q: sbpl.Query{Op: op}, want: sbpl.Deny})
	}
	for _, s := range []string{"/private/var/run/docker.sock", testHome + "/.docker/run/docker.sock", "/private/tmp/com.apple.launchd.x/Listeners",
		testHome + "/.ssh/agent.sock", testHome + "/.gnupg/S.gpg-agent", testProj + "/a.sock", "/private/var/run/syslog", "/opt/homebrew/var/mysql.sock"} {
		add(row{what: "a unix socket of the machine", q: sbpl.Query{Op: "network-outbound", Path: s, Type: sbpl.Socket}, want: sbpl.Deny})
	}
	return rows
}

// addresses are what a program may try on the network.
func addresses(want sbpl.Verdict) []row {
	var rows []row
	for _, proto := range []string{"tcp", "udp"} {
		for _, n := range []sbpl.Net{{Side: "remote", Proto: proto, Port: 53}, {Side: "remote", Proto: proto, Port: 443}, {Side: "remote", Proto: proto, Port: 8080, Own: true}} {
			rows = append(rows, row{what: "the network", q: sbpl.Query{Op: "network-outbound", Net: &n}, want: want})
		}
		for _, op := range []string{"network-bind", "network-inbound"} {
			rows = append(rows, row{what: "a server", q: sbpl.Query{Op: op, Net: &sbpl.Net{Side: "local", Proto: proto, Port: 8080, Own: true}}, want: want})
		}
	}
	rows = append(rows, row{what: "DNS", q: sbpl.Query{Op: "network-outbound", Path: "/private/var/run/mDNSResponder", Type: sbpl.Socket}, want: want})
	for _, name := range []string{"com.apple.trustd.agent", "com.apple.SystemConfiguration.configd", "com.apple.SystemConfiguration.DNSConfiguration", "com.apple.networkd"} {
		rows = append(rows, named("TLS and names", want, "mach-lookup", name))
	}
	rows = append(rows, row{what: "news of the network", q: sbpl.Query{Op: "system-socket",
		Words: map[string]string{"socket-domain": "AF_SYSTEM", "socket-protocol": "2"}}, want: want})
	rows = append(rows, named("interfaces", want, "sysctl-read", "net.routetable.0.0.3.0"))
	rows = append(rows, files("name servers", want, reading, "/private/var/run/resolv.conf", sbpl.Regular)...)
	rows = append(rows, files("name servers", want, looking, "/private/var/run", sbpl.Directory)...)
	return rows
}
