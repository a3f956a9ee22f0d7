//go:build !linux

package bubblewrap

import (
	"errors"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

var errLinux = errors.New("bubblewrap: the box needs Linux")

// Start returns an error: see its Linux part.
func (b *Backend) Start(*backends.Plan, backends.Stdio) (backends.Process, error) {
	return nil, errLinux
}

// Probe says that the box is not to be had.
func (b *Backend) Probe(*policy.Policy) []backends.Finding {
	return []backends.Finding{{Row: "bubblewrap", Status: backends.Blocked, Reason: errLinux.Error(), Mend: "use the box of this system"}}
}

// Sockets returns an error: see its Linux part.
func (thisHost) Sockets() ([]Bound, bool, error) { return nil, false, errLinux }

// Mounts returns an error: see its Linux part.
func (thisHost) Mounts() ([]mountLine, error) { return nil, errLinux }

// Devices returns an error: see its Linux part.
func (thisHost) Devices() (map[uint64]bool, error) { return nil, errLinux }
