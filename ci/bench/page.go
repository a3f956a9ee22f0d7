package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// machine is where figures come from.
type machine struct {
	Date      string   `json:"date"`
	Processor string   `json:"processor"`
	Cores     int      `json:"cores"`
	Load      string   `json:"load"` // when the measuring had ended, its own included
	User      string   `json:"user"`
	Versions  []string `json:"versions"`
}

func (b *bench) machine() machine {
	m := machine{Date: time.Now().Format(time.DateOnly), Cores: runtime.NumCPU(), Versions: versions(), User: "the caller"}
	if b.cred != nil {
		m.User = "an ordinary user"
		if b.cred.Uid == 0 {
			m.User = "root"
		}
	}
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			m.Processor = strings.TrimSpace(value)
			break
		}
	}
	load, _ := os.ReadFile("/proc/loadavg")
	m.Load = strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], ", ")
	return m
}

// page is what the figures of one run are written as.
type page struct {
	Machine machine  `json:"machine"`
	Results []result `json:"results"`
}

// write makes performance.json, a plot of each curve and performance.md.
func write(dir string, b *bench, all []result) error {
	return page{b.machine(), all}.write(dir)
}

// rewrite makes them again from the figures of performance.json.
func rewrite(dir string) error {
	var p page
	data, err := os.ReadFile(filepath.Join(dir, "performance.json"))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return err
	}
	return p.write(dir)
}

func (p page) write(dir string) error {
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "performance.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	for _, r := range p.Results {
		for _, c := range r.Curves {
			if err := c.draw(filepath.Join(dir, c.file())); err != nil {
				return fmt.Errorf("draw %s: %w", c.Name, err)
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "performance.md"), []byte(p.text()), 0o644)
}

func (c *curve) file() string { return "performance-" + strings.ReplaceAll(c.Name, " ", "-") + ".svg" }

// draw plots the medians, with the quartiles as bars.
func (c *curve) draw(file string) error {
	p := plot.New()
	p.Title.Text = c.Name
	p.X.Label.Text, p.Y.Label.Text = c.Of, c.Unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	points := quartiles{*c}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(points)
	if err != nil {
		return err
	}
	p.Add(plotter.NewGrid(), line, dots, bars)
	for i := range c.Q3 {
		p.Y.Max = max(p.Y.Max, c.Q3[i]*1.1)
	}
	return p.Save(14*vg.Centimeter, 8*vg.Centimeter, file)
}

type quartiles struct{ c curve }

func (q quartiles) Len() int                { return len(q.c.N) }
func (q quartiles) XY(i int) (x, y float64) { return q.c.N[i], q.c.Median[i] }
func (q quartiles) YError(i int) (lo, hi float64) {
	return q.c.Median[i] - q.c.Q1[i], q.c.Q3[i] - q.c.Median[i]
}

