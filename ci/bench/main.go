// Bench times kgate against the plain command lines that do the same work,
// alternating in one run so that both sides see the same machine.
//
//	go run ./ci/bench [-n ROUNDS] [-json] [-page DIR [-again]] [SUITE...]
//
// As root it measures as an ordinary user (-user), because that is how kgate is
// used. Times are wall-clock milliseconds from before fork to after wait.
//
// The suites are launch (with no network, an open one, and in a terminal), denied (a refusal), growth
// (how a launch grows with its policy, its text, its company and its output), log (one after a million
// others), mask (what a command prints, through the mask), terminal (a key's echo),
// restricted (a launch with a host list), path (what goes through the filter), parts (both kinds of launch, part by part) and soak, which runs only when it is named:
// 50 restricted launches at once and then ROUNDS in a row (-n 500), all of which must be right and leave
// nothing. "-user root soak" does it as root.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// result is one suite's outcome.
type result struct {
	Suite  string   `json:"suite"`
	Sides  []side   `json:"sides"`
	Ratio  float64  `json:"ratio"` // median of the first side over median of the second
	Target float64  `json:"target,omitempty"`
	Notes  []string `json:"notes,omitempty"` // further ratios
	Curves []curve  `json:"curves,omitempty"`
}

var suites = map[string]func(*bench) (result, error){
	"launch": launch,
}

// stages are parts of suites that run as processes of their own.
var stages []func(argv []string) (status int, ok bool)

func main() {
	for _, stage := range stages {
		if status, ok := stage(os.Args); ok {
			os.Exit(status)
		}
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := flag.Int("n", 60, "rounds; each runs every side once")
	page := flag.String("page", "", "write performance.md, .json and plots to this directory")
	again := flag.Bool("again", false, "with -page: measure nothing, write the page again from its performance.json")
	whole := flag.Bool("whole", false, "measure what takes minutes too (10 GiB of output)")
	asJSON := flag.Bool("json", false, "print JSON")
	kgate := flag.String("kgate", "", "the kgate to measure (default: built from this tree)")
	account := flag.String("user", "kgate-test", "as root: the ordinary user to measure as")
	flag.Parse()
	if *again {
		return rewrite(*page)
	}
	names := flag.Args()
	if len(names) == 0 {
		for name := range suites {
			if name != "soak" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	b, err := newBench(*kgate, *account, *rounds)
	if err != nil {
		return err
	}
	defer b.close()
	b.whole = *whole
	var all []result
	for _, name := range names {
		suite, ok := suites[name]
		if !ok {
			return fmt.Errorf("no suite %q", name)
		}
		r, err := suite(b)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, r)
		if !*asJSON {
			r.print()
		}
	}
	if *page != "" {
		return write(*page, b, all)
	}
	if *asJSON {
		return json.NewEncoder(os.Stdout).Encode(all)
	}
	return nil
}

func (r result) print() {
	fmt.Println(r.Suite)
	for _, s := range r.Sides {
		fmt.Printf("  %-32s median %7.2f ms   quartiles %7.2f … %7.2f   n %d\n", s.Name, s.Median, s.Q1, s.Q3, s.Rounds)
	}
	if r.Ratio != 0 {
		fmt.Printf("  ratio %.2f", r.Ratio)
		if r.Target != 0 {
			fmt.Printf(" (target: at most %.2f)", r.Target)
		}
		fmt.Println()
	}
	for _, n := range r.Notes {
		fmt.Printf("  %s\n", n)
	}
}

// launch compares an empty command in the box with the bare bwrap line that
// explain prints for it: what is left over is kgate's own share. The bare line
// runs in a project of its own, because it leaves its mount points behind.
func launch(b *bench) (result, error) {
	argv, err := b.explained(b.bare, "--network", "off", "--", "true")
	if err != nil {
		return result{}, err
	}
	open := *b
	open.home = filepath.Join(b.root, "home-open")
	if err := b.policy(open.home, "version: 1\nnetwork: open\n"); err != nil {
		return result{}, err
	}
	openLine, err := open.explained(b.bare, "--", "true")
	if err != nil {
		return result{}, err
	}
	sides, err := b.alternate(
		plan{name: "kgate run --network off -- true", dir: b.dir, argv: []string{b.kgate, "run", "--network", "off", "--", "true"}},
		plan{name: "the bwrap line of explain", dir: b.bare, argv: argv},
		plan{name: "true", dir: b.dir, argv: []string{"true"}},
		plan{name: "an empty Go program", dir: b.dir, argv: []string{b.empty}},
		plan{name: "kgate run -- true, network open", dir: b.dir, home: open.home, argv: []string{b.kgate, "run", "--", "true"}},
		plan{name: "the bwrap line of explain, network open", dir: b.bare, argv: openLine},
		plan{name: "kgate run --network off -- true, in a terminal", dir: b.dir, argv: []string{b.kgate, "run", "--network", "off", "--", "true"}, terminal: true},
		plan{name: "the bwrap line of explain, in a terminal", dir: b.bare, argv: argv, terminal: true},
	)
	if err != nil {
		return result{}, err
	}
	return result{Suite: "launch", Sides: sides, Ratio: sides[0].Median / sides[1].Median, Target: 1.6, Notes: []string{
		fmt.Sprintf("network open: ratio %.2f (target: at most 1.40)", sides[4].Median/sides[5].Median),
		fmt.Sprintf("in a terminal: ratio %.2f; kgate's terminal is one of its own, and a stage of kgate in the box takes it", sides[6].Median/sides[7].Median),
	}}, nil
}

// policy makes a home with a policy, the bench's user's.
func (b *bench) policy(home, text string) error {
	config := filepath.Join(home, ".kgate", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return err
	}
	for _, name := range []string{config, filepath.Dir(config), home} {
		if err := b.own(name, nil); err != nil {
			return err
		}
	}
	return nil
}

// explained is the bwrap line of explain for a launch in a directory, without
// the words that name descriptors of kgate's own ("--sync-fd @sync").
func (b *bench) explained(dir string, args ...string) ([]string, error) {
	cmd := b.command(dir, append([]string{b.kgate, "explain", "--json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	var p struct {
		Backend string `json:"backend"`
		Parts   []struct {
			Words []string `json:"words"`
		} `json:"parts"`
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return nil, fmt.Errorf("read explain's JSON: %w", err)
	}
	if p.Backend != "bubblewrap" {
		return nil, fmt.Errorf("explain's backend is %q", p.Backend)
	}
	argv := []string{"bwrap"}
	for _, part := range p.Parts {
		if !slices.ContainsFunc(part.Words, func(w string) bool { return strings.HasPrefix(w, "@") }) {
			argv = append(argv, part.Words...)
		}
	}
	return argv, nil
}

func build(out, pkg string, flags ...string) error {
	cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-ldflags=-s", "-o", out}, flags, []string{pkg})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}
