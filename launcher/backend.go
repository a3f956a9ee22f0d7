package launcher

import (
	"fmt"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/bubblewrap"
	"github.com/kgate-dev/kgate/backends/seatbelt"
)

// Backend returns the box of an operating system, named as GOOS names it.
func Backend(goos string) (backends.Backend, error) {
	switch goos {
	case "linux":
		return bubblewrap.New(bubblewrap.ThisHost()), nil
	case "darwin":
		return seatbelt.New(seatbelt.ThisHost()), nil
	}
	return nil, fmt.Errorf("no box for %q (kgate knows linux and darwin)", goos)
}
