package lab

import (
	"net/netip"
	"sync"
)

// who names the addresses that packets of a lab are seen with: its own, as the
// package's documentation lists them, and those that slirp4netns gives a box
// (slirp4netns(1)).
var who = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"10.0.2.2":        "the box's way out",
		"10.0.2.3":        "the box's name server",
		"10.0.2.100":      "the box",
		"fd00::2":         "the box's way out",
		"fd00::3":         "the box's name server",
		"203.0.113.1":     "the machine's way out",
		"203.0.113.2":     "the machine",
		"203.0.113.53":    "name server",
		"203.0.113.54":    "another resolver",
		"203.0.113.10":    "allowed.test",
		"203.0.113.11":    "rotate.test, pair.test",
		"203.0.113.20":    "other.test",
		"203.0.113.30":    "one.shared.test, two.shared.test",
		"203.0.113.40":    "names below wild.test",
		"2001:db8:77::1":  "the machine's way out",
		"2001:db8:77::2":  "the machine",
		"2001:db8:77::10": "allowed.test",
		"2001:db8:77::20": "other.test",
		"2001:db8:77::54": "another resolver",
	}
})

// Who says who has an address in a lab, or "" where it does not know.
func Who(a netip.Addr) string { return who()[a.String()] }
