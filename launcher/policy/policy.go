// Package policy says what one launch may touch: the built-in defaults, the
// person's file, the project's file (which may only narrow) and the one-shot
// flags, merged into one value in which everything knows where it came from.
package policy

import (
	"fmt"
	"net/netip"
	"os"
)

// Kind is the layer of the policy a value came from.
type Kind int

// The layers, in the order in which they are merged.
const (
	FromDefault Kind = iota
	FromUser
	FromProject
	FromFlag
	FromDerived // computed from other values, e.g. an empty host list
)

// Origin says where one value came from.
type Origin struct {
	Kind Kind
	File string // the policy file, as the person knows it; "" outside files
	Line int    // 1-based; 0 outside files
	Key  string // "allow.hosts[2]", "--allow-path", or the default's name
}

// String renders the origin for explain and for errors:
// "default", "/home/u/.kgate/config.yaml:7: allow.hosts[2]", "flag --allow-net".
func (o Origin) String() string {
	switch {
	case o.File != "":
		return fmt.Sprintf("%s:%d: %s", o.File, o.Line, o.Key)
	case o.Kind == FromFlag:
		return "flag " + o.Key
	case o.Key != "":
		return "default " + o.Key
	default:
		return "default"
	}
}

// Network is the network mode of a launch.
type Network string

// The network modes, from tightest to widest.
const (
	Off        Network = "off"
	Restricted Network = "restricted"
	Open       Network = "open"
)

// Mode is a network mode with its origin.
type Mode struct {
	Value Network
	From  Origin
}

// Flag is a boolean with its origin.
type Flag struct {
	Value bool
	From  Origin
}

// Number is a number with its origin.
type Number struct {
	Value int
	From  Origin
}

// Host is one entry of the host list.
type Host struct {
	Name     string     // lower case, no trailing dot, "*." taken off; "" when Addr is set
	Wildcard bool       // the entry was "*.Name": names below Name, not Name itself
	Addr     netip.Addr // valid when the entry was an address
	Port     uint16     // 0: any port
	From     Origin
}

// Path is one path the policy names. Name is absolute and lexically clean;
// symlinks are left as they are, because what they lead to is a fact about the
// host and not about the policy. Bytes that are not UTF-8 are kept.
type Path struct {
	Name  string
	Write bool
	From  Origin
}

// Word is a short string (a program's name, a prefix, a variable's pattern)
// with its origin.
type Word struct {
	Text string
	From Origin
}

// Program is one file on this host that a denied name stands for.
type Program struct {
	Name string      // the denied name
	Path string      // absolute, symlinks resolved
	Info os.FileInfo // of Path, for os.SameFile
	From Origin      // the entry of deny.exec

	// Multicall is true when Path is a program that is many programs, such as
	// busybox: the file is reached by the denied name, but masking it would
	// take all its other names away too.
	Multicall bool
}

// Policy is the merged policy of one launch.
type Policy struct {
	Home string // the real home directory, absolute
	// Homes are all the directories to hide as home: Home first, then the one
	// that the user database names when it is another.
	Homes   []string
	Project string // the project's root: what the command may write
	Dir     string // the working directory, in or equal to Project

	UserFile    string // ~/.kgate/config.yaml, whether or not it exists
	ProjectFile string // the nearest .kgate.yaml; "" when there is none
	// ProjectFiles are all the .kgate.yaml files that narrowed this policy,
	// nearest first: the project's and those of the directories around it, so
	// that one made below a project cannot take the project's own away.
	ProjectFiles []string

	Network  Mode
	IPv6     Flag
	MTU      Number // of a restricted network's device, in bytes
	Nested   Flag   // allow.nested: the command may make user namespaces
	Hosts    []Host
	Paths    []Path
	DenyRead []Path
	DenyExec []Word
	Programs []Program // the files that the names in DenyExec are on this host

	MaskPrefixes []Word
	MaskEnv      []Word // names of variables whose values are masked

	Journald Flag // log.journald: copies of the audit log's lines go to the journal
	Syslog   Word // log.syslog: copies go there too, see SyslogAddress; "" when not

	EnvPass []Word // patterns; a name that matches Pass is kept although it matches Drop
	EnvDrop []Word // patterns, shell-style, matched against the whole name
}

// Effective is the network mode that will be asked of the kernel: restricted
// with an empty host list is off.
func (p *Policy) Effective() Mode {
	if p.Network.Value == Restricted && len(p.Hosts) == 0 {
		return Mode{Off, Origin{Kind: FromDerived, Key: "restricted with an empty host list is off"}}
	}
	return p.Network
}
