//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/launcher/integrate"
)

// column is what the last run of one harness found.
type column struct {
	Version string
	Day     string
	Cells   []cell
}

func columnFile(p *program) string {
	return filepath.Join(cache(), "harness", "results-"+p.name+".json")
}

// remember keeps what a run found, so that one harness can be run again without
// the others.
func remember(from string, chosen []*program) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var cells []cell
	if err := json.Unmarshal(text, &cells); err != nil {
		return err
	}
	for _, p := range chosen {
		c := column{Version: p.version, Day: time.Now().UTC().Format(time.DateOnly)}
		for _, one := range cells {
			if one.Program == p.name {
				c.Cells = append(c.Cells, one)
			}
		}
		text, err := json.MarshalIndent(c, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(columnFile(p), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recall reads what the last run of a harness found; nil when that version was
// not run.
func recall(p *program) *column {
	text, err := os.ReadFile(columnFile(p))
	var c column
	if err != nil || json.Unmarshal(text, &c) != nil || c.Version != p.version {
		return nil
	}
	return &c
}

// report writes the page from the last run of each harness, and fails when a
// case did.
func report(to string) error {
	columns := map[string]*column{}
	for _, p := range programs {
		columns[p.name] = recall(p)
	}
	failed := 0
	var notes []string
	show := func(p *program, name string) string {
		if name == caseOwnBox && p.boxed[0] == "" && p.pkg != "" {
			return "–"
		}
		if columns[p.name] == nil {
			return "not run"
		}
		for _, c := range columns[p.name].Cells {
			if c.Case != name {
				continue
			}
			switch {
			case c.NotRun:
				notes = append(notes, fmt.Sprintf("%s, %s: %s", p.title, name, oneLine(c.Text)))
				return "not run"
			case c.OK:
				return "yes"
			}
			failed++
			notes = append(notes, fmt.Sprintf("%s, %s: NO: %s", p.title, name, oneLine(c.Text)))
			return "**no**"
		}
		return "not run"
	}
	var b strings.Builder
	b.WriteString(head)
	table := func(rows []string) {
		b.WriteString("| |")
		for _, p := range programs {
			fmt.Fprintf(&b, " %s |", p)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(programs)) + "\n")
		for _, name := range rows {
			fmt.Fprintf(&b, "| %s |", name)
			for _, p := range programs {
				fmt.Fprintf(&b, " %s |", show(p, name))
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	b.WriteString("## With kgate\n\n")
	table(cases)
	for _, p := range programs {
		day := "not run"
		if c := columns[p.name]; c != nil {
			day = "last run " + c.Day
		}
		if p.pkg == "" {
			day += ", its settings alone: the program itself is driven by no test"
		}
		fmt.Fprintf(&b, "- %s: %s\n", p, day)
	}
	b.WriteString("\n")
	b.WriteString("## Control: without kgate\n\nThat each of these is `yes` is what makes the table above worth something.\n\n")
	table(controls)
	if len(notes) > 0 {
		b.WriteString("## What was not so, or not run\n\n")
		for _, n := range notes {
			fmt.Fprintf(&b, "- %s\n", n)
		}
		b.WriteString("\n")
	}
	b.WriteString(ways())
	b.WriteString("aider's and VS Code's integrations are made after their documentation and source.\n\n")
	fmt.Fprintf(&b, "Measured with %s.\n", strings.Join(versions(), ", "))
	if err := os.WriteFile(to, []byte(b.String()), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "ci/harness: wrote %s\n", to)
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return nil
}

// ways says by which setting kgate gets into each harness, in the words of
// kgate integrate.
func ways() string {
	var b strings.Builder
	b.WriteString("## By which setting\n\n")
	for _, name := range integrate.Names() {
		h, err := integrate.Find(name)
		if err != nil {
			continue
		}
		open := "it fails closed."
		if h.Open != "" {
			open = "how it fails open: " + h.Open + "."
		}
		fmt.Fprintf(&b, "- %s (`kgate integrate %s`): %s; %s\n", h.Title, h.Name, h.Way, open)
	}
	b.WriteString("\n")
	return b.String()
}

// String is the program with its version.
func (p *program) String() string { return strings.TrimSpace(p.title + " " + p.version) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

const head = "# Harnesses\n\n" +
	"Written by `go run ./ci/harness -claude`; edit that and not this page. Each harness is\n" +
	"driven without a terminal, as an ordinary user, with `kgate integrate NAME` done,\n" +
	"against a stand-in for its model's API in a network namespace with nothing but a\n" +
	"loopback interface. `kgate integrate NAME --check` says the same of your machine:\n" +
	"what the harness would run, and how that way fails open.\n\n"

// versions are those of what the box is made of.
func versions() []string {
	out := []string{}
	for _, argv := range [][]string{{"uname", "-sr"}, {"bwrap", "--version"}, {"slirp4netns", "--version"}} {
		text, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		out = append(out, line)
	}
	return out
}
