//go:build !darwin

package seatbelt

import (
	"errors"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Start fails: the box is macOS's.
func (b *Backend) Start(*backends.Plan, backends.Stdio) (backends.Process, error) {
	return nil, errors.New("seatbelt: sandbox-exec is part of macOS")
}

// Probe says that the box is macOS's.
func (b *Backend) Probe(*policy.Policy) []backends.Finding {
	return []backends.Finding{{Row: "sandbox-exec", Status: backends.Blocked, Reason: "it is part of macOS", Mend: "run kgate doctor on a Mac"}}
}
