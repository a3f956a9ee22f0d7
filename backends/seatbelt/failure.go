package seatbelt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/backends"
)

// The statuses of sandbox-exec itself (sysexits(3)).
const (
	exDataErr = 65 // the profile does not compile
	exOSErr   = 71 // the profile cannot be applied, or the program not be executed
)

// launchError says why the box never stood, from what sandbox-exec said and how
// it ended. The stage had not run, so the status is sandbox-exec's own.
func launchError(said string, status syscall.WaitStatus) error {
	said = strings.Join(strings.Fields(strings.ReplaceAll(said, "sandbox-exec: ", "")), " ")
	blocked := func(row, reason, mend string) error {
		return &backends.BlockedError{Findings: []backends.Finding{{Row: row, Status: backends.Blocked, Reason: reason, Mend: mend}}}
	}
	switch {
	case strings.Contains(said, "sandbox_apply"):
		return blocked("sandbox-exec", "already inside a sandbox, and macOS allows no second one ("+said+")",
			"start kgate outside the other sandbox, or turn that one off")
	case status.Exited() && status.ExitStatus() == exDataErr:
		return blocked("profile", "the profile does not compile: "+said, "report the rule, which kgate explain shows, as a bug of kgate's")
	case strings.Contains(said, "execvp"):
		return blocked("sandbox-exec", "the box cannot execute kgate's own file: "+said, "install kgate in /usr/local/bin")
	case status.Exited() && status.ExitStatus() == exOSErr:
		return blocked("sandbox-exec", "the profile cannot be applied: "+said, "")
	case status.Signaled():
		return fmt.Errorf("sandbox-exec could not make the box: it ended with %v %s", status.Signal(), said)
	}
	return fmt.Errorf("sandbox-exec could not make the box: it ended with status %d %s", status.ExitStatus(), said)
}

// notExecutable is a command that is there and cannot be executed. A shell's
// status for it is 126.
type notExecutable struct{ name, reason string }

func (e *notExecutable) Error() string {
	return fmt.Sprintf("%q: cannot be executed: %s", e.name, e.reason)
}
func (e *notExecutable) ExitStatus() int { return 126 }

// CommandError says of a command that a terminal's stage could not execute what
// is said of one that kgate's own stage could not.
func (*Backend) CommandError(errno syscall.Errno, c backends.Command) error {
	return commandError(c.Argv[0], errno)
}

// commandError says why the box stood and the command did not start.
func commandError(name string, errno syscall.Errno) error {
	switch {
	case errors.Is(errno, syscall.ENOENT), errors.Is(errno, syscall.ENOTDIR):
		return &backends.NotFoundError{Name: name, Reason: "not found in the box (kgate run --allow-path shows a path to it)"}
	case errors.Is(errno, syscall.EPERM):
		return &notExecutable{name, "the box does not allow it (kgate run --allow-path shows a path to it, unless it is denied)"}
	}
	return &notExecutable{name, errno.Error()}
}