// text is the page.
func (p page) text() string {
	var s strings.Builder
	m := p.Machine
	fmt.Fprintf(&s, `# How fast it is

All of this page is written by the benchmark: nothing in it is typed by hand.
Everything that is compared alternates in one run, so that both sides see the same
machine. Times are from before fork to after wait, medians with quartiles.

<!-- not run: it takes twenty minutes of a quiet machine -->
`+"```sh\ngo run ./ci/bench -page docs launch denied restricted parts path growth log mask terminal\n```"+`

Measured on %s as %s, with %d processors (%s); load at the end %s. %s.

`, m.Date, m.User, m.Cores, m.Processor, m.Load, strings.Join(m.Versions, "; "))
	s.WriteString("## Against the bare line\n\n| what | median | quartiles | n |\n|---|--:|--:|--:|\n")
	for _, r := range p.Results {
		if r.Suite == "parts" {
			continue // each by itself is the end of a part, and stands below
		}
		for _, side := range r.Sides {
			fmt.Fprintf(&s, "| %s | %.1f ms | %.1f … %.1f | %d |\n", side.Name, side.Median, side.Q1, side.Q3, side.Rounds)
		}
	}
	s.WriteString("\n## Ratios and targets\n\n| what | ratio | target | |\n|---|--:|--:|---|\n")
	for _, r := range p.Results {
		if r.Ratio == 0 {
			continue
		}
		target, verdict := "none", ""
		if r.Target != 0 {
			target, verdict = fmt.Sprintf("at most %.1f", r.Target), "met"
			if r.Ratio > r.Target {
				verdict = "**missed**"
			}
		}
		fmt.Fprintf(&s, "| %s: %s to %s | %.2f | %s | %s |\n", r.Suite, r.Sides[0].Name, r.Sides[1].Name, r.Ratio, target, verdict)
	}
	s.WriteString("\n")
	for _, r := range p.Results {
		for _, n := range r.Notes {
			fmt.Fprintf(&s, "- %s: %s\n", r.Suite, n)
		}
	}
	s.WriteString(p.limits())
	for _, r := range p.Results {
		if r.Suite == "parts" {
			s.WriteString(inOrder(r))
		}
	}
	s.WriteString("\n## How it grows\n")
	for _, r := range p.Results {
		for _, c := range r.Curves {
			fmt.Fprintf(&s, "\n### %s\n\n![%s: %s against %s](%s)\n\n| %s |", title(c.Name), c.Name, c.Unit, c.Of, c.file(), c.Of)
			for _, n := range c.N {
				s.WriteString(" " + number(n) + " |")
			}
			s.WriteString("\n|---|" + strings.Repeat("--:|", len(c.N)) + "\n| " + c.Unit + " |")
			for _, v := range c.Median {
				fmt.Fprintf(&s, " %.1f |", v)
			}
			s.WriteString("\n")
		}
	}
	return s.String()
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// limits takes a launch apart, as far as its parts can be measured from outside.
func (p page) limits() string {
	find := func(name string) float64 {
		for _, r := range p.Results {
			for _, s := range r.Sides {
				if s.Name == name {
					return s.Median
				}
			}
		}
		return 0
	}
	whole, bare := find("kgate run --network off -- true"), find("the bwrap line of explain")
	empty, start, refused := find("an empty Go program"), find(startOnly), find(refusal)
	if whole == 0 || bare == 0 || empty == 0 || start == 0 || refused == 0 {
		return ""
	}
	text := fmt.Sprintf(`
## What the limit is

A launch has these parts, each the difference of two medians above.

| part | ms | share |
|---|--:|--:|
| bwrap makes the box and takes it down | %.1f | %.0f %% |
| a Go program starts and ends | %.1f | %.0f %% |
| kgate's packages, and its flags | %.1f | %.0f %% |
| the policy, the look at the command, one line of the log on the disk | %.1f | %.0f %% |
| plan, streams, signals, the names held in the project, the janitor, bwrap's start, and their end | %.1f | %.0f %% |

An empty Go program and the bare bwrap line alone make %.1f ms: a ratio of %.2f is the floor for a program
like this one, if nothing of the two overlaps.
`, bare, 100*bare/whole, empty, 100*empty/whole, start-empty, 100*(start-empty)/whole, refused-start, 100*(refused-start)/whole,
		whole-bare-refused, 100*(whole-bare-refused)/whole, empty+bare, (empty+bare)/bare)
	alone, listed := find("bwrap and slirp4netns alone"), find("kgate, one host")
	if alone == 0 || listed == 0 {
		return text
	}
	return text + fmt.Sprintf(`
A launch with one listed host:

| part | ms | share |
|---|--:|--:|
| bwrap and slirp4netns make a box with a network and take it down | %.1f | %.0f %% |
| what a launch without a network takes beyond its bwrap line | %.1f | %.0f %% |
| kgate starts once more, as the gate | %.1f | %.0f %% |
| nsenter, two iptables-restore, the lookup, the proof that the rules hold; less what overlaps | %.1f | %.0f %% |

An empty Go program for kgate and one for the gate, beside bwrap and slirp4netns, would make %.1f ms without any
rules: a ratio of %.2f, if nothing overlaps.
`, alone, 100*alone/listed, whole-bare, 100*(whole-bare)/listed, start, 100*start/listed,
		listed-alone-(whole-bare)-start, 100*(listed-alone-(whole-bare)-start)/listed, alone+2*empty, (alone+2*empty)/alone)
}
