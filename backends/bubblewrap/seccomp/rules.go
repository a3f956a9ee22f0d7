// Package seccomp is the box's filter of system calls: what the kernel refuses a
// command although no mount and no namespace stands in its way.
//
// The filter lets through whatever no rule names. It is not what keeps the
// command from files and networks; it closes parts of the kernel that reach past
// namespaces, or that no ordinary program needs and that exploits begin with.
// The rules are data here; the programs for the kernel are made from them once,
// by a library that is not linked into kgate, and kept beside this file (see
// TestGenerated). What each program does is evaluated call by call in the tests.
package seccomp

// Linux's numbers, written out because explain plans for Linux on every system:
// include/uapi of its source.
const (
	ePERM           = 1
	eNOSYS          = 38
	ePROTONOSUPPORT = 93
	eAFNOSUPPORT    = 97

	afUnix       = 1
	afInet       = 2
	afInet6      = 10
	afNetlink    = 16
	netlinkRoute = 0

	tiocsti   = 0x5412
	tioclinux = 0x541c

	ptraceAttach = 16
	ptraceSeize  = 0x4206

	cloneNewuser = 0x10000000
)

// Op is a comparison of an argument with a value.
type Op string

// The comparisons. All look at 64 bits.
const (
	Equal    Op = "=="
	NotEqual Op = "!="
	AnyBit   Op = "&"  // some bit of the value is set
	NoBit    Op = "!&" // no bit of the value is set
)

// Condition is on one argument of a call, numbered from 0.
type Condition struct {
	Arg   uint32
	Op    Op
	Value uint64
}

// Rule refuses calls.
type Rule struct {
	Name   string   // stable; a mutant leaves out one
	Calls  []string // by the kernel's names; a name that an architecture lacks is nothing there
	When   []Condition
	Errno  uint32 // Linux's number
	Nested bool   // not with allow.nested: what a box in the box needs
	Why    string
	Source string // where the fact that it rests on is from
}

// The kernel looks at the lower 32 bits of an ioctl's request alone, so a
// comparison of 64 bits would be passed by setting one of the upper.
func low32(arg uint32, value uint32) []Condition {
	all := []Condition{{arg, NoBit, uint64(^value)}}
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if value&bit != 0 {
			all = append(all, Condition{arg, AnyBit, uint64(bit)})
		}
	}
	return all
}

