package seatbelt

// need is one rule that programs need whatever the policy is.
type need struct{ rule, why string }

// group is a commented group of such rules, with where the need is known from.
type group struct {
	name  string
	needs []need
}

// Operations that go together. What is newer than reading, asking whether a
// file exists, is its own operation, and Apple's profiles pair the two.
const (
	opsRead  = "file-read* file-test-existence"
	opsLook  = "file-read-metadata file-test-existence"
	opsRun   = opsRead + " file-map-executable process-exec*"
	opsWrite = "file-write* file-link"
)

// unfiltered are the rules that hold for every object of their operation. They
// come first; a rule with a filter beats them from anywhere.
var unfiltered = group{"everything is denied unless a rule below allows it", []need{
	{"(version 1)", "the language"},
	{"(deny default)", "deny what nothing allows"},
	{"(allow process-fork)", "shells, make: every command line starts processes"},
	{"(allow pseudo-tty)", "script, tmux, python pty: make a terminal"},
	{"(allow ipc-posix-sem)", "python multiprocessing: semaphores"},
}}

var processes = group{"processes (Apple's own system.sb allows the same to every sandboxed program)", []need{
	{"(allow signal (target same-sandbox))", "shells, make: stop what they started, and nothing else"},
	{"(allow process-info* (target same-sandbox))", "shells, node, python: look after what they started"},
	{`(allow system-mac-syscall (mac-policy-name "vnguard"))`, "dyld: guarded files"},
	{`(allow system-mac-syscall (require-all (mac-policy-name "Sandbox") (mac-syscall-number 67)))`, "libSystem: ask whether a container is expected"},
	{"(allow system-fsctl (fsctl-command FSIOC_CAS_BSDFLAGS))", "libSystem: set file flags"},
}}

// sysctls leave out kern.procargs2, which shows the arguments and variables of
// every process of the same user.
var sysctls = group{"facts about the machine (node, go and python ask for these when they start)", []need{
	{`(allow sysctl-read (sysctl-name-prefix "hw."))`, "go, node, make -j: processors, memory, page size"},
	{`(allow sysctl-read (sysctl-name-prefix "machdep.cpu."))`, "node: os.cpus"},
	{`(allow sysctl-read (sysctl-name "kern.argmax"))`, "xargs, go: how long a command line may be"},
	{`(allow sysctl-read (sysctl-name "kern.boottime"))`, "node: os.uptime"},
	{`(allow sysctl-read (sysctl-name "kern.hostname"))`, "shells, git: the machine's name"},
	{`(allow sysctl-read (sysctl-name "kern.maxfilesperproc"))`, "go, node: how many files may be open"},
	{`(allow sysctl-read (sysctl-name "kern.ngroups"))`, "id: groups"},
	{`(allow sysctl-read (sysctl-name "kern.osproductversion"))`, "python, clang: the release of macOS"},
	{`(allow sysctl-read (sysctl-name "kern.osrelease"))`, "uname"},
	{`(allow sysctl-read (sysctl-name "kern.ostype"))`, "uname"},
	{`(allow sysctl-read (sysctl-name "kern.osvariant_status"))`, "libSystem: kind of installation"},
	{`(allow sysctl-read (sysctl-name "kern.osversion"))`, "python: the build of macOS"},
	{`(allow sysctl-read (sysctl-name "kern.secure_kernel"))`, "dyld: kind of kernel"},
	{`(allow sysctl-read (sysctl-name "kern.usrstack64"))`, "node, ruby: where the stack is"},
	{`(allow sysctl-read (sysctl-name "kern.version"))`, "uname"},
	{`(allow sysctl-read (sysctl-name "sysctl.proc_cputype"))`, "clang, arch: translated or not"},
	{`(allow sysctl-read (sysctl-name "vm.loadavg"))`, "make -l, node: load"},
}}

var services = group{"services of the system that hold nothing of the person's", []need{
	{`(allow mach-lookup (global-name "com.apple.bsd.dirhelper"))`, "git through xcrun, mktemp: the user's temporary directory"},
	{`(allow mach-lookup (global-name "com.apple.system.notification_center"))`, "libSystem: time zone and user database changes"},
	{`(allow ipc-posix-shm-read-data (ipc-posix-name "apple.shm.notification_center"))`, "libSystem: the same, through shared memory"},
	{`(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))`, "git, shells, python: who the user is"},
	{`(allow mach-lookup (global-name "com.apple.system.opendirectoryd.membership"))`, "id, make install: groups"},
}}

