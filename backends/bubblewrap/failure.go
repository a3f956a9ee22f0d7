package bubblewrap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/backends"
)

// launchError says why the command never ran, from what bwrap said and how it
// ended.
func launchError(words, how string, c backends.Command) error {
	if len(c.Argv) > 0 {
		// A name may have line breaks, and bwrap says it as it is.
		if _, rest, ok := strings.Cut(words, "bwrap: execvp "+c.Argv[0]+": "); ok {
			return execError(strings.TrimSpace(rest), c)
		}
	}
	last := lastLine(words)
	if rest, ok := strings.CutPrefix(last, "execvp "); ok {
		return execError(rest, c)
	}
	if f := classify(words); f != nil {
		return &backends.BlockedError{Findings: []backends.Finding{*f}}
	}
	if last == "" {
		return fmt.Errorf("bwrap could not make the box: it ended with %s and said nothing", how)
	}
	return fmt.Errorf("bwrap could not make the box: %s", last)
}

// EndedError says that a signal from elsewhere has ended bwrap, and the box with
// it. Whether there was a command by then is not known.
type EndedError struct{ Signal syscall.Signal }

func (e *EndedError) Error() string {
	return fmt.Sprintf("bwrap was ended by signal %d (%v), and the box with it (not by kgate: the kernel's log says whether memory was short)", int(e.Signal), e.Signal)
}

// ExitStatus is 128+n, as if the signal had ended the command.
func (e *EndedError) ExitStatus() int { return 128 + int(e.Signal) }

// lastLine is bwrap's last word, without its name.
func lastLine(words string) string {
	last := ""
	for line := range strings.Lines(words) {
		if line = strings.TrimSpace(line); line != "" {
			last = strings.TrimPrefix(line, "bwrap: ")
		}
	}
	return last
}

// notExecutable is a command that is there and cannot be executed. A shell's
// status for it is 126.
type notExecutable struct{ name, reason string }

func (e *notExecutable) Error() string {
	return fmt.Sprintf("%q: cannot be executed: %s", e.name, e.reason)
}
func (e *notExecutable) ExitStatus() int { return 126 }

// CommandError says of a command that a terminal's stage could not execute what
// is said of one that bwrap could not.
func (*Backend) CommandError(errno syscall.Errno, c backends.Command) error {
	return execError(errno.Error(), c)
}

// execError tells a command that is not in the box from one that cannot be
// executed. bwrap's words are in the person's language, so where they are not
// understood the host's own file decides.
func execError(said string, c backends.Command) error {
	name := c.Argv[0]
	reason := said
	if i := strings.LastIndex(said, ": "); i >= 0 {
		reason = said[i+2:]
	}
	reason = strings.ToLower(reason)
	there := find(name, c)
	missing := there == ""
	switch reason {
	case "no such file or directory", "not a directory":
		missing = true
	case "permission denied", "exec format error", "is a directory", "text file busy":
		missing = false
	default:
		if there != "" {
			info, err := os.Stat(there)
			missing = err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
		}
	}
	if !missing {
		if reason == "" {
			reason = "the kernel refused it"
		}
		return &notExecutable{name, reason}
	}
	if there != "" {
		if head := interpreter(there); head != "" {
			return &backends.NotFoundError{Name: name, Reason: fmt.Sprintf("%q, or its interpreter %q, is not in the box (kgate run --allow-path shows it)", there, head)}
		}
		return &backends.NotFoundError{Name: name, Reason: fmt.Sprintf("%q is not in the box (kgate run --allow-path shows it)", there)}
	}
	return &backends.NotFoundError{Name: name, Reason: "not found"}
}

// find is where a shell would find a program on the host.
func find(name string, c backends.Command) string {
	there := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && !info.IsDir()
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(c.Dir, name)
		}
		if there(name) {
			return name
		}
		return ""
	}
	for _, e := range c.Env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if !filepath.IsAbs(dir) {
					dir = filepath.Join(c.Dir, dir)
				}
				if file := filepath.Join(dir, name); there(file) {
					return file
				}
			}
		}
	}
	return ""
}

// interpreter is what a script's first line names, "" for anything else.
func interpreter(file string) string {
	data, err := thisHost{}.ReadFile(file)
	if err != nil || len(data) < 3 || string(data[:2]) != "#!" {
		return ""
	}
	line, _, _ := strings.Cut(string(data[2:min(len(data), 258)]), "\n")
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return name
}

// refusal is one way in which a machine keeps bwrap from making a box, known by
// parts of what bwrap says. Whole lines differ between releases.
type refusal struct {
	parts  []string // all of them
	reason string
	mend   string
}

// refusals are in the order in which they are tried. Seen with bwrap 0.8 to 0.12.
var refusals = []refusal{
	{[]string{"setting up uid map", "ermission denied"},
		"user namespaces are restricted, by AppArmor's rule for programs without a profile on most systems", mendAppArmor},
	{[]string{"setting up uid map", "peration not permitted"},
		"user ids cannot be mapped in a namespace: kgate runs in a box already that has none to give", "start kgate outside that box"},
	{[]string{"loopback: Failed RTM_NEWADDR"},
		"a user namespace gets no privileges over its network, as AppArmor's rule for programs without a profile has it", mendAppArmor},
	{[]string{"ENOSPC"}, "this user may make no (more) namespaces: user.max_user_namespaces or another limit of its kind is reached or 0", mendMax},
	{[]string{"No space left on device"}, "this user may make no (more) namespaces: user.max_user_namespaces or another limit of its kind is reached or 0", mendMax},
	{[]string{"ermissions to creat", "namespace"}, "user namespaces are turned off for ordinary users",
		"sudo sysctl kernel.unprivileged_userns_clone=1"},
	{[]string{"namespace failed", "ermission denied"}, "user namespaces are refused, by AppArmor or another security module", mendAppArmor},
	{[]string{"namespace failed", "peration not permitted"}, "user namespaces are refused: kgate runs in a container or a box already, or the kernel has them turned off",
		"start kgate outside that box, or let the container make user namespaces"},
	{[]string{"namespace failed", "nvalid argument"}, "the kernel was built without user namespaces", "use a kernel with CONFIG_USER_NS"},
	{[]string{"mount proc", "ermitted"}, "a /proc of the box's own is refused, as in a container with parts of /proc masked",
		"start the container with an unmasked /proc"},
	{[]string{"nknown option"}, "bwrap is too old for what kgate asks of it", "install bubblewrap 0.8 or later"},
	{[]string{"setuid"}, "bwrap is installed setuid and refuses what kgate asks of it", "chmod u-s the file, or install bubblewrap without the setuid bit"},
}

const (
	mendAppArmor = "kgate's packages bring an AppArmor profile for /usr/bin/kgate that allows it (sudo apparmor_parser -r /etc/apparmor.d/kgate); " +
		"for a kgate elsewhere, or a bwrap with a profile of its own, give that one the rule userns, or: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
	mendMax = "sudo sysctl user.max_user_namespaces=15000 user.max_net_namespaces=15000"
)

// classify turns bwrap's words into a row of doctor, nil when they are new.
func classify(words string) *backends.Finding {
	for _, r := range refusals {
		all := true
		for _, part := range r.parts {
			all = all && strings.Contains(words, part)
		}
		if all {
			return &backends.Finding{Row: "namespaces", Status: backends.Blocked,
				Reason: fmt.Sprintf("%s (bwrap says: %s)", r.reason, lastLine(words)), Mend: r.mend}
		}
	}
	return nil
}
