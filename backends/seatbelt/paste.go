package seatbelt

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kgate-dev/kgate/backends"
)

// Paste is a shell script that makes the box of a plan by hand: the profile, the
// sandbox-exec line without kgate's stage, and the removal of what was made.
// environ is the environment it will be run in; where the command's differs, the
// script says so, with names and not with values for what is taken out.
func Paste(plan *backends.Plan, environ []string) string {
	profile, ok := plan.Extra.(*Profile)
	if !ok {
		return ""
	}
	dir := shellQuote(profile.Temp)
	file := shellQuote(path.Join(profile.Temp, "profile.sb"))
	var b strings.Builder
	fmt.Fprintf(&b, "(umask 077; mkdir %s %s) || exit\n", dir, shellQuote(path.Join(profile.Temp, "tmp")))
	// Every line of a profile begins with a parenthesis or a semicolon, or is empty.
	fmt.Fprintf(&b, "cat >%s <<'END_OF_PROFILE'\n%sEND_OF_PROFILE\n", file, profile.Text())
	if plan.Command.Dir != "" {
		fmt.Fprintf(&b, "cd %s || exit\n", shellQuote(plan.Command.Dir))
	}
	words := []string{"env"}
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(plan.Command.Env, func(have string) bool { return strings.HasPrefix(have, name+"=") }) {
			words = append(words, "-u", shellQuote(name))
		}
	}
	for _, e := range plan.Command.Env {
		if !slices.Contains(environ, e) {
			words = append(words, shellQuote(e))
		}
	}
	if len(words) == 1 {
		words = nil
	}
	for _, p := range plan.Parts {
		if p.Name == "stage" {
			continue
		}
		for _, w := range p.Words {
			words = append(words, shellQuote(w))
		}
	}
	fmt.Fprintf(&b, "%s\nstatus=$?\nrm -rf %s\nexit $status\n", strings.Join(words, " "), dir)
	return b.String()
}

// shellQuote writes a word so that sh reads it back as it is.
func shellQuote(word string) string {
	plain := word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=") == ""
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
