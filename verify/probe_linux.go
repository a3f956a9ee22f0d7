package verify

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// probeUserns makes a box with bubblewrap and looks whether it is one: the
// command in it must run, and must not see the home that was hidden.
func probeUserns() error {
	out, err := exec.Command("bwrap", "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
		"--tmpfs", "/tmp", "--die-with-parent", "--", "/bin/sh", "-c", "ls -A /tmp; echo made").CombinedOutput()
	if err != nil {
		return fmt.Errorf("bwrap: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if string(out) != "made\n" {
		return fmt.Errorf("bwrap did not hide /tmp: %q", out)
	}
	return nil
}

// probeBinfmt mounts, in namespaces of its own, a list of interpreters of its own
// (Linux 6.7, Documentation/admin-guide/binfmt-misc.rst), and adds nothing.
func probeBinfmt() error {
	out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", "mount -t binfmt_misc none /tmp && test -w /tmp/register").CombinedOutput()
	if err != nil {
		return fmt.Errorf("unshare, mount: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func probeSeatbelt() error { return errors.New("there is no Seatbelt on Linux") }