var devices = group{"devices and terminals (the list is Apple's system.sb; the terminals' is openai/codex's)", []need{
	{"(allow " + opsRead + ` (literal "/dev"))`, "shells: list it"},
	{"(allow " + opsRead + ` (literal "/dev/autofs_nowait"))`, "libSystem: do not mount what is looked at"},
	{"(allow " + opsRead + ` (literal "/dev/random"))`, "go, python: random numbers"},
	{"(allow " + opsRead + ` (literal "/dev/urandom"))`, "node, openssl: random numbers"},
	{"(allow " + opsRead + ` file-write-data file-ioctl (literal "/dev/null"))`, "every shell"},
	{"(allow " + opsRead + ` file-write-data file-ioctl (literal "/dev/zero"))`, "dd"},
	{"(allow " + opsRead + ` file-write-data file-ioctl (literal "/dev/dtracehelper"))`, "dyld: probes of every program that starts (h5i-dev/h5i#387)"},
	{"(allow " + opsRead + ` file-write-data (subpath "/dev/fd"))`, "shells: process substitution"},
	{"(allow " + opsRead + ` file-write-data (literal "/dev/stdin"))`, "cat /dev/stdin"},
	{"(allow " + opsRead + ` file-write-data (literal "/dev/stdout"))`, "tee /dev/stdout"},
	{"(allow " + opsRead + ` file-write-data (literal "/dev/stderr"))`, "tee /dev/stderr"},
	{"(allow " + opsRead + ` file-write-data file-ioctl (literal "/dev/tty"))`, "git, less: the terminal of one's own session"},
	{"(allow " + opsRead + ` file-write-data file-ioctl (literal "/dev/ptmx"))`, "script, tmux: make a terminal"},
	{"(allow " + opsRead + ` file-write-data (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))`, "script, tmux: terminals that were made in the box, not the person's"},
	{`(allow file-ioctl (regex #"^/dev/ttys[0-9]+$"))`, "shells: size and modes of a terminal that is open already"},
}}

var settings = group{"settings of the system", []need{
	{"(allow " + opsRead + ` (literal "/"))`, "dyld: every program aborts without it (akitaonrails/ai-jail#77)"},
	{"(allow " + opsLook + ` (literal "/etc"))`, "a symlink to /private/etc"},
	{"(allow " + opsLook + ` (literal "/tmp"))`, "a symlink to /private/tmp"},
	{"(allow " + opsLook + ` (literal "/var"))`, "a symlink to /private/var"},
	{"(allow " + opsLook + ` (literal "/private"))`, "the directory above all three"},
	{"(allow " + opsLook + ` (literal "/private/var"))`, "the directory above time zones and temporary files"},
	{"(allow " + opsLook + ` (literal "/private/var/db"))`, "the directory above time zones"},
	{"(allow " + opsLook + ` (literal "/private/tmp"))`, "shells, mktemp: see that it is there, closed"},
	{"(allow " + opsLook + ` (literal "/usr"))`, "the directory above the system's programs"},
	{"(allow " + opsLook + ` (literal "/System"))`, "the directory above the system's libraries"},
	{"(allow " + opsLook + ` (literal "/Library"))`, "the directory above developer tools"},
	{"(allow " + opsRead + ` (subpath "/private/etc"))`, "shells, git, python: passwd, shells, ssl certificates, zshrc"},
	{"(allow " + opsRead + ` (subpath "/private/var/db/timezone"))`, "libSystem: time zones"},
	{"(allow " + opsRead + ` (subpath "/private/var/select"))`, "/bin/sh: which shell it is"},
	{"(allow " + opsRead + ` (literal "/private/var/db/xcode_select_link"))`, "git and python3 of /usr/bin through xcrun: which developer tools"},
}}

// runnable are the trees from which programs and libraries come, and their data.
var runnable = []struct{ path, ops, why string }{
	{"/bin", opsRun, "programs of the system"},
	{"/sbin", opsRun, "programs of the system"},
	{"/usr/bin", opsRun, "programs of the system"},
	{"/usr/sbin", opsRun, "programs of the system"},
	{"/usr/lib", opsRun, "libraries of the system"},
	{"/usr/libexec", opsRun, "helpers of the system's programs"},
	{"/usr/share", opsRead, "data of the system's programs"},
	{"/usr/local", opsRun, "programs installed beside the system's (go, Homebrew on Intel)"},
	{"/opt", opsRun, "programs installed beside the system's (Homebrew, MacPorts)"},
	{"/nix/store", opsRun, "programs of Nix"},
	{"/System/Library", opsRun, "libraries of the system"},
	{"/System/Cryptexes", opsRead, "libraries of the system that are updated apart"},
	{"/System/Volumes/Preboot/Cryptexes", opsRun, "where those really lie"},
	{"/Library/Apple", opsRun, "libraries of the system that are updated apart"},
	{"/Library/Developer", opsRun, "developer tools: git, make, clang, python3"},
	{"/Library/Frameworks", opsRun, "python of python.org"},
}

// closed are the parts of those trees that hold other programs' data.
var closed = []struct{ path, why string }{
	{"/usr/local/var", "databases and sockets of services of Homebrew"},
	{"/opt/homebrew/var", "databases and sockets of services of Homebrew"},
	{"/opt/local/var", "databases and sockets of services of MacPorts"},
}
