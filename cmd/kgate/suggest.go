package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownCommand is the error for a first word that is no command of kgate's.
func unknownCommand(root *cobra.Command, word string) error {
	return &statusError{status: statusUsage, err: fmt.Errorf(
		"unknown command %q%s (to run a program in the box: kgate run -- %s; all commands: kgate --help)",
		word, didYouMean(nearestCommand(root, word)), word)}
}

// nearestCommand is the command that a word was meant for: one that has it as
// another tool's name for the same, else the one that is spelt most like it.
func nearestCommand(c *cobra.Command, word string) string {
	var names []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		if slices.ContainsFunc(sub.SuggestFor, func(s string) bool { return strings.EqualFold(s, word) }) {
			return sub.Name()
		}
		names = append(names, sub.Name())
	}
	return nearest(word, names)
}

// wordArgs holds a command to so many words beside its flags, with the status of
// a wrong command line.
func wordArgs(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) > most:
			word := args[most]
			err = fmt.Errorf("%s: unexpected word %q%s (see %s --help)", cmd.Name(), word, didYouMean(nearestCommand(cmd, word)), cmd.CommandPath())
		case len(args) < least:
			err = fmt.Errorf("%s: a word is missing (say: %s)", cmd.Name(), cmd.UseLine())
		default:
			return nil
		}
		return &statusError{status: statusUsage, err: err}
	}
}

// flagError is what is said of a flag that is wrong.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		want := map[string]string{"bool": "true or false", "int": "a whole number"}[value.GetFlag().Value.Type()]
		if want != "" {
			err = fmt.Errorf("--%s: want %s, found %q", value.GetFlag().Name, want, value.GetValue())
		}
	}
	if c.HasParent() {
		err = fmt.Errorf("%s: %w", c.Name(), err)
	}
	return fmt.Errorf("%w%s (see %s --help)", err, flagHint(c, err), c.CommandPath())
}

// flagHint names the flag that an unknown one was meant for.
func flagHint(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if name := nearest(unknown.GetSpecifiedName(), names); name != "" {
		return didYouMean("--" + name)
	}
	return ""
}

func didYouMean(word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q", word)
}

// nearest returns the word of a list that is at most two typing errors (one in
// a short word) away from what was typed, or begins with it; the closest one,
// and the first of several. "" when none is: a wrong guess is worse than none.
func nearest(typed string, words []string) string {
	typed = strings.ToLower(typed)
	best, found := 3, ""
	if len(typed) < 4 {
		best = 2
	}
	for _, w := range words {
		d := distance(typed, strings.ToLower(w))
		if d >= len(w) || d >= len(typed) {
			d = best // every letter differs
		}
		if len(typed) > 1 && strings.HasPrefix(strings.ToLower(w), typed) {
			d = min(d, 1)
		}
		if d < best {
			best, found = d, w
		}
	}
	return found
}

// distance is how many typing errors lie between two words: a letter left out,
// put in, mistaken, or two neighbours exchanged.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
