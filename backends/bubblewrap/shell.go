package bubblewrap

import (
	"fmt"
	"sort"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Paste is a shell script that makes the box of a plan by hand: what must be
// there while the box is, the bwrap line, and the removal of what was made. It
// needs nothing of kgate. environ is the environment it will be run in; where
// the command's differs, the script says so, with names and not with values for
// what is taken out.
//
// A host list is no part of it: the filter is made of processes, and the line
// gives the box without any network instead.
func Paste(plan *backends.Plan, environ []string) string {
	var b strings.Builder
	o, ok := plan.Extra.(*own)
	if !ok {
		return ""
	}
	if plan.Network.Value == policy.Restricted {
		b.WriteString("# The hosts of the list cannot be reached this way: kgate puts a filter around\n# the box while it runs, and without it there is no network.\n")
	}
	var made []Hold
	for _, h := range o.Holds {
		if h.Found {
			continue
		}
		made = append(made, h)
		if h.File {
			fmt.Fprintf(&b, "printf %s >%s\n", quote(strings.ReplaceAll(h.Content, "\n", `\n`)), quote(h.Path))
		} else {
			fmt.Fprintf(&b, "mkdir %s\n", quote(h.Path))
		}
	}
	files := map[string]string{} // of a descriptor, by name
	redirections := ""
	if len(plan.Files) > 0 {
		b.WriteString("files=$(mktemp -d)\n")
		for i, f := range plan.Files {
			fmt.Fprintf(&b, "printf %s >\"$files\"/%d\n", quote(octal(f.Content)), i)
			files[f.Name] = fmt.Sprint(9 - i)
			redirections += fmt.Sprintf(" %d<\"$files\"/%d", 9-i, i)
		}
	}
	env, unset := difference(environ, outerEnv(plan.Command.Env))
	var words []string
	if len(env)+len(unset) > 0 {
		words = append(words, "env")
		for _, name := range unset {
			words = append(words, "-u", quote(name))
		}
		for _, e := range env {
			words = append(words, quote(e))
		}
	}
	words = append(words, quote(o.Bwrap))
	lines := []string{strings.Join(words, " ")}
	var command []string
	for _, part := range plan.Parts {
		switch part.Name {
		case "status-fd", "sync-fd", "block-fd":
			continue // what they lead to is kgate
		}
		if len(part.Words) == 0 {
			continue
		}
		var line []string
		for _, w := range part.Words {
			if name, ok := strings.CutPrefix(w, "@"); ok && files[name] != "" && len(command) == 0 && part.Words[0] != setEnv {
				w = files[name]
			}
			line = append(line, quote(w))
		}
		if part.Name == "end" || len(command) > 0 {
			command = append(command, line...)
			continue
		}
		lines = append(lines, strings.Join(line, " "))
	}
	lines = append(lines, strings.Join(command, " "))
	b.WriteString(strings.Join(lines, " \\\n  ") + redirections + "\n")
	if len(made)+len(plan.Files) > 0 {
		b.WriteString("status=$?\n")
		for i := len(made) - 1; i >= 0; i-- {
			word := "rmdir"
			if made[i].File {
				word = "rm -f"
			}
			fmt.Fprintf(&b, "%s %s\n", word, quote(made[i].Path))
		}
		if len(plan.Files) > 0 {
			b.WriteString("rm -r \"$files\"\n")
		}
		b.WriteString("(exit $status)\n")
	}
	return b.String()
}

// octal writes bytes as printf(1) reads them.
func octal(data []byte) string {
	var b strings.Builder
	for _, c := range data {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	return b.String()
}

// difference is what env(1) has to be told to make one environment of another.
func difference(from, to []string) (set, unset []string) {
	have := map[string]string{}
	for _, e := range from {
		name, value, _ := strings.Cut(e, "=")
		have[name] = value
	}
	want := map[string]bool{}
	for _, e := range to {
		name, value, _ := strings.Cut(e, "=")
		want[name] = true
		if old, ok := have[name]; !ok || old != value {
			set = append(set, e)
		}
	}
	for name := range have {
		if !want[name] && name != "_" && name != "" {
			unset = append(unset, name)
		}
	}
	sort.Strings(unset)
	return set, unset
}

// quote writes a word so that sh reads it back as it is.
func quote(word string) string {
	plain := word != ""
	for i := 0; i < len(word); i++ {
		c := word[i]
		plain = plain && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/._-+:,@%", c) >= 0)
	}
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Line is the argument list of a plan as one would type it, part by part.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}
