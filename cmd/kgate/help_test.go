package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"
)

// everyCommand calls each for every command that a person can see.
func everyCommand(c *cobra.Command, each func(c *cobra.Command)) {
	if !c.HasParent() {
		c.InitDefaultHelpCmd()
	}
	each(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			everyCommand(sub, each)
		}
	}
}

// TestHelpIsComplete holds that every help has examples, a section on the exit
// status with a line for each, and fits a terminal.
func TestHelpIsComplete(t *testing.T) {
	statusLine := regexp.MustCompile(`^  ( *[0-9]+  |the command's own|that of kgate run)`)
	seen := 0
	everyCommand(newRootCommand(), func(c *cobra.Command) {
		seen++
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short text %q", c.CommandPath(), c.Short)
		}
		_, section, ok := strings.Cut(c.Long, "\n\nExit status:\n")
		if !ok {
			t.Errorf("%s: no section on the exit status", c.CommandPath())
			return
		}
		if first, _, _ := strings.Cut(section, "\n"); !statusLine.MatchString(first) {
			t.Errorf("%s: the first exit status is %q", c.CommandPath(), first)
		}
		if strings.Contains(section, "\n\n") {
			t.Errorf("%s: something follows the section on the exit status", c.CommandPath())
		}
		for _, line := range strings.Split(c.Long, "\n") {
			if n := len([]rune(line)); n > 90 {
				t.Errorf("%s: a line of %d characters: %s", c.CommandPath(), n, line)
			}
		}
		if c.Example == "" {
			t.Errorf("%s: no example", c.CommandPath())
		}
	})
	if seen < 14 {
		t.Errorf("%d commands", seen)
	}
}

// TestExamplesAreRight parses what the examples say as a shell and then kgate
// would: every command and flag in them has to exist.
func TestExamplesAreRight(t *testing.T) {
	calls := 0
	everyCommand(newRootCommand(), func(c *cobra.Command) {
		file, err := syntax.NewParser().Parse(strings.NewReader(c.Example), c.Name())
		if err != nil {
			t.Errorf("%s: %v", c.CommandPath(), err)
			return
		}
		own := 0
		syntax.Walk(file, func(n syntax.Node) bool {
			call, ok := n.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			var words []string
			for _, w := range call.Args {
				words = append(words, plainWord(w))
			}
			switch words[0] {
			case "kgate":
				own++
				kgateTakes(t, words)
			case "kgate-sh", "aider":
				own++
			}
			return true
		})
		if own == 0 {
			t.Errorf("%s: no example of kgate in\n%s", c.CommandPath(), c.Example)
		}
		calls += own
	})
	if calls < 25 {
		t.Errorf("%d calls of kgate in all examples", calls)
	}
}

func kgateTakes(t *testing.T, words []string) {
	t.Helper()
	root := newRootCommand()
	root.InitDefaultHelpCmd()
	c, args, err := root.Find(words[1:])
	if err != nil || c.Name() == "kgate" && len(words) > 1 {
		t.Errorf("%q: no such command: %v", words, err)
		return
	}
	if c.DisableFlagParsing {
		return
	}
	if err := c.ParseFlags(args); err != nil {
		t.Errorf("%q: %v", words, err)
		return
	}
	if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%q: %v", words, err)
	}
}

// plainWord is the text of a word without its quotes; expansions are left out.
func plainWord(w *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			}
		}
	}
	add(w.Parts)
	return b.String()
}

func TestNearest(t *testing.T) {
	words := []string{"init", "network", "doctor", "run", "shell", "explain", "verify", "log"}
	for typed, want := range map[string]string{
		"runn": "run", "rn": "run", "urn": "run", "RUN": "run", "dcotor": "doctor", "docter": "doctor", "verfiy": "verify",
		"lgo": "log", "logs": "log", "netwrok": "network", "exp": "explain", "xyzzy": "", "": "", "ls": "", "git": "", "a": "",
	} {
		if got := nearest(typed, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
