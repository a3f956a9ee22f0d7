//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

func init() {
	suites["restricted"] = func(b *bench) (result, error) { return b.inLab(order{}) }
	stages = append(stages, lab.Stage, inLabStage)
}

// stageInLab is the argument that makes this program the part of a suite that
// runs on the lab's machine.
const stageInLab = "bench-in-lab"

// transfer is the size of the download whose speed is measured, in bytes.
const transfer = 256 << 20

// order is what the part in the lab is to measure.
type order struct {
	Kgate, Bare  string
	Dir, BareDir string
	Home         string
	Rounds       int
	Boxes        []string // bwrap's arguments without a filter
	Soak, Path   bool
	Parts        bool
	Result       string
}

// inLab has an order carried out in a lab of namespaces, as the bench's user.
func (b *bench) inLab(o order) (result, error) {
	bare := filepath.Join(b.root, "bare-box")
	if err := build(bare, "./ci/bench/bare"); err != nil {
		return result{}, err
	}
	argv, err := b.explained(b.bare, "--network", "off", "--", "true")
	if err != nil {
		return result{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return result{}, err
	}
	copied := filepath.Join(b.root, "bench-self")
	for from, to := range map[string]string{self: copied, b.kgate: filepath.Join(b.dir, "probe")} {
		if err := exec.Command("cp", from, to).Run(); err != nil {
			return result{}, fmt.Errorf("cp %s %s: %w", from, to, err)
		}
	}
	o.Kgate, o.Bare, o.Dir, o.BareDir, o.Home, o.Rounds = b.kgate, bare, b.dir, b.bare, b.home, b.rounds
	o.Boxes, o.Result = argv[1:slices.Index(argv, "--")], filepath.Join(b.home, "result.json")
	text, _ := json.Marshal(o)
	cmd := b.command(b.dir, copied, stageInLab, string(text))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("in the lab: %w", err)
	}
	data, err := os.ReadFile(o.Result)
	var r result
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	return r, err
}

func inLabStage(argv []string) (int, bool) {
	if len(argv) != 3 || argv[1] != stageInLab {
		return 0, false
	}
	var o order
	err := json.Unmarshal([]byte(argv[2]), &o)
	if err == nil {
		err = o.start(argv)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1, true
	}
	return 0, true
}

// start makes the lab and has itself run on its machine, or measures when it is
// there already.
func (o order) start(argv []string) error {
	const there = "KGATE_BENCH_IN_LAB"
	if os.Getenv(there) != "" {
		carry := order.restricted
		switch {
		case o.Soak:
			carry = order.soak
		case o.Path:
			carry = order.path
		case o.Parts:
			carry = order.parts
		}
		r, err := carry(o)
		if err != nil {
			return err
		}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return os.WriteFile(o.Result, data, 0o600)
	}
	l, err := lab.Start(lab.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.DNS("*.slow.test", []string{"a=203.0.113.10", "delay=20ms"}); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	job, err := l.Start(lab.Command{Argv: append([]string{argv[0]}, argv[1:]...), Dir: o.Dir,
		Env: append(os.Environ(), there+"=1"), Files: [3]*os.File{null, os.Stderr, os.Stderr}})
	if err != nil {
		return err
	}
	status, err := job.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("the part on the lab's machine ended with status %d", status)
	}
	return err
}

// writePolicy makes a home whose policy is restricted, with further keys.
func writePolicy(home, keys string) error {
	if err := os.MkdirAll(filepath.Join(home, ".kgate"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, ".kgate", "config.yaml"), []byte("version: 1\nnetwork: restricted\n"+keys), 0o600)
}

// restricted compares a launch with a list of hosts with bwrap and slirp4netns
// alone, 100 hosts with one, and a download through the filter with one without
// it.
func (o order) restricted() (result, error) {
	many := func(n int) []string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("h%d.slow.test", i))
		}
		return all
	}
	kinds := []struct {
		name  string
		hosts []string
	}{
		{"one host", []string{"allowed.test"}},
		{"one host, 20 ms an answer", many(1)},
		{"100 hosts, 20 ms an answer", many(100)},
		{"1,000 hosts, 20 ms an answer", many(1000)},
	}
	homes := make([]string, len(kinds))
	for i, k := range kinds {
		homes[i] = filepath.Join(o.Home, fmt.Sprint(i))
		if err := writePolicy(homes[i], "allow:\n  hosts: ["+strings.Join(k.hosts, ", ")+"]\n"); err != nil {
			return result{}, err
		}
	}
	b := &bench{rounds: o.Rounds, home: homes[0]}
	box := func(argv ...string) []string { return slices.Concat([]string{o.Bare}, o.Boxes, []string{"--"}, argv) }
	var plans []plan
	for i, k := range kinds {
		plans = append(plans, plan{name: "kgate, " + k.name, dir: o.Dir, home: homes[i], argv: []string{o.Kgate, "run", "--", "true"}})
	}
	plans = slices.Insert(plans, 1, plan{name: "bwrap and slirp4netns alone", dir: o.BareDir, argv: box("true")})
	sides, err := b.alternate(plans...)
	if err != nil {
		return result{}, err
	}
	rates, err := o.rates(b, box, sides[0].Median, sides[1].Median)
	if err != nil {
		return result{}, err
	}
	return result{Suite: "restricted", Sides: sides, Ratio: sides[0].Median / sides[1].Median, Target: 2, Notes: []string{
		fmt.Sprintf("100 hosts to one: ratio %.2f (target: at most 1.50)", sides[3].Median/sides[2].Median),
		fmt.Sprintf("1,000 hosts to one: ratio %.2f (target: at most 2.00)", sides[4].Median/sides[2].Median),
		rates,
	}}, nil
}

// rates downloads through the filter and without one, alternating. What the
// launch itself takes is taken off.
func (o order) rates(b *bench, box func(...string) []string, kgate, bare float64) (string, error) {
	if err := exec.Command("cp", filepath.Join(o.Dir, "probe"), filepath.Join(o.BareDir, "probe")).Run(); err != nil {
		return "", err
	}
	get := []string{"./probe", lab.StageProbe, "-t", "60s", "http", fmt.Sprintf("http://203.0.113.10:8080/bytes/%d", transfer)}
	plans := []plan{
		{name: "download through the filter", dir: o.Dir, argv: slices.Concat([]string{o.Kgate, "run", "--"}, get)},
		{name: "download without", dir: o.BareDir, argv: box(get...)},
	}
	less := *b
	less.rounds = max(5, b.rounds/6)
	sides, err := less.alternate(plans...)
	if err != nil {
		return "", err
	}
	const mib = float64(transfer) / (1 << 20)
	through, without := mib/(sides[0].Median-kgate)*1000, mib/(sides[1].Median-bare)*1000
	if through <= 0 || without <= 0 {
		return "", errors.New("a download took less than a launch")
	}
	return fmt.Sprintf("256 MiB: %.0f MiB/s through the filter, %.0f without: ratio %.2f (target: at least 0.90), n %d, %s",
		through, without, through/without, less.rounds, time.Now().Format(time.DateOnly)), nil
}
