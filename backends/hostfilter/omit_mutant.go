//go:build mutant

package hostfilter

import (
	"os"
	"slices"
	"strings"
)

// The mutants' build leaves out what KGATE_MUTANT names. It exists to show that
// a scenario fails for each, and is never shipped.
func init() {
	leaveOut = func(names []string) {
		omit = func(name string) bool { return slices.Contains(names, name) }
	}
	leaveOut(omitted())
}

var omitted = func() []string {
	if s := os.Getenv("KGATE_MUTANT"); s != "" {
		return strings.Split(s, ",")
	}
	return nil
}