// Rules returns all of them. Order does not matter: any that fits refuses.
func Rules() []Rule {
	return []Rule{
		{Name: "families", Calls: []string{"socket", "socketpair"}, Errno: eAFNOSUPPORT,
			// A family with upper bits set is none of these, and is refused.
			When:   []Condition{{0, NotEqual, afUnix}, {0, NotEqual, afInet}, {0, NotEqual, afInet6}, {0, NotEqual, afNetlink}},
			Why:    "a network namespace does not confine AF_VSOCK, which reaches the hypervisor and other machines' services; AF_ALG, AF_PACKET, AF_CAN, AF_TIPC and the like are parts of the kernel that a build or a test does not need",
			Source: "measured: AF_VSOCK sockets open under --unshare-net; vsock(7); address_families(7)"},
		{Name: "netlink", Calls: []string{"socket"}, Errno: ePROTONOSUPPORT,
			When:   []Condition{{0, Equal, afNetlink}, {2, NotEqual, netlinkRoute}},
			Why:    "netlink beside route configures packet filters, IPsec, audit and the like: only route is asked by ordinary programs (which addresses are there)",
			Source: "netlink(7)"},
		{Name: "io-uring", Calls: []string{"io_uring_setup", "io_uring_enter", "io_uring_register"}, Errno: eNOSYS,
			Why:    "its operations are not seen by any filter of system calls, socket(2) among them",
			Source: "measured: io_uring_setup succeeds in a bubblewrap box; io_uring(7)"},
		{Name: "tiocsti", Calls: []string{"ioctl"}, Errno: ePERM, When: low32(1, tiocsti),
			Why:    "puts characters into the input of the terminal, for the shell that reads it after the command",
			Source: "CVE-2017-5226; ioctl_tty(2)"},
		{Name: "tioclinux", Calls: []string{"ioctl"}, Errno: ePERM, When: low32(1, tioclinux),
			Why:    "pastes into the input of a virtual console, as TIOCSTI does",
			Source: "CVE-2023-28100; ioctl_console(2)"},
		{Name: "keys", Calls: []string{"add_key", "request_key", "keyctl"}, Errno: ePERM,
			Why:    "the kernel's keyrings belong to the user and are not namespaced: what other processes of the person keep there could be read",
			Source: "keyrings(7)"},
		{Name: "bpf", Calls: []string{"bpf"}, Errno: ePERM,
			Why:    "programs for the kernel's own machine, whose checker has let bad ones through",
			Source: "bpf(2), kernel.unprivileged_bpf_disabled"},
		{Name: "perf", Calls: []string{"perf_event_open"}, Errno: ePERM,
			Why:    "counts and samples what the machine does beyond the box",
			Source: "perf_event_open(2), kernel.perf_event_paranoid"},
		{Name: "userfaultfd", Calls: []string{"userfaultfd"}, Errno: ePERM,
			Why:    "holds the kernel still in the middle of a copy: what many exploits of races in it begin with",
			Source: "userfaultfd(2), vm.unprivileged_userfaultfd"},
		{Name: "ptrace", Calls: []string{"ptrace"}, Errno: ePERM, When: []Condition{{0, Equal, ptraceAttach}},
			Why:    "attaching to a process that is there already, such as the box's first, which kgate learns the command's end from; a debugger starts its program itself",
			Source: "ptrace(2)"},
		{Name: "seize", Calls: []string{"ptrace"}, Errno: ePERM, When: []Condition{{0, Equal, ptraceSeize}},
			Why:    "the same by its newer name",
			Source: "ptrace(2)"},
		{Name: "others", Calls: []string{"process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise"}, Errno: ePERM,
			Why:    "reading and writing other processes' memory and taking their descriptors, without ptrace",
			Source: "process_vm_readv(2), pidfd_getfd(2)"},
		{Name: "new-user", Calls: []string{"clone", "unshare"}, Errno: ePERM, Nested: true, When: []Condition{{0, AnyBit, cloneNewuser}},
			Why:    "in a user namespace of its own the command has every capability over what it makes there, which opens most of the kernel to it",
			Source: "measured: unshare(CLONE_NEWUSER) succeeds in a bubblewrap box; user_namespaces(7)"},
		{Name: "clone3", Calls: []string{"clone3"}, Errno: eNOSYS, Nested: true,
			Why:    "its flags lie in memory, where no filter can look; C libraries fall back to clone(2)",
			Source: "clone(2), seccomp(2)"},
		{Name: "setns", Calls: []string{"setns"}, Errno: ePERM, Nested: true,
			Why:    "joins another process's namespaces",
			Source: "setns(2)"},
		{Name: "mount", Errno: ePERM, Nested: true,
			Calls:  []string{"mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree", "move_mount", "mount_setattr"},
			Why:    "changing what is mounted where; without capabilities none works, and this holds if one is regained",
			Source: "mount(2), fsopen(2)"},
		{Name: "modules", Errno: ePERM,
			Calls:  []string{"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff", "acct"},
			Why:    "the machine itself: modules, another kernel, its end",
			Source: "capabilities(7)"},
		{Name: "handles", Calls: []string{"open_by_handle_at"}, Errno: ePERM,
			Why:    "opens a file by its number, past every mount",
			Source: "open_by_handle_at(2)"},
		{Name: "old", Calls: []string{"iopl", "ioperm", "uselib", "ustat", "sysfs", "lookup_dcookie", "vhangup", "modify_ldt", "_sysctl", "nfsservctl", "quotactl"}, Errno: ePERM,
			Why:    "ports of the hardware and calls that nothing current makes",
			Source: "syscalls(2)"},
	}
}

// For returns the rules of a box that may, or may not, hold another.
func For(nested bool) []Rule {
	var rules []Rule
	for _, r := range Rules() {
		if !nested || !r.Nested {
			rules = append(rules, r)
		}
	}
	return rules
}
