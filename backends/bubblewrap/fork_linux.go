package bubblewrap

import "github.com/kgate-dev/kgate/backends/tied"

var fork, wait = tied.Fork, tied.Wait
