package lab

import (
	"net/netip"
	"slices"
	"testing"
)

// TestWhoKnowsAll holds that each address of a lab has a name.
func TestWhoKnowsAll(t *testing.T) {
	for _, a := range slices.Concat(hosts, resolvers, []netip.Addr{gateway, gateway6}) {
		if Who(a) == "" {
			t.Errorf("%s has no name", a)
		}
	}
	for _, text := range machineAddrs {
		if Who(netip.MustParsePrefix(text).Addr()) != "the machine" {
			t.Errorf("%s is not the machine", text)
		}
	}
}
