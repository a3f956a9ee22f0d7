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

// probeMount mounts a file system in namespaces of its own and looks at it with a
// line of shell. One of interpreters is from Linux 6.7 on each namespace's own
// (Documentation/admin-guide/binfmt-misc.rst).
func probeMount(kind, look string) error {
	out, err := exec.Command("unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", "mount -t "+kind+" none /tmp && "+look).CombinedOutput()
	if err != nil {
		return fmt.Errorf("unshare, mount: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

func probeSeatbelt() error { return errors.New("there is no Seatbelt on Linux") }
