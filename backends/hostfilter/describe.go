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
			Why: "enters the box's namespaces, installs the packet filter and answers lookups of listed names"},
		{Name: "slirp4netns", Words: append([]string{c.Tools.Slirp}, slirpArgs(c)...), From: list,
			Why: "carries what the packet filter lets out of the box's one network device"},
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

// gateArgv is the command line of the gate. The numbers are descriptors that it
// inherits; the last is kgate's own executable.
func gateArgv(t Tools) []string {
	return []string{t.Nsenter, fmt.Sprintf("--user=/proc/self/fd/%d", fdUser), fmt.Sprintf("--net=/proc/self/fd/%d", fdNet),
		"--preserve-credentials", "--", fmt.Sprintf("/proc/self/fd/%d", fdSelf), GateName}
}
