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
	stages = append(stages, connectStage, turnsStage)
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

// stageTurns is the argument that makes this program a client that sends a line and
// waits for it to come back, over and over on one connection.
const stageTurns = "bench-turns"

// turns is how often it does.
const turns = 500

// turnsStage prints how many microseconds each turn took.
func turnsStage(argv []string) (int, bool) {
	if len(argv) != 3 || argv[1] != stageTurns {
		return 0, false
	}
	c, err := net.Dial("tcp", argv[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1, true
	}
	defer c.Close()
	back := bufio.NewReader(c)
	for range turns {
		start := time.Now()
		_, err := c.Write([]byte("x\n"))
		if err == nil {
			_, err = back.ReadString('\n')
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			return 1, true
		}
		fmt.Println(time.Since(start).Microseconds())
	}
	return 0, true
}

// slirpOptions are those of slirp4netns' options that could change how fast it is or
// what it may do ("slirp4netns --help", 1.2.0); kgate gives none of them, but for
// --enable-ipv6 where the policy says so. The others set addresses and descriptors.
var slirpOptions = []string{"--enable-ipv6", "--enable-seccomp", "--enable-sandbox"}

// widest is the size of packets that is kgate's default.
const widest = 65520

// mtus are the sizes of packets that are compared.
var mtus = []int{1500, 9000, 16384, 32768, widest}

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
	through := func(argv ...string) []string { return slices.Concat([]string{o.Kgate, "run", "--"}, argv) }

	var plans []plan
	for _, mtu := range mtus {
		home := filepath.Join(o.Home, fmt.Sprint("mtu-", mtu))
		if err := writePolicy(home, fmt.Sprintf("mtu: %d\nallow:\n  hosts: [203.0.113.10]\n", mtu)); err != nil {
			return result{}, err
		}
		plans = append(plans,
			plan{name: fmt.Sprintf("64 MiB, MTU %d, kgate", mtu), dir: o.Dir, home: home, argv: through(get...)},
			plan{name: fmt.Sprintf("64 MiB, MTU %d, no filter", mtu), dir: o.BareDir, argv: o.unfiltered(mtu, nil, get...)})
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
	const (
		connecting, turning = "a new connection, ", "there and back on one connection, "
		one                 = "allow:\n  hosts: [203.0.113.10]\n"
		server, echo        = "203.0.113.10:9999", "203.0.113.10:7"
	)
	after := "allow:\n  hosts: [" + strings.Join(many, ", ") + ", 203.0.113.10]\n"
	var connects []side
	for _, c := range []struct{ name, policy, stage, to string }{
		{connecting + "no filter", "", stageConnect, server},
		{connecting + "kgate, listed address", one, stageConnect, server},
		{connecting + "kgate, listed after 1,000 ports", after, stageConnect, server},
		{connecting + "kgate, by a listed name", "allow:\n  hosts: [allowed.test]\n", stageConnect, "allowed.test:9999"},
		{turning + "no filter", "", stageTurns, echo},
		{turning + "kgate", one, stageTurns, echo},
		{turning + "kgate, listed after 1,000 ports", after, stageTurns, echo},
	} {
		dir, argv := o.BareDir, o.unfiltered(widest, nil, "./connect", c.stage, c.to)
		where := o.Home
		if c.policy != "" {
			where = filepath.Join(o.Home, "connect")
			if err := writePolicy(where, c.policy); err != nil {
				return result{}, err
			}
			dir, argv = o.Dir, through("./connect", c.stage, c.to)
		}
		var all []float64
		for range b.rounds {
			more, err := b.told(where, dir, argv)
			if err != nil {
				return result{}, fmt.Errorf("%s: %w", c.name, err)
			}
			all = append(all, more...)
		}
		connects = append(connects, summary(c.name, all))
	}
	options, said, err := o.options(b, get, pieces)
	if err != nil {
		return result{}, err
	}
	perSecond := func(s side) float64 { return 1000 / s.Median }
	last := len(mtus) - 1
	return result{Suite: "path", Sides: slices.Concat(sides, connects, options), Curves: speed[:], Notes: append([]string{
		fmt.Sprintf("new connections one after another: %.0f a second without a filter, %.0f through it, %.0f after 1,000 listed ports, %.0f by name (each looked up at the gate)",
			perSecond(connects[0]), perSecond(connects[1]), perSecond(connects[2]), perSecond(connects[3])),
		fmt.Sprintf("the default MTU of 65520 to one of 1500: %.1f times as fast, the launch included", speed[0].Median[last]/speed[0].Median[0]),
		fmt.Sprintf("there and back on one connection: %.3f ms without a filter, %.3f through it, %.3f after 1,000 listed ports: packets of a connection that stands meet one rule, the first",
			connects[4].Median, connects[5].Median, connects[6].Median),
		"not measured: pasta",
	}, said...)}, nil
}

// unfiltered is a command in a box with slirp4netns, and options of bare's, without a
// filter.
func (o order) unfiltered(mtu int, options []string, argv ...string) []string {
	// Now and then bwrap fails where slirp4netns configures its network while it is
	// still setting up the loopback.
	again := []string{"sh", "-c", `"$@" || "$@" || "$@"`, "sh"}
	return slices.Concat(again, []string{o.Bare, "--mtu=" + strconv.Itoa(mtu)}, options, o.Boxes, []string{"--"}, argv)
}

// told runs a command that prints microseconds, and returns them in milliseconds.
func (b *bench) told(home, dir string, argv []string) ([]float64, error) {
	cmd := b.command(dir, argv...)
	cmd.Env[0] = "HOME=" + home
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []float64
	for _, f := range bytes.Fields(out) {
		us, err := strconv.ParseFloat(string(f), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, us/1000)
	}
	return all, nil
}

// options compares slirp4netns with and without each of its options, without a
// filter, all in turn: a download, new connections, and lines there and back.
func (o order) options(b *bench, get []string, size int) ([]side, []string, error) {
	all := append([]string{""}, slirpOptions...)
	box := func(option string, argv ...string) []string {
		var options []string
		if option != "" {
			options = []string{"--slirp=" + option}
		}
		return o.unfiltered(widest, options, argv...)
	}
	var works, said []string
	for _, option := range all {
		if out, err := b.command(o.BareDir, box(option, "true")...).CombinedOutput(); err != nil {
			said = append(said, fmt.Sprintf("slirp4netns %s: does not start in a user namespace like bwrap's: %s", option, firstLine(out)))
			continue
		}
		if out, err := b.command(o.BareDir, box(option, get...)...).CombinedOutput(); err != nil {
			said = append(said, fmt.Sprintf("slirp4netns %s: starts, and a download through it fails (%v): %s", option, err, firstLine(out)))
			continue
		}
		works = append(works, option)
	}
	times := make([][3][]float64, len(works))
	for range b.rounds {
		for i, option := range works {
			start := time.Now()
			if err := b.command(o.BareDir, box(option, get...)...).Run(); err != nil {
				return nil, nil, fmt.Errorf("download with slirp4netns %s: %w", option, err)
			}
			times[i][0] = append(times[i][0], time.Since(start).Seconds()*1000)
			for k, argv := range [][]string{{"./connect", stageConnect, "203.0.113.10:9999"}, {"./connect", stageTurns, "203.0.113.10:7"}} {
				more, err := b.told(o.Home, o.BareDir, box(option, argv...))
				if err != nil {
					return nil, nil, fmt.Errorf("%s with slirp4netns %s: %w", argv[1], option, err)
				}
				times[i][k+1] = append(times[i][k+1], more...)
			}
		}
	}
	var sides []side
	for i, option := range works {
		name := "slirp4netns " + option
		if option == "" {
			name = "slirp4netns with none of these"
		}
		get, connect, turn := summary(name+", no filter: 64 MiB", times[i][0]), summary(name+", no filter: a new connection", times[i][1]), summary(name+", no filter: there and back", times[i][2])
		sides = append(sides, get, connect, turn)
		said = append(said, fmt.Sprintf("%s: %.0f MiB/s, the launch included; %.0f new connections a second; %.3f ms there and back",
			name, float64(size)/(1<<20)/get.Median*1000, 1000/connect.Median, turn.Median))
	}
	return sides, said, nil
}

func firstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return line
}
