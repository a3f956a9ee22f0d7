package hostfilter

import (
	"strings"
	"testing"
)

// killers names, for each rule and argument, the scene that fails without it.
var killers = map[string]string{
	"v4-gate-udp":                "query types",
	"v4-gate-tcp":                "a foreign resolver",
	"v4-policy-output":           "the kernel's own packets",
	"v4-policy-input":            "a stranger's datagram",
	"v4-input-loopback":          "the command's own loopback",
	"v4-chain-port":              "a port",
	"v4-chain-host":              "a name",
	"v4-input-established":       "a name",
	"v4-established":             "a connection lives on",
	"v4-loopback":                "the command's own loopback",
	"v4-loopback-own":            "a name",
	"v4-loopback-stays":          "bound to the device",
	"v4-asked-udp":               "query types",
	"v4-asked-tcp":               "a foreign resolver",
	"v4-resolver-udp":            "a name",
	"v4-resolver-tcp":            "an answer that needs tcp",
	"v4-to-port":                 "a port",
	"v4-port53-udp":              "port 53 only by name",
	"v4-port53-tcp":              "port 53 only by name",
	"v4-to-host":                 "a name",
	"v4-refuse-tcp":              "a name",
	"v4-refuse-udp":              "refused with words",
	"v6-policy-output":           "the kernel's own packets",
	"v6-policy-input":            "a stranger's datagram over IPv6",
	"v6-input-loopback":          "the command's own loopback",
	"v6-loopback":                "the command's own loopback",
	"v6-loopback-own":            "IPv6",
	"v6-loopback-stays":          "bound to the device",
	"v6-refuse-tcp":              "IPv6",
	"v6-refuse-udp":              "refused with words over IPv6",
	"v6-gate-udp":                "IPv6 lookups",
	"v6-gate-tcp":                "IPv6 lookups",
	"v6-chain-port":              "IPv6 ports",
	"v6-chain-host":              "IPv6",
	"v6-input-established":       "IPv6",
	"v6-established":             "a connection lives on over IPv6",
	"v6-asked-udp":               "IPv6 lookups",
	"v6-asked-tcp":               "IPv6 lookups",
	"v6-resolver-udp":            "a resolver with IPv6 alone",
	"v6-resolver-tcp":            "a resolver with IPv6 alone",
	"v6-to-port":                 "IPv6 ports",
	"v6-port53-udp":              "IPv6 ports",
	"v6-port53-tcp":              "IPv6 ports",
	"v6-to-host":                 "IPv6",
	"v6-ask-neighbour":           "IPv6",
	"v6-hear-neighbour":          "IPv6",
	"listed:203.0.113.20:80/tcp": "a port",
	"listed:203.0.113.20:80/udp": "a port",
}

func TestEachRuleIsNeeded(t *testing.T) {
	needLab(t)
	all := Rules(Config{IPv6: true, Hosts: hosts(t, "203.0.113.20:80")})
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			for _, s := range scenes() {
				if s.name != killers[r.Name] {
					continue
				}
				s.orders.Omit = []string{r.Name}
				problems := s.play(t, false)
				if len(problems) == 0 {
					t.Fatalf("scene %q passes without %s", s.name, r.Spec)
				}
				first, _, _ := strings.Cut(problems[0], "\n")
				t.Logf("killed by %q: %s", s.name, first)
				return
			}
			t.Fatalf("no scene %q for %s", killers[r.Name], r.Spec)
		})
	}
}
