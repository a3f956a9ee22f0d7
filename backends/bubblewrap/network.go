package bubblewrap

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// restricted is what a host list asks for: the tools of the filter. The command
// is held back until that is complete. Which process holds the network namespace
// is on the status stream.
func (w *planner) restricted() {
	w.tools = filterTools(w.h, w.p)
	if err := w.tools.Check(w.p.IPv6.Value); err != nil {
		var f *hostfilter.Fault
		if errors.As(err, &f) {
			w.finding(f.Row, backends.Blocked, f.Err.Error(), f.Mend)
		} else {
			w.finding(hostfilter.RowAttach, backends.Blocked, err.Error(), "")
		}
		return
	}
	w.finding("network", backends.Ready, fmt.Sprintf("network restricted: what the host list (%d) names can be reached, through a filter around the network namespace", len(w.p.Hosts)), "")
}

// filterConfig is what a plan's host filter is made from, but for the resolver.
func filterConfig(plan *backends.Plan, tools hostfilter.Tools) hostfilter.Config {
	return hostfilter.Config{Hosts: plan.Hosts, IPv6: plan.IPv6, MTU: plan.MTU, Tools: tools}
}

// FilterParts says what a plan's host list asks for: the programs that run beside
// the box, outside it, and the lines of the packet filter; none without a list or
// without the tools.
func FilterParts(plan *backends.Plan) ([]backends.Part, []hostfilter.Rule) {
	o, ok := plan.Extra.(*own)
	if !ok || plan.Network.Value != policy.Restricted || o.Tools.Check(plan.IPv6) != nil {
		return nil, nil
	}
	return hostfilter.Describe(filterConfig(plan, o.Tools), plan.Network.From)
}

// filterTools finds the programs of a host filter, on PATH and where
// distributions put those of iptables. They run outside the box, so none is
// taken from where a command in a box can write.
func filterTools(h Host, p *policy.Policy) hostfilter.Tools {
	dirs := append(h.Path(), "/usr/sbin", "/sbin", "/usr/local/sbin")
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !filepath.IsAbs(dir) || writableByBox(h, dir, p) })
	return hostfilter.FindTools(func(name string) string {
		for _, dir := range dirs {
			file := filepath.Join(dir, name)
			if info, err := follow(h, file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				return file
			}
		}
		return ""
	})
}

// resolvConf is what the box's resolver reads with a host list: the name gate is
// the one that answers.
func resolvConf() []byte {
	return fmt.Appendf(nil, "# Written by kgate for this launch.\nnameserver %s\n", hostfilter.DNS)
}
