package verify

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/creack/pty"

	"github.com/kgate-dev/kgate/verify/lab"
)

// probes are the conditions of scripts. Each does the thing and says why it
// could not.
var probes = map[string]func() error{
	"userns":     sync.OnceValue(probeUserns),
	"lab":        sync.OnceValue(lab.Probe),
	"hostfilter": sync.OnceValue(lab.ProbeFilter),
	"mounts":     sync.OnceValue(func() error { return probeMount("tmpfs", "true") }),
	"binfmt":     sync.OnceValue(func() error { return probeMount("binfmt_misc", "test -w /tmp/register") }),
	"seatbelt":   sync.OnceValue(probeSeatbelt),
	"root": func() error {
		if os.Geteuid() != 0 {
			return fmt.Errorf("running as uid %d", os.Geteuid())
		}
		return nil
	},
	"tty": sync.OnceValue(func() error {
		p, t, err := pty.Open()
		if err != nil {
			return err
		}
		t.Close()
		return p.Close()
	}),
}

// condition reports whether a condition holds; one that must hold and does not
// is an error, so that a skip cannot be taken for a pass.
func (o *Options) condition(name string) (bool, error) {
	probe, ok := probes[name]
	if !ok {
		return false, fmt.Errorf("no such condition")
	}
	err := probe()
	if err != nil && slices.Contains(o.Must, name) {
		return false, fmt.Errorf("must hold, but: %w", err)
	}
	return err == nil, nil
}

// KnownConditions returns an error that names the first name that no condition
// has, and the conditions there are.
func KnownConditions(names []string) error {
	for _, name := range names {
		if probes[name] == nil {
			return fmt.Errorf("there is no condition %q (there are %s)", name, strings.Join(slices.Sorted(maps.Keys(probes)), ", "))
		}
	}
	return nil
}

// Conditions names the conditions of scripts that do not hold here, with why.
func Conditions() map[string]error {
	out := map[string]error{}
	for name, probe := range probes {
		if err := probe(); err != nil {
			out[name] = err
		}
	}
	return out
}
