// Package manual writes manual pages of a tree of commands, from the same text
// that --help prints. It is linked into the program that the packages' build runs
// (go run -tags manual ./cmd/kgate), and not into kgate.
package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// About is what pages say beside the commands' own text.
type About struct {
	Version string
	Date    string   // of the release, as 2026-12-01
	Files   []string // "PATH: what it is"
	More    []string // further pages to see, as "bwrap(1)"
}

// Pages returns the source of a page for each command that a person can see, by
// file name (kgate-run.1).
func Pages(root *cobra.Command, a About) map[string]string {
	root.InitDefaultHelpCmd()
	pages := map[string]string{}
	var all []*cobra.Command
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		all = append(all, c)
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	for _, c := range all {
		pages[name(c)+".1"] = page(c, all, a)
	}
	return pages
}

func name(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func page(c *cobra.Command, all []*cobra.Command, a About) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 %s %s %s\n", quote(strings.ToUpper(name(c))), quote(a.Date), quote("kgate "+a.Version), quote("kgate manual"))
	// No hyphens are put into words: what is typed can be copied.
	b.WriteString(".nh\n.ad l\n")
	section(&b, "NAME")
	fmt.Fprintf(&b, "%s \\- %s\n", escape(name(c)), escape(lower(c.Short)))
	section(&b, "SYNOPSIS")
	fmt.Fprintf(&b, ".B %s\n", escape(strings.TrimSuffix(c.UseLine(), " [flags]")))
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, ".br\n.B %s\n.I COMMAND\n", escape(c.CommandPath()))
	}
	long, status, _ := strings.Cut(c.Long, "\n\nExit status:\n")
	section(&b, "DESCRIPTION")
	text(&b, long)
	if c.HasAvailableSubCommands() {
		section(&b, "COMMANDS")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s: see\n.BR %s (1).\n", escape(sub.Name()), escape(sub.Short), escape(name(sub)))
			}
		}
	}
	if flags := options(c); flags != "" && !c.DisableFlagParsing {
		section(&b, "OPTIONS")
		b.WriteString(flags)
	}
	if status != "" {
		section(&b, "EXIT STATUS")
		text(&b, status)
	}
	if c.Example != "" {
		section(&b, "EXAMPLES")
		text(&b, c.Example)
	}
	if len(a.Files) > 0 && !c.HasParent() {
		section(&b, "FILES")
		for _, f := range a.Files {
			path, what, _ := strings.Cut(f, ": ")
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", escape(path), escape(what))
		}
	}
	section(&b, "SEE ALSO")
	var see []string
	for _, other := range all {
		if other != c && (other == c.Parent() || other.Parent() == c || other.Parent() == c.Parent()) {
			see = append(see, ".BR "+escape(name(other))+" (1)")
		}
	}
	for _, m := range a.More {
		page, number, _ := strings.Cut(m, "(")
		see = append(see, ".BR "+escape(page)+" ("+number)
	}
	b.WriteString(strings.Join(see, ",\n") + "\n")
	return b.String()
}

func section(b *strings.Builder, title string) { fmt.Fprintf(b, ".SH %s\n", quote(title)) }

func options(c *cobra.Command) string {
	var b strings.Builder
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		b.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(&b, "\\fB%s\\fR, ", escape("-"+f.Shorthand))
		}
		fmt.Fprintf(&b, "\\fB%s\\fR", escape("--"+f.Name))
		if value != "" {
			fmt.Fprintf(&b, " \\fI%s\\fR", escape(value))
		}
		fmt.Fprintf(&b, "\n%s\n", line(upper(usage)+"."))
	})
	return b.String()
}

// text writes paragraphs. Lines that are set in stay as they are.
func text(b *strings.Builder, s string) {
	fixed, first := false, true
	set := func(want bool) {
		switch {
		case want && !fixed:
			b.WriteString(".RS 4\n.nf\n")
		case !want && fixed:
			b.WriteString(".fi\n.RE\n")
		}
		fixed = want
	}
	pending := false
	for _, l := range strings.Split(strings.Trim(s, "\n"), "\n") {
		if strings.TrimSpace(l) == "" {
			pending = true
			continue
		}
		in := strings.HasPrefix(l, "  ")
		if in && fixed && pending {
			b.WriteString("\n")
		} else if !in && (pending || fixed) && !first {
			set(false)
			b.WriteString(".PP\n")
		}
		set(in)
		if in {
			l = l[2:]
		}
		b.WriteString(line(l) + "\n")
		pending, first = false, false
	}
	set(false)
}

// line is one line of text that no request of roff's is made of.
func line(s string) string {
	s = escape(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// escape writes a text so that it is printed as it stands: a hyphen as the one
// on the keyboard, quotes and the tilde straight.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "~", `\(ti`, "^", `\(ha`).Replace(s)
}

func quote(s string) string { return `"` + strings.ReplaceAll(escape(s), `"`, `\(dq`) + `"` }

func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
