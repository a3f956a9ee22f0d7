//go:build !linux

package verify

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

func probeUserns() error { return errors.New("user namespaces are Linux's") }

func probeMount(_, _ string) error { return errors.New("namespaces are Linux's") }

// probeSeatbelt runs a program under a profile that denies it one file, and
// looks whether the file could be read and another one could.
func probeSeatbelt() error {
	const profile = `(version 1)(allow default)(deny file-read-data (literal "/private/etc/hosts"))`
	out, err := exec.Command("/usr/bin/sandbox-exec", "-p", profile,
		"/bin/sh", "-c", "cat /private/etc/hosts >/dev/null 2>&1 && echo leaked; cat /private/etc/protocols >/dev/null && echo ran").CombinedOutput()
	if err != nil {
		return fmt.Errorf("sandbox-exec: %w: %s", err, strings.TrimSpace(string(out)))
	}
	if string(out) != "ran\n" {
		return fmt.Errorf("sandbox-exec did not enforce its profile: %q", out)
	}
	return nil
}
