package bubblewrap

import (
	"errors"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
)

// What bwrap says on machines that keep it from making a box, with the word
// that the mend must hold. The first ones are sandbox-runtime#74.
func TestRefusals(t *testing.T) {
	for words, mend := range map[string]string{
		"bwrap: setting up uid map: Permission denied\n":                                                                                      "/etc/apparmor.d/kgate",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n":                                                                      "/etc/apparmor.d/kgate",
		"bwrap: Creating new namespace failed: Permission denied\n":                                                                           "AppArmor",
		"bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See ...\n":   "unprivileged_userns_clone",
		"bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces. See ...\n": "unprivileged_userns_clone",
		"bwrap: No permissions to creating new namespace, likely because the kernel does not allow ...\n":                                     "unprivileged_userns_clone",
		"bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)\n":                          "max_user_namespaces",
		"bwrap: Creating new namespace failed: Operation not permitted\n":                                                                     "container",
		"bwrap: Creating new namespace failed: Invalid argument\n":                                                                            "CONFIG_USER_NS",
		"bwrap: Can't mount proc on /newroot/proc: Operation not permitted\n":                                                                 "/proc",
		"bwrap: Unknown option --perms\n":                                                                                                     "0.8 or later",
	} {
		err := launchError(words, "exit status 1", backends.Command{Argv: []string{"true"}})
		var blocked *backends.BlockedError
		if !errors.As(err, &blocked) || !strings.Contains(blocked.Findings[0].Mend, mend) {
			t.Errorf("%s: %v", words, err)
		} else if said := strings.TrimSuffix(strings.TrimPrefix(words, "bwrap: "), "\n"); !strings.Contains(blocked.Findings[0].Reason, said) {
			t.Errorf("%s: not quoted in %v", words, err)
		}
	}
	err := launchError("bwrap: something new\n", "exit status 1", backends.Command{Argv: []string{"true"}})
	if err == nil || !strings.Contains(err.Error(), "something new") {
		t.Error(err)
	}
	if err := launchError("", "signal: killed", backends.Command{Argv: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Error(err)
	}
}

// bwrap speaks the person's language; what it means must not depend on that.
func TestExecErrorsInOtherLanguages(t *testing.T) {
	for _, c := range []struct {
		name    string
		missing bool
	}{{"/no/such/file", true}, {"/etc/passwd", false}} {
		err := launchError("bwrap: execvp "+c.name+": Irgendetwas ging schief\n", "exit status 1", backends.Command{Argv: []string{c.name}, Dir: "/"})
		var missing *backends.NotFoundError
		if errors.As(err, &missing) != c.missing {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
