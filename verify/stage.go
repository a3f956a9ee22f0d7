package verify

import (
	"github.com/kgate-dev/kgate/verify/lab"
	"github.com/kgate-dev/kgate/verify/probe"
)

// Stage runs one of the witness's own programs (the lab's machine, the box
// without a filter, the client in the box) when argv names one. None has a right
// that the person who starts it lacks.
func Stage(argv []string) (status int, ok bool) {
	if status, ok := probe.Main(argv); ok {
		return status, true
	}
	return lab.Stage(argv)
}
