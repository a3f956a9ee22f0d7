package launcher

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/bubblewrap"
	"github.com/kgate-dev/kgate/backends/seatbelt"
	"github.com/kgate-dev/kgate/launcher/terminal"
)

// Backend returns the box of an operating system, named as GOOS names it. What
// the network filter refuses, and what goes wrong beside the command, is told to
// verbose, if that is not nil: the command's own streams hold nothing of it.
func Backend(goos string, verbose io.Writer) (backends.Backend, error) {
	switch goos {
	case "linux":
		b := bubblewrap.New(bubblewrap.ThisHost())
		b.Verbose, b.Warnings = verbose, verbose
		// Where kgate's own file cannot be found there is no stage, and a launch
		// with a terminal fails for want of it.
		self, _ := os.Executable()
		b.Stage = bubblewrap.Stage{Source: self, Words: []string{terminal.StageName, strconv.Itoa(backends.ControlFD)}}
		return b, nil
	case "darwin":
		b := seatbelt.New(seatbelt.ThisHost())
		b.Terminal = []string{terminal.StageName, strconv.Itoa(backends.ControlFD)}
		return b, nil
	}
	return nil, fmt.Errorf("no box for %q (kgate knows linux and darwin)", goos)
}
