//go:build !linux

package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/kgate-dev/kgate/backends"
)

// Filter is a host filter around one network namespace.
type Filter struct{}

var errLinux = errors.New("a host filter needs Linux's network namespaces")

// Attach returns an error: see its Linux part.
func Attach(context.Context, Config, int) (*Filter, error) { return nil, errLinux }

// Done never gives anything.
func (*Filter) Done() <-chan error { return nil }

// Close does nothing.
func (*Filter) Close() {}

// Gate says that it is nothing by itself.
func Gate() int {
	fmt.Fprintf(os.Stderr, "kgate: %v\n", errLinux)
	return 2
}

// Probe says that the host filter is not to be had.
func Probe(Config, string) []backends.Finding {
	return []backends.Finding{{Row: RowAttach, Status: backends.Blocked, Reason: errLinux.Error(), Mend: "use network: off or open"}}
}
