package hostfilter

import (
	"net/netip"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// GateName is the first argument by which kgate's main recognises that it is to
// be the gate. Called by hand it does nothing: the gate takes its orders from
// two pipes that only Attach makes, and refuses to work in the network
// namespace of its parent.
const GateName = "hostfilter-gate"

// The gate's descriptors.
const (
	fdOrders = 3 + iota // from Attach: orders, then "tap", then end of file
	fdEvents            // to Attach: events
	fdUser              // the user namespace to enter
	fdNet               // the network namespace to enter
	fdSelf              // kgate's own executable
)

// orders are what the gate is told when it starts.
type orders struct {
	Hosts  []policy.Host
	IPv6   bool
	MTU    int
	Tools  Tools
	Server netip.Addr   // where the resolver is reached; zero: nowhere
	Own    []netip.Addr // the host's own addresses
	Net    uint64       // the inode of the network namespace to be filtered
	Times  times
	Omit   []string `json:",omitempty"` // for the mutants' build alone
}

// event is one line from the gate.
type event struct {
	Kind string // one of the below
	Name string `json:",omitempty"`
	Text string `json:",omitempty"`
	Row  string `json:",omitempty"` // of a fault
	Mend string `json:",omitempty"`
}

// The kinds of event.
const (
	eventRules   = "rules"   // nothing can leave the namespace any more
	eventReady   = "ready"   // the filter is complete
	eventFault   = "fault"   // the launch must not go on; Text says why
	eventRefused = "refused" // Name was refused; Text says why
)
