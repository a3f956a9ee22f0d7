package lab

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestWho holds the names of addresses against the zone that gives them.
func TestWho(t *testing.T) {
	zone := NewZone()
	for text, name := range who() {
		a := netip.MustParseAddr(text)
		if Who(a) != name {
			t.Errorf("%s is written as %s", text, a)
		}
		for _, n := range strings.Split(name, ", ") {
			if !strings.HasSuffix(n, ".test") {
				continue
			}
			if below, ok := strings.CutPrefix(n, "names below "); ok {
				n = "some." + below
			}
			if r, _ := zone.find(n + "."); !slices.Contains(append(r.A, r.AAAA...), a) {
				t.Errorf("%s is said to be %s, which is %v %v", text, n, r.A, r.AAAA)
			}
		}
	}
	if Who(netip.MustParseAddr("192.0.2.1")) != "" {
		t.Error("somebody else has a name")
	}
}
