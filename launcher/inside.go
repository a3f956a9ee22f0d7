package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/bubblewrap"
)

// surroundings is where kgate may be run inside a box already. A variable, for
// tests.
var surroundings = struct {
	mounts     string   // the mount table, proc_pid_mountinfo(5)
	status     string   // this process's own, proc_pid_status(5)
	containers []string // files that containers have
}{"/proc/self/mountinfo", "/proc/self/status", []string{"/.dockerenv", "/run/.containerenv"}}

// outer is a box around kgate.
type outer struct{ name, mend string }

// around tells which box kgate is in, as far as one can tell from inside. It is
// asked only when no box could be made: being in one is no mistake by itself,
// and what is around this one holds whatever this one does.
func around(env []string) *outer {
	mounts, _ := os.ReadFile(surroundings.mounts)
	at := func(point string) string { // the type of what is mounted there
		kind := ""
		for line := range bytes.Lines(mounts) {
			before, after, ok := strings.Cut(string(line), " - ")
			if f := strings.Fields(before); ok && len(f) > 4 && f[4] == point {
				kind, _, _ = strings.Cut(after, " ")
			}
		}
		return kind
	}
	if at(bubblewrap.InsidePath) != "" {
		return &outer{"another kgate's box, which holds", "leave the inner kgate out, or start the program around it without one"}
	}
	if v := lookup(env, "CODEX_SANDBOX"); v != "" || lookup(env, "CODEX_SANDBOX_NETWORK_DISABLED") != "" {
		return &outer{"Codex's own sandbox, which holds", `use one of the two: kgate (codex --sandbox danger-full-access, with the hook of kgate integrate codex), or Codex's sandbox without kgate`}
	}
	for _, file := range surroundings.containers {
		if _, err := os.Lstat(file); err == nil {
			return &outer{"a container, which holds", "start the container with user namespaces allowed and /proc unmasked (docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined), or start kgate outside it"}
		}
	}
	if v := lookup(env, "container"); v != "" {
		return &outer{"a container (" + v + "), which holds", "start the container with user namespaces allowed and /proc unmasked, or start kgate outside it"}
	}
	if at("/") == "tmpfs" {
		return &outer{"a box of bubblewrap's, which holds", "start kgate outside it"}
	}
	status, _ := os.ReadFile(surroundings.status)
	if bytes.Contains(status, []byte("\nSeccomp:\t2\n")) {
		return &outer{"a sandbox that filters system calls, which holds", "start kgate outside it"}
	}
	return nil
}

// placed adds which box kgate is in to an error that says that none could be
// made.
func placed(err error, env []string) error {
	var blocked *backends.BlockedError
	if !errors.As(err, &blocked) {
		return err
	}
	for _, f := range blocked.Findings {
		if f.Row != "namespaces" {
			return err
		}
	}
	o := around(env)
	if o == nil {
		return err
	}
	reasons := make([]string, len(blocked.Findings))
	for i, f := range blocked.Findings {
		reasons[i] = f.Reason
	}
	return &backends.BlockedError{Findings: []backends.Finding{{
		Row: "box", Status: backends.Blocked,
		Reason: o.cannot(strings.Join(reasons, "; ")) + "; nothing was started",
		Mend:   o.mend,
	}}}
}

func (o *outer) cannot(reason string) string {
	return "kgate is inside " + o.name + ", and cannot make a box in it: " + reason
}

// Placed returns doctor's rows with what a launch would say in their place: where
// no box can be made, the box that kgate is in is the cause, and what to do about
// it is another thing.
func Placed(rows []backends.Finding, env []string) []backends.Finding {
	for i, f := range rows {
		if f.Row != "namespaces" || f.Status != backends.Blocked {
			continue
		}
		if o := around(env); o != nil {
			rows[i].Reason, rows[i].Mend = o.cannot(f.Reason), o.mend
		}
	}
	return rows
}

// within adds the box that kgate is in to an error that such a box explains: a
// home directory that is read-only there.
func within(err error, env []string) error {
	if !errors.Is(err, syscall.EROFS) {
		return err
	}
	o := around(env)
	if o == nil {
		return err
	}
	return fmt.Errorf("box: kgate is inside %s, and cannot work in it: %w; nothing was started (%s)", o.name, err, o.mend)
}
