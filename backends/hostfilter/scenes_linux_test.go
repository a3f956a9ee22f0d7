package hostfilter

import (
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

var abZone = []string{
	"allowed.test. 60 A " + webAddr, "other.test. 60 A " + otherAddr, "deep.sub.wild.test. 60 A " + thirdAddr,
	"wild.test. 60 A " + otherAddr, "secret.attacker.test. 60 A " + otherAddr,
	"alias.test. 60 CNAME middle.cdn.test.", "middle.cdn.test. 60 CNAME end.cdn.test.", "end.cdn.test. 60 A " + thirdAddr,
	"allowed.test. 60 AAAA 2001:db8:113::10", "six.test. 60 AAAA 2001:db8:113::20",
	"loop.wild.test. 60 A 127.0.0.1", "meta.wild.test. 60 A 169.254.169.254", "own.wild.test. 60 A " + machineAddr,
	"mixed.wild.test. 60 A " + machineAddr, "mixed.wild.test. 60 A " + webAddr, "slirp.wild.test. 60 A 10.0.2.2",
	"big.test. 60 A " + webAddr,
}

// truncated answers for big.test over TCP alone.
func truncated(q dns.Question, tcp bool) ([]string, int, time.Duration) {
	rrs, code, d := zone(abZone...)(q, tcp)
	if !tcp && plain(q.Name) == "big.test" {
		return []string{"TRUNCATE"}, code, d
	}
	return rrs, code, d
}

// turning gives turn.test another address at each lookup.
func turning() finder {
	var n atomic.Int32
	return func(dns.Question, bool) ([]string, int, time.Duration) {
		a := []string{webAddr, otherAddr, thirdAddr}[min(2, n.Add(1)-1)]
		return []string{"turn.test. 1 A " + a}, 0, 0
	}
}

// quick are times that a test can wait for.
var quick = times{Grace: 300 * time.Millisecond, Sweep: 100 * time.Millisecond, Resolve: 2 * time.Second, Attach: 10 * time.Second}

const (
	reset      = "^error: connection refused$"
	prohibited = "^error: (operation not permitted|no route to host|permission denied)$"
	noHost     = "^error: no such host"
)

func scenes() []scene {
	return []scene{
		{
			name: "a name", hosts: []string{"allowed.test"}, bothWays: true,
			steps: []step{
				{"tcp allowed.test:80", "^" + webAddr + "$"}, {"tcp " + webAddr + ":443", "^" + webAddr + "$"}, {"udp " + webAddr + ":9000 hi", "^hi$"},
				{"tcp " + otherAddr + ":80", reset}, {"tcp " + resolverAddr + ":80", reset}, {"lookup other.test", noHost}, {"udp " + otherAddr + ":9000 leak", prohibited},
				{"tcp " + machineAddr + ":7777", reset}, {"tcp 10.0.2.2:7777", reset}, {"tcp 10.0.2.3:80", reset},
				{"lookup secret.attacker.test", noHost}, {"tcp6 [2001:db8:113::10]:80", "^error: (network is unreachable|connection refused|permission denied)$"},
			},
			refused: []string{`refused other\.test: not on the host list`, `refused secret\.attacker\.test`},
			unasked: []string{"other.test", "attacker"}, unsent: []string{"leak"},
		},
		{
			name: "a port", hosts: []string{"allowed.test:443", "203.0.113.20:80"},
			steps: []step{
				{"tcp allowed.test:443", "^" + webAddr + "$"}, {"tcp allowed.test:80", reset}, {"udp " + webAddr + ":9000 leak", prohibited},
				{"tcp " + otherAddr + ":80", "^" + otherAddr + "$"}, {"tcp " + otherAddr + ":443", reset}, {"udp " + otherAddr + ":80 hi", "^hi$"},
			},
			unsent: []string{"leak"},
		},
		{
			name: "port 53 only by name", hosts: []string{webAddr, otherAddr + ":53"},
			steps: []step{
				{"udp " + webAddr + ":9000 hi", "^hi$"}, {"udp " + webAddr + ":53 leak", prohibited}, {"tcp " + webAddr + ":53", reset},
				{"udp " + otherAddr + ":53 hi", "^hi$"}, {"udp " + otherAddr + ":9000 leak", prohibited},
			},
			unsent: []string{"leak"},
		},
		{
			name: "a foreign resolver", hosts: []string{"allowed.test"},
			steps: []step{
				{"dns 10.0.2.3:53 udp allowed.test A", "^NOERROR allowed.test. 60 IN A " + webAddr + "$"}, {"dns 10.0.2.3:53 tcp allowed.test A", "^NOERROR .*" + webAddr + "$"},
				{"dns " + resolverAddr + ":53 udp direct.test A", prohibited}, {"dns " + resolverAddr + ":53 tcp direct.test A", reset},
				{"dns 10.0.2.2:53 udp direct.test A", prohibited},
			},
			unasked: []string{"direct.test"},
		},
		{
			name: "query types", hosts: []string{"allowed.test", "*.wild.test"},
			steps: []step{
				{"dns 10.0.2.3:53 udp AlLoWeD.tEsT A", "^NOERROR AlLoWeD.tEsT. 60 IN A " + webAddr + "$"},
				{"dns 10.0.2.3:53 udp allowed.test AAAA", "^NOERROR$"}, {"dns 10.0.2.3:53 udp allowed.test HTTPS", "^NOERROR$"}, {"dns 10.0.2.3:53 udp allowed.test TXT", "^NOERROR$"},
				{"dns 10.0.2.3:53 udp allowed.test ANY", "^REFUSED$"}, {"dns 10.0.2.3:53 tcp allowed.test AXFR", "^REFUSED$"}, {"dns 10.0.2.3:53 udp 10.113.0.203.in-addr.arpa PTR", "^NXDOMAIN$"},
				{"dns 10.0.2.3:53 udp none.wild.test A", "^NXDOMAIN$"}, {"dns 10.0.2.3:53 udp . NS", "^NXDOMAIN$"},
			},
			unasked: []string{"AAAA", "HTTPS", "TXT", "ANY", "AXFR", "arpa", "NS"},
		},
		{
			name: "names below a name", hosts: []string{"*.wild.test"},
			steps: []step{
				{"tcp " + thirdAddr + ":80", reset}, {"tcp deep.sub.wild.test:80", "^" + thirdAddr + "$"}, {"tcp " + thirdAddr + ":443", "^" + thirdAddr + "$"},
				{"lookup wild.test", noHost}, {"lookup notwild.test", noHost}, {`dns 10.0.2.3:53 udp x\.wild.test A`, "^NXDOMAIN$"}, {"lookup wild.test.attacker.test", noHost},
				{"lookup loop.wild.test", "^error: "}, {"lookup meta.wild.test", "^error: "}, {"lookup own.wild.test", "^error: "}, {"lookup slirp.wild.test", "^error: "},
				{"lookup mixed.wild.test", "^" + webAddr + "$"}, {"tcp " + machineAddr + ":7777", reset},
			},
			refused: []string{`loop\.wild\.test: the answer 127\.0\.0\.1 is a loopback address`, `meta\.wild\.test: the answer 169\.254\.169\.254 is a link-local`,
				`own\.wild\.test: the answer ` + machineAddr + ` is an address of this machine`, `mixed\.wild\.test: the answer ` + machineAddr, `slirp\.wild\.test: .*box's own`},
			unasked: []string{"attacker", "notwild", `x\.`},
		},
		{
			name: "the machine's own address, listed", hosts: []string{machineAddr + ":7777", "*.wild.test"},
			steps: []step{
				{"tcp " + machineAddr + ":7777", "^machine$"}, {"tcp " + machineAddr + ":7778", reset},
				{"lookup own.wild.test", "^" + machineAddr + "$"}, {"tcp " + machineAddr + ":7778", reset},
			},
		},
		{
			name: "an alias", hosts: []string{"alias.test"},
			steps: []step{
				{"tcp alias.test:80", "^" + thirdAddr + "$"}, {"dns 10.0.2.3:53 udp alias.test A", "^NOERROR alias.test. 60 IN CNAME middle.cdn.test. middle.cdn.test. 60 IN CNAME end.cdn.test. end.cdn.test. 60 IN A " + thirdAddr + "$"},
				{"lookup end.cdn.test", noHost},
			},
		},
		{
			// systemd-resolved listens there on many machines.
			name: "a resolver on the machine's own loopback", hosts: []string{"allowed.test"}, resolv: "nameserver 127.0.0.1\n",
			steps:   []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"tcp 127.0.0.1:7777", reset}, {"tcp 10.0.2.2:7777", reset}, {"lookup secret.attacker.test", noHost}},
			unasked: []string{"attacker"},
		},
		{
			name: "a resolver that stops at the alias", hosts: []string{"alias.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, d := zone(abZone...)(q, tcp)
				return rrs[:min(1, len(rrs))], code, d
			},
			steps: []step{{"tcp alias.test:80", "^" + thirdAddr + "$"}},
		},
		{
			name: "an answer that needs tcp", hosts: []string{"big.test"}, answer: truncated,
			steps: []step{{"tcp big.test:80", "^" + webAddr + "$"}},
		},
		{
			name: "an answer about something else", hosts: []string{"allowed.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, d := zone(abZone...)(q, tcp)
				return append(rrs, "other.test. 60 A "+otherAddr, "allowed.test. 60 TXT smuggled"), code, d
			},
			steps: []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"tcp " + otherAddr + ":80", reset}, {"dns 10.0.2.3:53 udp allowed.test A", "^NOERROR allowed.test. 60 IN A " + webAddr + "$"}},
		},
		{
			name: "a stranger's datagram", hosts: []string{"203.0.113.10"},
			steps:  []step{{"udp " + webAddr + ":9000 hi", "^hi$"}, {"stranger " + webAddr + ":9000", `^(\(after.*)?$`}},
			unsent: []string{"secret"},
		},
		{
			name: "IPv6", hosts: []string{"allowed.test"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"tcp6 [2001:db8:113::10]:80", "^2001:db8:113::10$"}, {"tcp6 [2001:db8:113::20]:80", reset}, {"dns 10.0.2.3:53 udp allowed.test AAAA", "^NOERROR .*2001:db8:113::10$"},
				{"udp [2001:db8:113::20]:9000 leak", prohibited},
			},
			unsent: []string{"leak"},
		},
		{
			name: "IPv6 ports", hosts: []string{"[2001:db8:113::10]:80", "2001:db8:113::20"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"tcp6 [2001:db8:113::10]:80", "^2001:db8:113::10$"}, {"tcp6 [2001:db8:113::10]:443", reset}, {"udp [2001:db8:113::20]:9000 hi", "^hi$"},
				{"udp [2001:db8:113::20]:53 leak", prohibited}, {"tcp6 [2001:db8:113::20]:53", reset},
			},
			unsent: []string{"leak"},
		},
		{
			name: "IPv6 lookups", hosts: []string{"allowed.test"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"dns [fd00::3]:53 udp allowed.test AAAA", "^NOERROR .*2001:db8:113::10$"}, {"dns [fd00::3]:53 tcp allowed.test A", "^NOERROR .*" + webAddr + "$"},
				{"dns [fd00::3]:53 udp secret.attacker.test A", "^NXDOMAIN$"}, {"dns [" + resolverAddr6 + "]:53 udp direct.test A", prohibited},
			},
			unasked: []string{"attacker", "direct"},
		},
		{
			name: "a resolver with IPv6 alone", hosts: []string{"big.test", "allowed.test"}, orders: launchOrders{Config: Config{IPv6: true}},
			resolv: "nameserver " + resolverAddr6 + "\n", answer: truncated,
			steps: []step{{"tcp big.test:80", "^" + webAddr + "$"}, {"tcp allowed.test:80", "^" + webAddr + "$"}},
		},
		{
			name: "a stranger's datagram over IPv6", hosts: []string{"2001:db8:113::10"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps:  []step{{"udp [2001:db8:113::10]:9000 hi", "^hi$"}, {"stranger [2001:db8:113::10]:9000", `^(\(after.*)?$`}},
			unsent: []string{"secret"},
		},
		{
			name: "a stranger who looks known", hosts: []string{webAddr},
			steps:  []step{{"udp " + webAddr + ":9000 hi", "^hi$"}, {"familiar " + webAddr + ":9000 " + otherAddr + ":9001", "^error: "}},
			unsent: []string{"secret"},
		},
		{
			name: "in a stranger's name", hosts: []string{"2001:db8:113::10"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"udp [2001:db8:113::10]:9000 hi", "^hi$"}, {"forged [fd00::100]:9000 [2001:db8:113::20]:9000", prohibited},
				{"forged [2001:db8:113::10]:9000 [2001:db8:113::20]:9000", prohibited},
			},
			unsent: []string{"secret"},
		},
		{
			name: "the gate's port", hosts: []string{"allowed.test"},
			answer: func(q dns.Question, tcp bool) ([]string, int, time.Duration) {
				rrs, code, _ := zone(abZone...)(q, tcp)
				return rrs, code, 200 * time.Millisecond
			},
			steps:   []step{{"port-of allowed.test direct.test", "^error: permission denied$"}, {"sleep 100ms", "slept"}},
			unasked: []string{"direct.test"},
		},
		{
			name: "bound to the device", hosts: []string{"allowed.test"}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{
				{"bound 127.0.0.1:53 direct.test", "^error: "}, {"bound 10.0.2.3:53 direct.test", "^error: "},
				{"bound [::1]:53 direct.test", "^error: "}, {"bound [fd00::3]:53 direct.test", "^error: "},
				{"dns 10.0.2.3:53 udp allowed.test A", "^NOERROR "}, {"dns [fd00::3]:53 udp allowed.test A", "^NOERROR "},
			},
			unasked: []string{"direct.test"},
		},
		{
			name: "the kernel's own packets", hosts: []string{webAddr},
			steps: []step{
				{"join udp4 239.1.2.3", ""}, {"join udp6 ff05::1234", ""}, {"sleep 1s", "slept"}, {"sent", "^0$"},
				{"udp " + webAddr + ":9000 hi", "^hi$"}, {"sent", "^[1-9]"},
			},
		},
		{
			name: "a connection lives on", hosts: []string{"turn.test"}, orders: launchOrders{Waits: quick},
			answer: zone("turn.test. 1 A " + webAddr),
			steps: []step{
				{"hold " + webAddr + ":80", "^" + webAddr + "$"}, {"sleep 2s", "slept"}, {"tcp " + webAddr + ":80", reset}, {"held", "^ping$"},
				{"lookup turn.test", "^" + webAddr + "$"}, {"tcp " + webAddr + ":80", "^" + webAddr + "$"},
			},
		},
		{
			name: "a connection lives on over IPv6", hosts: []string{"turn.test"}, orders: launchOrders{Config: Config{IPv6: true}, Waits: quick},
			answer: zone("turn.test. 1 A "+webAddr, "turn.test. 1 AAAA 2001:db8:113::10"),
			steps: []step{
				{"hold [2001:db8:113::10]:80", "^2001:db8:113::10$"}, {"sleep 2s", "slept"}, {"tcp [2001:db8:113::10]:80", reset}, {"held", "^ping$"},
			},
		},
		{
			name: "rotation", hosts: []string{"turn.test:80"}, orders: launchOrders{Waits: quick}, answer: turning(),
			steps: []step{
				{"hold " + webAddr + ":80", "^" + webAddr + "$"}, {"tcp " + otherAddr + ":80", reset},
				{"tcp turn.test:80", "^" + otherAddr + "$"}, {"tcp " + otherAddr + ":443", reset}, {"sleep 2s", "slept"},
				{"tcp turn.test:80", "^" + thirdAddr + "$"}, {"tcp " + webAddr + ":80", reset}, {"tcp " + otherAddr + ":80", reset}, {"held", "^ping$"},
			},
		},
		{
			name: "refused with words", hosts: []string{webAddr},
			steps: []step{{"udp " + webAddr + ":9000 hi", "^hi$"}, {"udpread " + otherAddr + ":9000", "^error: no route to host$"}},
		},
		{
			name: "refused with words over IPv6", hosts: []string{webAddr}, orders: launchOrders{Config: Config{IPv6: true}},
			steps: []step{{"udp " + webAddr + ":9000 hi", "^hi$"}, {"udpread [2001:db8:113::20]:9000", "^error: permission denied$"}},
		},
		{
			name: "a name in /etc/hosts", hosts: []string{"allowed.test"},
			steps: []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"sh getent hosts localhost", "localhost"}, {"tcp localhost:80", "^error: connection refused$"}},
		},
		{
			name: "the command's own loopback", hosts: []string{"allowed.test"},
			steps: []step{{"tcp allowed.test:80", "^" + webAddr + "$"}, {"loopback 127.0.0.1:8080", "^hello$"}, {"loopback [::1]:8080", "^hello$"}},
		},
		{
			name: "nothing to undo it with", hosts: []string{"allowed.test"}, bothWays: true,
			steps: []step{
				{"sh grep ^Cap /proc/self/status | grep -c 0000000000000000", "^5$"},
				{"sh PATH=/usr/sbin:$PATH; iptables -P OUTPUT ACCEPT; iptables -F; ip link set tap0 down; true", "(?i)permission denied.*permission denied.*not permitted"},
				{"sh cat /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv4/ip_forward", "error"},
				{"tcp " + otherAddr + ":80", reset}, {"tcp allowed.test:80", "^" + webAddr + "$"},
			},
		},
	}
}
