package main

import (
	"net/netip"
	"strings"

	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// mutant is a part to be left out, by its name in the plan or in the filter,
// with a star for any text; and the scenarios that need it, the likeliest first. A
// few parts are seen by a test of Go alone: of this package's and bubblewrap's.
type mutant struct {
	name      string
	scenarios []string
	edit      *edit // nil: the build leaves the part out by its name
}

func (m mutant) covers(name string) bool {
	before, after, star := strings.Cut(m.name, "*")
	if !star {
		return m.name == name
	}
	return len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// vital are the parts without which there is no command line to run.
var vital = map[string]bool{"end": true, "command": true}

// table is every mutant: the box's, then the filter's.
func table() []mutant {
	var all []mutant
	for line := range strings.Lines(box) {
		if f := strings.Fields(line); len(f) > 0 {
			all = append(all, mutant{f[0], f[1:], nil})
		}
	}
	for _, name := range waysOut {
		all = append(all, mutant{"absent:*/" + name, []string{"box-ways-out-each"}, nil})
	}
	// The rules that this kernel shows the want of. The others refuse what a
	// command without capabilities is refused here anyway, and elsewhere not: the
	// mutants of all of them are in the tests of package assemble
	// (TestEachRuleIsNeeded), which evaluates the filter.
	for _, name := range []string{"families", "netlink", "io-uring", "tiocsti", "tioclinux", "keys", "ptrace", "seize", "others", "new-user", "clone3", "setns"} {
		all = append(all, mutant{"seccomp:" + name, []string{"box-calls"}, nil})
	}
	host := policy.Host{Addr: netip.MustParseAddr("203.0.113.20"), Port: 80}
	for _, r := range hostfilter.Rules(hostfilter.Config{IPv6: true, Hosts: []policy.Host{host}}) {
		s := filter[r.Name]
		switch {
		case s != "":
		case r.Family == 6:
			s = "net-ipv6 ipv6-dropped"
		default:
			s = "host-allowed"
		}
		name := r.Name
		if strings.HasPrefix(name, "listed:") {
			name = "listed:*" + name[strings.LastIndex(name, "/"):]
		}
		all = append(all, mutant{name, strings.Fields(s), nil})
	}
	return append(all, mutant{"slirp-loopback", []string{"host-loopback-closed"}, nil}, mutant{"slirp-ipv6", []string{"net-ipv6"}, nil})
}

// box is bubblewrap's part of the table.
const box = `
unshare-user          box-privileges
unshare-ipc           box-namespaces
unshare-pid           box-privileges
unshare-uts           box-namespaces
unshare-cgroup        box-namespaces
unshare-net           network-off-silent
die-with-parent       run-signals
cap-drop              box-privileges
ro:/usr               run-status
ro:/etc               box-files run-status tools-work
ro:/opt               box-namespaces
ro:/proc/sys          box-privileges
ro:/proc/pressure     box-namespaces
ro:/proc/acpi         box-namespaces
ro:/proc/fs           box-namespaces
ro:/run/*             TestTerminal/streams_and_status
link:/bin             box-namespaces
link:/sbin            box-namespaces
link:/lib             run-status box-files
link:/lib64           run-status
link:/var/run         box-namespaces
proc                  box-privileges
dev                   run-streams tools-work
fresh:/tmp            box-namespaces
fresh:/var/tmp        box-files
fresh:/run            box-namespaces
fresh:/run/kgate      shell-nested
env:*                 TestOuterEnv
fresh:*/home          home-write-isolated box-files
fresh:*               home-write-isolated box-files
freeze:*              box-ways-out escape-project
pin:*                 box-ways-out
absent:*/.git/commondir box-ways-out-each
absent:*/refs         escape-project
absent:*/.git/config  box-ways-out-each
absent:*/.git/hooks   box-ways-out-each
project:*             run-status box-files
allow:*               box-files
mask:/proc/*          escape-kernel
mask:*                box-files
mask-socket:*         box-sockets escape-sockets
deny-read:*           box-files
mask-exec:*           exec-denied
resolv.conf           host-allowed
seccomp               box-calls
status-fd             run-status
sync-fd               TestBoxHoldsThePipe
block-fd              host-allowed net-killed
look                  TestLook
keep                  escape-time
look-missing          TestLookFindsWhatIsMissing
sealed                TestSealed
chdir                 run-status box-files
`

// waysOut are names in the project that cannot be made, one mutant each.
var waysOut = []string{
	".aider.conf.yml", ".claude", ".codex", ".cursor", ".devcontainer", ".devcontainer.json", ".envrc", ".exrc", ".gemini", ".git", ".idea",
	".kgate.yaml", ".mcp.json", ".nvim.lua", ".nvimrc", ".opencode", ".qwen", ".vscode", "opencode.json", "opencode.jsonc",
}

// filter names, for each rule, the scenarios that fail without it.
var filter = map[string]string{
	"v4-gate-udp":                "dns-gated host-allowed",
	"v4-gate-tcp":                "foreign-resolver-dropped dns-gated host-allowed",
	"v4-policy-output":           "raw-ip-dropped udp-dropped filter-undo-refused net-killed",
	"v4-policy-input":            "udp-dropped raw-ip-dropped",
	"v4-loopback-stays":          "escape-network",
	"v6-loopback-stays":          "escape-network",
	"v4-established":             "net-expiry net-follows host-allowed",
	"v6-established":             "net-expiry net-ipv6",
	"v4-asked-udp":               "dns-gated host-allowed",
	"v4-asked-tcp":               "host-allowed dns-gated foreign-resolver-dropped",
	"v4-resolver-tcp":            "host-allowed",
	"v4-to-port":                 "listed-port-only",
	"v4-chain-port":              "listed-port-only",
	"v4-port53-udp":              "foreign-resolver-dropped dns-gated",
	"v4-port53-tcp":              "foreign-resolver-dropped dns-gated",
	"v4-refuse-tcp":              "raw-ip-dropped other-host-refused",
	"v4-refuse-udp":              "udp-dropped",
	"listed:203.0.113.20:80/tcp": "listed-port-only",
	"listed:203.0.113.20:80/udp": "listed-port-only",
}
