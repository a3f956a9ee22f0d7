//go:build mutant

package bubblewrap

import (
	"os"
	"slices"
	"strings"
)

// omit leaves out the parts that KGATE_MUTANT names, a list with commas in which a
// star stands for any text, for builds that show that something fails without
// each. They are never shipped.
func omit(name string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv("KGATE_MUTANT"), ","), func(m string) bool {
		before, after, star := strings.Cut(m, "*")
		return m != "" && (name == m || star && len(name) >= len(before)+len(after) &&
			strings.HasPrefix(name, before) && strings.HasSuffix(name, after))
	})
}
