//go:build mutant

package bubblewrap

import (
	"os"
	"slices"
	"strings"
)

// omit leaves out the parts that KGATE_MUTANT names, for builds that show that
// something fails without each. They are never shipped.
func omit(name string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("KGATE_MUTANT"), ","), func(m string) bool {
		return m != "" && (name == m || strings.HasSuffix(m, "*") && strings.HasPrefix(name, m[:len(m)-1]))
	})
}
