// Package assemble makes the kernel's program of a filter of system calls, for
// the architecture that it runs on. It is used when the programs are generated
// and in tests, and is not linked into kgate.
package assemble

import (
	"encoding/binary"
	"fmt"

	libseccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"

	"github.com/kgate-dev/kgate/backends/bubblewrap/seccomp"
)

// The struct seccomp_data of seccomp(2): the architecture is at byte 4.
const archOffset = 4

// Number is a call's number on this architecture.
func Number(name string) (uint32, bool) {
	info, err := arch.GetInfo("")
	if err != nil {
		return 0, false
	}
	n, ok := info.SyscallNames[name]
	return uint32(n), ok
}

// Arch is the number by which the kernel names this architecture.
func Arch() uint32 {
	info, err := arch.GetInfo("")
	if err != nil {
		return 0
	}
	return uint32(info.ID)
}

var operations = map[seccomp.Op]libseccomp.Operation{
	seccomp.Equal: libseccomp.Equal, seccomp.NotEqual: libseccomp.NotEqual,
	seccomp.AnyBit: libseccomp.BitsSet, seccomp.NoBit: libseccomp.BitsNotSet,
}

// Program is the filter of the rules: it allows all other calls. The library
// allows every call of another architecture (i386 on amd64); with only, the
// program answers ENOSYS to them first.
//
// Each rule is assembled by itself and goes on with the next in place of
// allowing. In one policy the library (version 1.6.0) compares what it has loaded
// last with the calls' numbers: after a condition that does not hold, an argument.
func Program(rules []seccomp.Rule, only bool) ([]byte, error) {
	var program []bpf.Instruction
	if only {
		program = append(program,
			bpf.LoadAbsolute{Off: archOffset, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: Arch(), SkipTrue: 1},
			bpf.RetConstant{Val: uint32(errno(enosys))},
		)
	}
	for _, r := range rules {
		var when libseccomp.ArgumentConditions
		for _, c := range r.When {
			when = append(when, libseccomp.Condition{Argument: c.Arg, Operation: operations[c.Op], Value: c.Value})
		}
		var groups []libseccomp.SyscallGroup
		all := libseccomp.SyscallGroup{Action: errno(r.Errno)}
		for _, name := range r.Calls {
			switch _, ok := Number(name); {
			case !ok:
			case len(when) == 0:
				all.Names = append(all.Names, name)
			default:
				groups = append(groups, libseccomp.SyscallGroup{Action: all.Action,
					NamesWithCondtions: []libseccomp.NameWithConditions{{Name: name, Conditions: when}}})
			}
		}
		if len(all.Names) > 0 {
			groups = append(groups, all)
		}
		for _, g := range groups {
			p := libseccomp.Policy{DefaultAction: libseccomp.ActionAllow, Syscalls: []libseccomp.SyscallGroup{g}}
			part, err := p.Assemble()
			if err != nil {
				return nil, fmt.Errorf("assemble the rule %s: %w", r.Name, err)
			}
			// Its last instruction allows, and is the only one that does.
			program = append(program, part[:len(part)-1]...)
		}
	}
	program = append(program, bpf.RetConstant{Val: uint32(libseccomp.ActionAllow)})
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of system calls: %w", err)
	}
	var data []byte
	for _, i := range raw {
		data = binary.LittleEndian.AppendUint16(data, i.Op)
		data = append(data, i.Jt, i.Jf)
		data = binary.LittleEndian.AppendUint32(data, i.K)
	}
	return data, nil
}

const enosys = 38 // ENOSYS of errno(3) on every architecture that is generated for

func errno(n uint32) libseccomp.Action {
	return libseccomp.ActionErrno&0xffff0000 | libseccomp.Action(n)
}
