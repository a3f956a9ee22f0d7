// Package backends is what an operating system's kernel can be asked for. A
// Backend turns a policy and facts about the host into a Plan, which is a
// value: all that will be executed, before anything is. doctor prints a plan's
// findings, explain prints a plan, run starts a plan.
package backends

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// Status is what doctor says of one row.
type Status string

// The statuses, from best to worst.
const (
	Ready    Status = "READY"
	Degraded Status = "DEGRADED"
	Blocked  Status = "BLOCKED"
)

// Finding is one row of doctor.
type Finding struct {
	Row    string `json:"row"`
	Status Status `json:"status"`
	Reason string `json:"reason"`
	Mend   string `json:"mend,omitempty"` // what to do about it; "" when READY
}

// Command is what the person asked to run.
type Command struct {
	Argv     []string // never empty
	Path     string   // the executable Argv[0] resolves to, as seen in the box; "" in doctor
	Dir      string   // absolute working directory
	Env      []string // what the command gets, already filtered
	Terminal bool     // the command gets a terminal of its own
}

// Part is a group of words of the argument list that stand and fall together,
// with the reason they are there. A mutant leaves out one Part.
type Part struct {
	Name  string // stable and unique in a plan, e.g. "unshare-pid", "mask-exec:/usr/bin/curl"
	Words []string
	Why   string        // one short clause
	From  policy.Origin // the policy value that asked for it
}

// File is a file that the launch makes for the box and removes after it.
type File struct {
	Name    string // unique in the plan; how Words refer to it is the backend's affair
	Mode    os.FileMode
	Content []byte
	Why     string
}

// Plan is everything a launch will execute.
type Plan struct {
	Backend  string // "bubblewrap", "seatbelt"
	Findings []Finding
	Parts    []Part // the argument list in order, the command's own words last
	Files    []File
	Command  Command
	Network  policy.Mode   // the effective mode
	Hosts    []policy.Host // for a restricted network
	IPv6     bool
	MTU      int // of the box's network device, in bytes
	Extra    any // the backend's own further data, read by the same backend's Start only
}

// Argv is the whole argument list.
func (p *Plan) Argv() []string {
	var argv []string
	for _, part := range p.Parts {
		argv = append(argv, part.Words...)
	}
	return argv
}

// Blocked returns the findings that keep the plan from starting.
func (p *Plan) Blocked() []Finding {
	var out []Finding
	for _, f := range p.Findings {
		if f.Status == Blocked {
			out = append(out, f)
		}
	}
	return out
}

// BlockedError says why a plan cannot start. run exits 125 with it.
type BlockedError struct{ Findings []Finding }

func (e *BlockedError) Error() string {
	var b strings.Builder
	for i, f := range e.Findings {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Row + ": " + f.Reason)
		if f.Mend != "" {
			b.WriteString(" (" + f.Mend + ")")
		}
	}
	return b.String()
}

// NotFoundError says that the command does not exist in the box. run exits 127.
type NotFoundError struct{ Name, Reason string }

func (e *NotFoundError) Error() string { return strconv.Quote(e.Name) + ": " + e.Reason }

// Stdio is what the command gets as its streams. A nil stream is /dev/null.
type Stdio struct {
	In, Out, Err *os.File

	// Control, when not nil, is what the stage of a terminal talks to kgate
	// through. It is inherited as descriptor ControlFD, and closed by the stage
	// before there is a command.
	Control *os.File
}

// ControlFD is the number under which a stage finds Stdio.Control.
const ControlFD = 3

// Exit is how a command ended.
type Exit struct {
	Code   int            // its status, when Signal is 0
	Signal syscall.Signal // the signal that ended it
}

// Status is the exit status that run returns: the command's own, or 128+n.
func (e Exit) Status() int {
	if e.Signal != 0 {
		return 128 + int(e.Signal)
	}
	return e.Code
}

// Process is a started box.
type Process interface {
	// Wait returns how the command ended, after the whole box is gone and
	// everything the launch made on the host is removed. An error means that
	// the command never ran (NotFoundError, or the box's own failure).
	Wait() (Exit, error)
	// Signal delivers to the command's own process, not to the box around it.
	// Before the command exists it ends the launch for signals that end programs.
	Signal(sig os.Signal) error
	// Kill ends the whole box at once.
	Kill() error
}

// Backend is one operating system's box.
type Backend interface {
	Name() string
	// Plan is pure but for reading the host through the facts it was made with.
	Plan(p *policy.Policy, c Command) (*Plan, error)
	// Probe runs the tools in a throwaway box and returns what they said as
	// findings; it starts no user program. doctor adds them to the plan's own.
	Probe(p *policy.Policy) []Finding
	Start(plan *Plan, io Stdio) (Process, error)
	// CommandError returns the error of Process.Wait for a command that something
	// in the box could not execute, with what execve(2) answered there.
	CommandError(errno syscall.Errno, c Command) error
}
