package policy

import "strings"

// Dropped is a variable that the command does not get. Its value is left out
// on purpose: what is printed about it must not show it.
type Dropped struct {
	Name    string
	Pattern string // the pattern of env.drop that took it
	From    Origin
}

// Environment splits env ("NAME=VALUE") into what the command gets, in the
// same order, and what is dropped. A pattern of env.pass beats one of
// env.drop, except a drop that the project's file asked for: the project may
// narrow what the person passes.
func (p *Policy) Environment(env []string) (kept []string, dropped []Dropped) {
	kept = make([]string, 0, len(env))
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if w, ok := p.drops(name); ok {
			dropped = append(dropped, Dropped{name, w.Text, w.From})
			continue
		}
		kept = append(kept, e)
	}
	return kept, dropped
}

func (p *Policy) drops(name string) (Word, bool) {
	var drop Word
	found := false
	upper := strings.ToUpper(name)
	for _, w := range p.EnvDrop {
		if found && w.From.Kind != FromProject {
			continue
		}
		if !glob(strings.ToUpper(w.Text), upper) {
			continue
		}
		if w.From.Kind == FromProject {
			return w, true
		}
		drop, found = w, true
	}
	if !found {
		return Word{}, false
	}
	for _, w := range p.EnvPass {
		if glob(w.Text, name) {
			return Word{}, false
		}
	}
	return drop, true
}

// glob reports whether the whole of s matches pattern, in which * stands for
// any text and ? for one byte; nothing else is special. It takes time
// proportional to the product of the lengths at worst.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(s) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, mark = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
