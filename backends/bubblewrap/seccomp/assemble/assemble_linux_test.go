package assemble

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends/bubblewrap/seccomp"
)

// Run with -update, this writes the programs of the architecture it runs on; of
// another with, for example,
// GOARCH=arm64 go test -exec qemu-aarch64-static ./backends/bubblewrap/seccomp/assemble -update
var update = flag.Bool("update", false, "write the programs of this architecture")

func TestGenerated(t *testing.T) {
	for _, nested := range []bool{false, true} {
		want, err := Program(seccomp.For(nested), true)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile("../"+seccomp.File(runtime.GOARCH, nested), want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !bytes.Equal(seccomp.Filter(nested), want) {
			t.Errorf("%s is not what the rules say; run this test with -update", seccomp.File(runtime.GOARCH, nested))
		}
	}
}

// machine is an architecture whose program can be evaluated anywhere.
type machine struct {
	name  string
	audit uint32 // AUDIT_ARCH of linux/audit.h
	calls map[string]uint32
}

var machines = []machine{
	{"amd64", 0xc000003e, map[string]uint32{
		"read": 0, "ioctl": 16, "socket": 41, "socketpair": 53, "clone": 56, "ptrace": 101, "unshare": 272, "clone3": 435, "setns": 308,
		"mount": 165, "chroot": 161, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "io_uring_setup": 425,
		"process_vm_readv": 310, "pidfd_getfd": 438, "init_module": 175, "open_by_handle_at": 304, "iopl": 172, "execve": 59,
	}},
	{"arm64", 0xc00000b7, map[string]uint32{
		"read": 63, "ioctl": 29, "socket": 198, "socketpair": 199, "clone": 220, "ptrace": 117, "unshare": 97, "clone3": 435, "setns": 268,
		"mount": 40, "chroot": 51, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "io_uring_setup": 425,
		"process_vm_readv": 270, "pidfd_getfd": 438, "init_module": 105, "open_by_handle_at": 265, "execve": 221,
	}},
}

const allowed = unix.Errno(0)

// what the filter answers to a call.
type example struct {
	call string
	args [6]uint64
	want unix.Errno
	rule string // the one that refuses; "" for what is allowed
}

var examples = []example{
	{"read", [6]uint64{}, allowed, ""},
	{"execve", [6]uint64{}, allowed, ""},
	{"socket", [6]uint64{unix.AF_UNIX, 1}, allowed, ""},
	{"socket", [6]uint64{unix.AF_INET, 1}, allowed, ""},
	{"socket", [6]uint64{unix.AF_INET6, 2}, allowed, ""},
	{"socket", [6]uint64{unix.AF_NETLINK, 3, unix.NETLINK_ROUTE}, allowed, ""},
	{"socket", [6]uint64{unix.AF_VSOCK, 1}, unix.EAFNOSUPPORT, "families"},
	{"socket", [6]uint64{unix.AF_PACKET, 3}, unix.EAFNOSUPPORT, "families"},
	{"socket", [6]uint64{unix.AF_ALG, 5}, unix.EAFNOSUPPORT, "families"},
	{"socket", [6]uint64{1<<32 | unix.AF_VSOCK, 1}, unix.EAFNOSUPPORT, "families"},
	{"socket", [6]uint64{1<<32 | unix.AF_NETLINK, 3, unix.NETLINK_AUDIT}, unix.EAFNOSUPPORT, "families"},
	{"socketpair", [6]uint64{unix.AF_TIPC, 1}, unix.EAFNOSUPPORT, "families"},
	{"socketpair", [6]uint64{unix.AF_UNIX, 1}, allowed, ""},
	{"socket", [6]uint64{unix.AF_NETLINK, 3, unix.NETLINK_NETFILTER}, unix.EPROTONOSUPPORT, "netlink"},
	{"socket", [6]uint64{unix.AF_NETLINK, 3, 1<<32 | unix.NETLINK_ROUTE}, unix.EPROTONOSUPPORT, "netlink"},
	{"io_uring_setup", [6]uint64{8}, unix.ENOSYS, "io-uring"},
	{"ioctl", [6]uint64{0, unix.TCGETS}, allowed, ""},
	{"ioctl", [6]uint64{0, unix.TIOCSTI}, unix.EPERM, "tiocsti"},
	{"ioctl", [6]uint64{0, 1<<32 | unix.TIOCSTI}, unix.EPERM, "tiocsti"},
	{"ioctl", [6]uint64{0, 0xffffffff<<32 | unix.TIOCSTI}, unix.EPERM, "tiocsti"},
	{"ioctl", [6]uint64{0, unix.TIOCLINUX}, unix.EPERM, "tioclinux"},
	{"ioctl", [6]uint64{0, 1<<63 | unix.TIOCLINUX}, unix.EPERM, "tioclinux"},
	{"ioctl", [6]uint64{0, unix.TIOCSTI | 1}, allowed, ""},
	{"ioctl", [6]uint64{0, unix.TIOCSWINSZ}, allowed, ""},
	{"keyctl", [6]uint64{}, unix.EPERM, "keys"},
	{"bpf", [6]uint64{}, unix.EPERM, "bpf"},
	{"perf_event_open", [6]uint64{}, unix.EPERM, "perf"},
	{"userfaultfd", [6]uint64{}, unix.EPERM, "userfaultfd"},
	{"ptrace", [6]uint64{unix.PTRACE_TRACEME}, allowed, ""},
	{"ptrace", [6]uint64{unix.PTRACE_CONT, 2}, allowed, ""},
	{"ptrace", [6]uint64{unix.PTRACE_ATTACH, 1}, unix.EPERM, "ptrace"},
	{"ptrace", [6]uint64{unix.PTRACE_SEIZE, 1}, unix.EPERM, "seize"},
	{"process_vm_readv", [6]uint64{}, unix.EPERM, "others"},
	{"pidfd_getfd", [6]uint64{}, unix.EPERM, "others"},
	{"clone", [6]uint64{17}, allowed, ""},
	{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allowed, ""},
	{"clone", [6]uint64{unix.CLONE_NEWUSER | 17}, unix.EPERM, "new-user"},
	{"unshare", [6]uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}, unix.EPERM, "new-user"},
	{"unshare", [6]uint64{unix.CLONE_FS}, allowed, ""},
	{"clone3", [6]uint64{}, unix.ENOSYS, "clone3"},
	{"setns", [6]uint64{}, unix.EPERM, "setns"},
	{"mount", [6]uint64{}, unix.EPERM, "mount"},
	{"chroot", [6]uint64{}, unix.EPERM, "mount"},
	{"init_module", [6]uint64{}, unix.EPERM, "modules"},
	{"open_by_handle_at", [6]uint64{}, unix.EPERM, "handles"},
	{"iopl", [6]uint64{}, unix.EPERM, "old"},
}

