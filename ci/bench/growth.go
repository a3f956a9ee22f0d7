package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func init() {
	suites["denied"] = denied
	suites["growth"] = growth
}

// curve is how something grows with a number.
type curve struct {
	Name   string    `json:"name"`
	Of     string    `json:"of"`   // what the number counts
	Unit   string    `json:"unit"` // of the values
	N      []float64 `json:"n"`
	Median []float64 `json:"median"`
	Q1     []float64 `json:"q1"`
	Q3     []float64 `json:"q3"`
	Rounds int       `json:"rounds"`
}

func (c *curve) add(n int, s side) {
	c.N = append(c.N, float64(n))
	c.Median, c.Q1, c.Q3 = append(c.Median, s.Median), append(c.Q1, s.Q1), append(c.Q3, s.Q3)
	c.Rounds = s.Rounds
}

// ratio is the last value over the first.
func (c *curve) ratio() float64 { return c.Median[len(c.Median)-1] / c.Median[0] }

func (c *curve) note(target string) string {
	return fmt.Sprintf("%s: %s to %s: ratio %.2f%s", c.Name, number(c.N[len(c.N)-1]), number(c.N[0]), c.ratio(), target)
}

const (
	refusal   = "kgate run -- curl, refused"
	startOnly = "kgate run without a command: its own start"
)

// denied compares the refusal of a denied program, and the parts of a launch that
// can be seen alone, with an empty program.
func denied(b *bench) (result, error) {
	sides, err := b.alternate(
		plan{name: refusal, dir: b.dir, argv: []string{b.kgate, "run", "--", "curl"}, status: 126},
		plan{name: "an empty Go program", dir: b.dir, argv: []string{b.empty}},
		plan{name: startOnly, dir: b.dir, argv: []string{b.kgate, "run"}, status: 125},
	)
	if err != nil {
		return result{}, err
	}
	return result{Suite: "denied", Sides: sides, Ratio: sides[0].Median / sides[1].Median, Target: 2}, nil
}

// growth measures how a launch, or what it does, grows with a number.
func growth(b *bench) (result, error) {
	out := result{Suite: "growth"}
	for _, f := range []func(*bench) (*curve, string, error){
		denials, maskedPaths, allowedPaths, texts, crowds, outputs,
	} {
		c, note, err := f(b)
		if err != nil {
			return out, err
		}
		out.Curves = append(out.Curves, *c)
		out.Notes = append(out.Notes, c.note(note))
	}
	return out, nil
}

// few are the rounds of a curve's points: each curve has several.
func (b *bench) few() *bench {
	less := *b
	less.rounds = max(5, b.rounds/6)
	return &less
}

// policies alternates launches whose policies differ.
func (b *bench) policies(c *curve, counts []int, policy func(n int) string) error {
	less := b.few()
	var plans []plan
	for _, n := range counts {
		home := filepath.Join(b.root, "grown", strings.ReplaceAll(c.Name, " ", "-"), strconv.Itoa(n))
		if err := b.policy(home, policy(n)); err != nil {
			return err
		}
		plans = append(plans, plan{name: strconv.Itoa(n), dir: b.dir, home: home, argv: []string{b.kgate, "run", "--", "true"}})
	}
	sides, err := less.alternate(plans...)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	for i, s := range sides {
		c.add(counts[i], s)
	}
	return nil
}

// denials are paths that may not be read and that the box does not have anyway,
// as nearly all of a home's are.
func denials(b *bench) (*curve, string, error) {
	c := &curve{Name: "denied paths", Of: "paths under deny: read:", Unit: "ms a launch"}
	err := b.policies(c, []int{1, 10, 100, 1_000, 10_000}, func(n int) string {
		return listed("network: off\ndeny:\n  read:\n", n, "~/elsewhere/f%d")
	})
	return c, " (target: at most 3.00)", err
}

// maskedPaths are denied paths within an allowed one: each is a mount.
func maskedPaths(b *bench) (*curve, string, error) {
	c := &curve{Name: "masked files", Of: "denied files in an allowed directory", Unit: "ms a launch"}
	dir, err := b.files(1_000)
	if err == nil {
		err = b.policies(c, []int{1, 10, 100, 1_000}, func(n int) string {
			return listed("network: off\nallow:\n  paths: ["+dir+"]\ndeny:\n  read:\n", n, dir+"/f%d")
		})
	}
	return c, "", err
}

