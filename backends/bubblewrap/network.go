package bubblewrap

import (
	"fmt"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
)

// restricted is what a host list asks of bwrap: it says which process holds the
// network namespace, and holds the command back until the filter is complete.
func (w *planner) restricted() {
	from := w.p.Effective().From
	w.add("info-fd", "says which process holds the network namespace", from, "--info-fd", "@info")
	w.add("block-fd", "the command waits until the filter is complete", from, "--block-fd", "@block")
	w.finding("network", backends.Ready, fmt.Sprintf("network restricted: %d hosts can be reached, through a filter around the network namespace", len(w.p.Hosts)), "")
}

// resolvConf is what the box's resolver reads with a host list: the name gate is
// the one that answers.
func resolvConf() []byte {
	return fmt.Appendf(nil, "# Written by kgate for this launch.\nnameserver %s\n", hostfilter.DNS)
}
