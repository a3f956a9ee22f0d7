//go:build mutant

package bubblewrap

import (
	"os"
	"slices"
	"strings"

	"github.com/kgate-dev/kgate/backends/bubblewrap/seccomp"
	"github.com/kgate-dev/kgate/backends/bubblewrap/seccomp/assemble"
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

// filterOfCalls is assembled anew, without the rules that are left out.
func filterOfCalls(nested bool) []byte {
	var rules []seccomp.Rule
	for _, r := range seccomp.For(nested) {
		if !omit("seccomp:" + r.Name) {
			rules = append(rules, r)
		}
	}
	data, err := assemble.Program(rules, !omit("seccomp:architecture"))
	if err != nil {
		panic(err)
	}
	return data
}