// allowedPaths are a mount each too.
func allowedPaths(b *bench) (*curve, string, error) {
	c := &curve{Name: "allowed files", Of: "paths under allow: paths:", Unit: "ms a launch"}
	dir, err := b.files(1_000)
	if err == nil {
		err = b.policies(c, []int{1, 10, 100, 1_000}, func(n int) string {
			return listed("network: off\nallow:\n  paths:\n", n, dir+"/f%d")
		})
	}
	return c, "", err
}

func listed(head string, n int, format string) string {
	var text strings.Builder
	text.WriteString("version: 1\n" + head)
	for i := range n {
		fmt.Fprintf(&text, "    - "+format+"\n", i)
	}
	return text.String()
}

// files makes a directory of files outside the home.
func (b *bench) files(n int) (string, error) {
	dir := filepath.Join(b.root, "many")
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, "f"+strconv.Itoa(i)), nil, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// texts are command lines of a shell that are inspected; the shell reads them too.
// A longer one than 128 KiB is no argument on Linux (execve(2)).
func texts(b *bench) (*curve, string, error) {
	c := &curve{Name: "command text", Of: "KiB of shell text that is inspected", Unit: "ms a launch"}
	sizes := []int{1, 10, 100}
	const line = "test -n \"$HOME\" && : word 'quoted text' $((1+2)) # so\n"
	var plans []plan
	for _, kib := range sizes {
		argv := []string{b.kgate, "run", "--network", "off", "--", "sh", "-c", strings.Repeat(line, (kib<<10)/len(line))}
		plans = append(plans, plan{name: strconv.Itoa(kib), dir: b.dir, argv: argv})
	}
	sides, err := b.few().alternate(plans...)
	if err != nil {
		return c, "", err
	}
	for i, s := range sides {
		c.add(sizes[i], s)
	}
	return c, "; the shell's own reading is in it", nil
}

// crowds are launches at the same time: the time until the last has ended.
func crowds(b *bench) (*curve, string, error) {
	c := &curve{Name: "launches at once", Of: "launches started together", Unit: "ms a launch"}
	rounds := b.few().rounds
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
		var times []float64
		for round := -1; round < rounds; round++ {
			start := time.Now()
			var wg sync.WaitGroup
			failed := make([]error, n)
			for i := range n {
				wg.Go(func() {
					cmd := b.command(b.dir, b.kgate, "run", "--network", "off", "--", "true")
					if out, err := cmd.CombinedOutput(); err != nil {
						failed[i] = fmt.Errorf("%w: %s", err, out)
					}
				})
			}
			wg.Wait()
			if err := errors.Join(failed...); err != nil {
				return c, "", err
			}
			if round >= 0 {
				times = append(times, milliseconds(time.Since(start))/float64(n))
			}
		}
		c.add(n, summary("", times))
	}
	return c, "; each launch's share of the time until the last has ended", nil
}

// outputs are what a command prints: the most memory that kgate, bwrap or the
// command had at any time.
func outputs(b *bench) (*curve, string, error) {
	c := &curve{Name: "memory", Of: "MiB that a command prints through the mask", Unit: "MiB resident at most"}
	sizes := []int{1, 10, 100, 1_000}
	if b.whole {
		sizes = append(sizes, 10_000)
	}
	for _, mib := range sizes {
		var peaks []float64
		for range 3 {
			cmd := b.command(b.dir, b.kgate, "run", "--network", "off", "--", "head", "-c", strconv.Itoa(mib<<20), "/dev/zero")
			if err := cmd.Run(); err != nil {
				return c, "", err
			}
			usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			peaks = append(peaks, float64(usage.Maxrss)/1024)
		}
		c.add(mib, summary("", peaks))
	}
	return c, fmt.Sprintf("; %.0f MiB at most (target: 30)", slices.Max(c.Q3)), nil
}

// number writes a number with its thousands apart.
func number(n float64) string {
	text := strconv.FormatFloat(n, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	return whole
}

// versions are those of the programs that the figures depend on.
func versions() []string {
	var all []string
	for _, argv := range [][]string{{"uname", "-sr"}, {"bwrap", "--version"}, {"slirp4netns", "--version"}, {"iptables", "--version"}, {"go", "version"}} {
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		line, _, _ := strings.Cut(string(out), "\n")
		if err != nil {
			line = argv[0] + ": not there"
		}
		all = append(all, line)
	}
	return all
}
