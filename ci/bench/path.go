//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

func init() {
	suites["path"] = func(b *bench) (result, error) { return b.inLab(order{Path: true}) }
	stages = append(stages, connectStage)
}

// stageConnect is the argument that makes this program, in a box, a client that
// opens connections one after another.
const stageConnect = "bench-connect"

// connections is how many it opens.
const connections = 200

// connectStage prints how many microseconds each connection took, from the
// lookup, if the host is a name, to the first line that the server says.
func connectStage(argv []string) (int, bool) {
	if len(argv) != 3 || argv[1] != stageConnect {
		return 0, false
	}
	for range connections {
		start := time.Now()
		c, err := net.Dial("tcp", argv[2])
		if err == nil {
			_, err = bufio.NewReader(c).ReadString('\n')
			c.Close()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1, true
		}
		fmt.Println(time.Since(start).Microseconds())
	}
	return 0, true
}

// mtus are the sizes of packets that are compared.
var mtus = []int{1500, 9000, 16384, 32768, 65520}

// path measures the way of the data through the filter and without one: how fast
// much goes, by the size of packets, and how long a new connection takes, by
// address, by name and behind many listed ports.
func (o order) path() (result, error) {
	const pieces = transfer / 4
	get := []string{"./probe", lab.StageProbe, "-t", "60s", "http", fmt.Sprintf("http://203.0.113.10:8080/bytes/%d", pieces)}
	for to, from := range map[string]string{
		filepath.Join(o.BareDir, "probe"):   filepath.Join(o.Dir, "probe"),
		filepath.Join(o.BareDir, "connect"): os.Args[0],
		filepath.Join(o.Dir, "connect"):     os.Args[0],
	} {
		if err := exec.Command("cp", from, to).Run(); err != nil {
			return result{}, fmt.Errorf("cp %s %s: %w", from, to, err)
		}
	}
	b := &bench{rounds: max(5, o.Rounds/6), home: o.Home}
	// Now and then bwrap fails where slirp4netns configures its network while it is
	// still setting up the loopback.
	again := []string{"sh", "-c", `"$@" || "$@"`, "sh"}
	bare := func(mtu int, argv ...string) []string {
		return slices.Concat(again, []string{o.Bare, "--mtu=" + strconv.Itoa(mtu)}, o.Boxes, []string{"--"}, argv)
	}
	through := func(argv ...string) []string { return slices.Concat([]string{o.Kgate, "run", "--"}, argv) }

	var plans []plan
	for _, mtu := range mtus {
		home := filepath.Join(o.Home, fmt.Sprint("mtu-", mtu))
		if err := writePolicy(home, fmt.Sprintf("mtu: %d\nallow:\n  hosts: [203.0.113.10]\n", mtu)); err != nil {
			return result{}, err
		}
		plans = append(plans,
			plan{name: fmt.Sprintf("64 MiB, MTU %d, kgate", mtu), dir: o.Dir, home: home, argv: through(get...)},
			plan{name: fmt.Sprintf("64 MiB, MTU %d, no filter", mtu), dir: o.BareDir, argv: bare(mtu, get...)})
	}
	sides, err := b.alternate(plans...)
	if err != nil {
		return result{}, err
	}
	speed := [2]curve{
		{Name: "speed by MTU through the filter", Of: "MTU, bytes", Unit: "MiB/s, the launch included"},
		{Name: "speed by MTU without a filter", Of: "MTU, bytes", Unit: "MiB/s, the launch included"},
	}
	for i, s := range sides {
		rate := func(ms float64) float64 { return float64(pieces) / (1 << 20) / ms * 1000 }
		speed[i%2].add(mtus[i/2], side{Rounds: s.Rounds, Median: rate(s.Median), Q1: rate(s.Q3), Q3: rate(s.Q1)})
	}

	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`"203.0.113.20:%d"`, i+1)
	}
	var connects []side
	for _, c := range []struct{ name, policy, to string }{
		{"no filter", "", "203.0.113.10:9999"},
		{"kgate, listed address", "allow:\n  hosts: [203.0.113.10]\n", "203.0.113.10:9999"},
		{"kgate, listed after 1,000 ports", "allow:\n  hosts: [" + strings.Join(many, ", ") + ", 203.0.113.10]\n", "203.0.113.10:9999"},
		{"kgate, by a listed name", "allow:\n  hosts: [allowed.test]\n", "allowed.test:9999"},
	} {
		dir, argv := o.BareDir, bare(65520, "./connect", stageConnect, c.to)
		where := o.Home
		if c.policy != "" {
			where = filepath.Join(o.Home, "connect")
			if err := writePolicy(where, c.policy); err != nil {
				return result{}, err
			}
			dir, argv = o.Dir, through("./connect", stageConnect, c.to)
		}
		var all []float64
		for range b.rounds {
			cmd := b.command(dir, argv...)
			cmd.Env[0] = "HOME=" + where
			out, err := cmd.Output()
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", c.name, err)
			}
			for _, f := range bytes.Fields(out) {
				us, err := strconv.ParseFloat(string(f), 64)
				if err != nil {
					return result{}, fmt.Errorf("%s: %w", c.name, err)
				}
				all = append(all, us/1000)
			}
		}
		connects = append(connects, summary("a new connection, "+c.name, all))
	}
	perSecond := func(s side) float64 { return 1000 / s.Median }
	last := len(mtus) - 1
	return result{Suite: "path", Sides: slices.Concat(sides, connects), Curves: speed[:], Notes: []string{
		fmt.Sprintf("new connections one after another: %.0f a second without a filter, %.0f through it, %.0f after 1,000 listed ports, %.0f by name (each looked up at the gate)",
			perSecond(connects[0]), perSecond(connects[1]), perSecond(connects[2]), perSecond(connects[3])),
		fmt.Sprintf("the default MTU of 65520 to one of 1500: %.1f times as fast, the launch included", speed[0].Median[last]/speed[0].Median[0]),
		"not measured: slirp4netns' other options; pasta",
	}}, nil
}