// The programs as they are kept, for both architectures, call by call.
func TestPrograms(t *testing.T) {
	for _, m := range machines {
		for _, nested := range []bool{false, true} {
			data, err := os.ReadFile("../" + seccomp.File(m.name, nested))
			if err != nil {
				t.Fatal(err)
			}
			vm := load(t, data)
			open := map[string]bool{}
			if nested {
				for _, r := range seccomp.Rules() {
					open[r.Name] = r.Nested
				}
			}
			for _, e := range examples {
				number, ok := m.calls[e.call]
				if !ok {
					continue
				}
				want := e.want
				if open[e.rule] {
					want = allowed
				}
				if got := run(t, vm, m.audit, number, e.args); got != want {
					t.Errorf("%s, nested %v: %s %x: %v, want %v", m.name, nested, e.call, e.args, got, want)
				}
			}
			// What another architecture numbers is no call here.
			for _, other := range []uint32{0x40000003, 0xc000003e, 0xc00000b7, 0x40000028, 0} {
				if got := run(t, vm, other, m.calls["read"], [6]uint64{}); other != m.audit && got != unix.ENOSYS {
					t.Errorf("%s: a call of architecture %#x: %v", m.name, other, got)
				}
			}
			if m.name == "amd64" {
				if got := run(t, vm, m.audit, 0x40000000|m.calls["socket"], [6]uint64{unix.AF_VSOCK}); got != unix.ENOSYS {
					t.Errorf("a call of x32: %v", got)
				}
			}
		}
	}
}

// Each rule is needed: without it, an example that it refuses is allowed.
func TestEachRuleIsNeeded(t *testing.T) {
	var here *machine
	for i := range machines {
		if machines[i].name == runtime.GOARCH {
			here = &machines[i]
		}
	}
	if here == nil {
		t.Fatalf("no program for %s", runtime.GOARCH)
	}
	for i, r := range seccomp.Rules() {
		rest := append(append([]seccomp.Rule{}, seccomp.Rules()[:i]...), seccomp.Rules()[i+1:]...)
		data, err := Program(rest, true)
		if err != nil {
			t.Fatal(err)
		}
		vm := load(t, data)
		killed := false
		for _, e := range examples {
			number, ok := here.calls[e.call]
			if ok && e.rule == r.Name && run(t, vm, here.audit, number, e.args) != e.want {
				killed = true
			}
		}
		if !killed && (r.Name != "old" || here.name == "amd64") {
			t.Errorf("no example is allowed without %s", r.Name)
		}
	}
	data, err := Program(seccomp.Rules(), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, load(t, data), 0x40000003, here.calls["socket"], [6]uint64{unix.AF_VSOCK}); got != allowed {
		t.Errorf("without the look at the architecture: %v", got)
	}
}

// Each rule says why, and every call of it is one somewhere.
func TestRulesAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range seccomp.Rules() {
		if r.Name == "" || seen[r.Name] || r.Why == "" || r.Source == "" || r.Errno == 0 || len(r.Calls) == 0 {
			t.Errorf("incomplete: %+v", r)
		}
		seen[r.Name] = true
	}
}

func load(t *testing.T, data []byte) *bpf.VM {
	t.Helper()
	var program []bpf.Instruction
	for ; len(data) >= 8; data = data[8:] {
		program = append(program, bpf.RawInstruction{
			Op: binary.LittleEndian.Uint16(data), Jt: data[2], Jf: data[3], K: binary.LittleEndian.Uint32(data[4:]),
		}.Disassemble())
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

// run is the kernel's struct seccomp_data put before the program. The VM reads
// words in the network's byte order, the kernel in its own.
func run(t *testing.T, vm *bpf.VM, audit, number uint32, args [6]uint64) unix.Errno {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, number)
	data = binary.BigEndian.AppendUint32(data, audit)
	data = append(data, make([]byte, 8)...)
	for _, a := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(a))
		data = binary.BigEndian.AppendUint32(data, uint32(a>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	switch action := uint32(got); action & 0xffff0000 {
	case 0x7fff0000: // SECCOMP_RET_ALLOW
		return allowed
	case 0x00050000: // SECCOMP_RET_ERRNO
		return unix.Errno(action & 0xffff)
	default:
		t.Fatal(fmt.Errorf("action %#x", action))
		return 0
	}
}
