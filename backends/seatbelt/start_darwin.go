package seatbelt

import (
	"fmt"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Start starts the box. It returns when sandbox-exec is running; what becomes of
// the command is what Wait says.
func (b *Backend) Start(plan *backends.Plan, std backends.Stdio) (backends.Process, error) {
	if argv := plan.Argv(); len(argv) == 0 || argv[0] != Tool {
		return nil, fmt.Errorf("seatbelt: start: the plan does not begin with %s", Tool)
	}
	box, err := launch(plan, std)
	if err != nil {
		return nil, err
	}
	return box, nil
}

// Probe makes a throwaway box with two markers, one that must be readable in it
// and one that must not, and then the box of the policy, for nothing but
// /usr/bin/true.
func (b *Backend) Probe(p *policy.Policy) []backends.Finding { return b.probe(p, Tool) }
