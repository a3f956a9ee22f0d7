package hostfilter

import (
	"fmt"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Describe returns what Attach will run beside the box, and the packet filter it
// will install, both in order. What a listed name's addresses add stands once for
// all of a family, with ADDRESS and PROTOCOL in their places. list is where the
// policy asks for a host list.
func Describe(c Config, list policy.Origin) ([]backends.Part, []Rule) {
	helpers := []backends.Part{
		{Name: "gate", Words: gateArgv(c.Tools), From: list,
			Why: "enters the box's namespaces, sets the device up, answers lookups of listed names and opens their addresses"},
		{Name: "slirp4netns", Words: append([]string{c.Tools.Slirp}, slirpArgs(c)...), From: list,
			Why: "carries what the packet filter lets out of the box's one network device"},
	}
	for i, progs := range [][]string{c.Tools.Restore, c.Tools.Restore6} {
		if len(progs) > 0 {
			helpers = append(helpers, backends.Part{Name: []string{RowFilter, RowFilter6}[i], From: list,
				Words: append(enterArgv(c.Tools.Nsenter, fdRestoreUser, fdRestoreNet), progs[0]),
				Why:   "enters the box's namespaces and installs the packet filter; where it fails, the next one that is installed does"})
		}
	}
	rules := Rules(c)
	for i := range rules {
		if rules[i].From == (policy.Origin{}) {
			rules[i].From = policy.Origin{Kind: policy.FromDefault, Key: "host filter"}
		}
	}
	families := []int{4}
	if c.IPv6 {
		families = append(families, 6)
	}
	for _, h := range c.Hosts {
		if h.Addr.IsValid() {
			continue
		}
		when := "before the command starts, and again at each lookup"
		if h.Wildcard {
			when = "at each lookup"
		}
		k := key{port: h.Port, proto: "PROTOCOL"}
		line := "-A " + strings.Replace(k.spec(), k.addr.String(), "ADDRESS", 1)
		for _, f := range families {
			rules = append(rules, Rule{Family: f, Table: "filter", Spec: line, From: h.From,
				Why: fmt.Sprintf("for each address of %s, %s", label(h), when)})
		}
	}
	return helpers, rules
}

// gateArgv is the command line of the gate, which inherits kgate's own
// executable.
func gateArgv(t Tools) []string {
	return append(enterArgv(t.Nsenter, fdUser, fdNet), fmt.Sprintf("/proc/self/fd/%d", fdSelf), GateName)
}

// enterArgv is what a command line begins with whose program is to run in the
// namespaces that it inherits as descriptors.
func enterArgv(nsenter string, user, net int) []string {
	return []string{nsenter, fmt.Sprintf("--user=/proc/self/fd/%d", user), fmt.Sprintf("--net=/proc/self/fd/%d", net), "--preserve-credentials", "--"}
}
