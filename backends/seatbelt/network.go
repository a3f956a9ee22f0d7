package seatbelt

import (
	"errors"
	"fmt"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// errHost is the kernel's own answer to any other host in a rule.
var errHost = errors.New("host must be * or localhost in network address")

// address spells the filter for one network address. This is the one place that
// knows what the kernel takes for a host: the profile is written with it, and
// what it refuses is what doctor reports. Port 0 is every port.
func address(side, host string, port uint16) (string, error) {
	if host != "*" && host != "localhost" {
		return "", errHost
	}
	p := "*"
	if port != 0 {
		p = fmt.Sprint(port)
	}
	return "(" + side + ` ip "` + host + ":" + p + `")`, nil
}

// resolverSocket is where a Mac's name service answers.
const resolverSocket = "/private/var/run/mDNSResponder"

// opened are the services that programs need to speak to the network. With the
// network off none of them is allowed: they would speak for the box. trustd
// fetches addresses that a certificate names.
var opened = group{"the services behind an open network (the list is Chromium's and openai/codex's)", []need{
	{"(allow network-outbound (literal " + `"` + resolverSocket + `"` + "))", "names: DNS is asked through this socket"},
	{"(allow " + opsLook + ` (literal "/private/var/run"))`, "the directory above the two"},
	{"(allow " + opsRead + ` (literal "/private/var/run/resolv.conf"))`, "go, node, dig: which name servers there are"},
	{`(allow mach-lookup (global-name "com.apple.trustd.agent"))`, "go, curl: TLS certificates are checked by it"},
	{`(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd"))`, "curl, node: proxy settings"},
	{`(allow mach-lookup (global-name "com.apple.SystemConfiguration.DNSConfiguration"))`, "libSystem: name servers"},
	{`(allow mach-lookup (global-name "com.apple.networkd"))`, "libSystem: paths of connections"},
	{`(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))`, "libSystem: news of the network"},
	{`(allow sysctl-read (sysctl-name-prefix "net.routetable."))`, "go, node: the machine's interfaces"},
}}

// network writes the rules of the network mode.
func (w *writer) network() {
	mode := w.p.Effective()
	switch mode.Value {
	case policy.Open:
		w.group = "network open: the network box is gone"
		for _, r := range []struct{ op, side string }{
			{"network-outbound", "remote"}, {"network-inbound", "local"}, {"network-bind", "local"},
		} {
			// Internet addresses only: a rule without a filter would open the unix
			// sockets of docker, ssh-agent and the like (eugene1g/agent-safehouse#99).
			filter, err := address(r.side, "*", 0)
			if err != nil {
				w.finding("network", backends.Blocked, err.Error(), "")
				return
			}
			w.add("(allow "+r.op+" "+filter+")", "network: open", mode.From)
		}
		w.addGroup(opened, mode.From)
		w.finding("network", backends.Degraded,
			"network open: the network box is gone; the command reaches whatever this machine reaches, its local services included",
			"kgate network off")
	case policy.Restricted:
		// A list of hosts needs a host in a rule, which the kernel does not take.
		for _, h := range w.p.Hosts {
			name := h.Name
			if h.Addr.IsValid() {
				name = h.Addr.String()
			}
			if _, err := address("remote", name, h.Port); err != nil {
				w.finding("network", backends.Blocked,
					fmt.Sprintf("network restricted: macOS cannot enforce a list of hosts; the kernel says of %q: %v", name, err),
					"kgate network off, or kgate network open to give the network box up")
				return
			}
		}
		w.finding("network", backends.Blocked, "network restricted: macOS cannot enforce a list of hosts", "kgate network off")
	default:
		w.finding("network", backends.Ready, "network off: the profile allows no network operation and no name service", "")
	}
}
