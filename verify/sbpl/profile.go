package sbpl

import (
	"fmt"
	"strings"
)

// Rule is one operation of one rule of the profile.
type Rule struct {
	Allow bool
	Op    string
	Line  int // 1-based

	source expr
	filter filter // nil: the rule has no filter
}

// Text spells the whole rule on one line, without its modifiers.
func (r *Rule) Text() string {
	e := expr{kind: list}
	for _, arg := range r.source.list {
		if arg.head() != "with" {
			e.list = append(e.list, arg)
		}
	}
	return e.source()
}

func (r *Rule) String() string { return fmt.Sprintf("line %d: %s", r.Line, r.Text()) }

// Profile is a profile that has been read.
type Profile struct {
	rules    map[string][]*Rule // by operation, in the order of the file
	imported bool               // the rules of another file apply too
}

// modifiers that change what is logged, not what is allowed.
var quiet = map[string]bool{"report": true, "no-report": true, "no-log": true, "message": true, "telemetry": true}

// Parse reads a profile. Its error is a *RefusedError or a *NotUnderstoodError.
func Parse(profile string) (*Profile, error) {
	all, err := read(profile)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].head() != "version" {
		return nil, &RefusedError{1, "a profile begins with (version 1)"}
	}
	p := &Profile{rules: map[string][]*Rule{}}
	for i, e := range all {
		switch e.head() {
		case "version":
			if i != 0 || len(e.list) != 2 || e.list[1].text != "1" {
				return nil, &RefusedError{e.line, "only (version 1), and only once, is a version"}
			}
		case "import":
			p.imported = true
		case "debug":
		case "allow", "deny":
			if err := p.rule(e); err != nil {
				return nil, err
			}
		default:
			return nil, &NotUnderstoodError{e.line, fmt.Sprintf("the form %q", e.head())}
		}
	}
	return p, nil
}

func (p *Profile) rule(e expr) error {
	var ops []string
	var filters []filter
	for _, arg := range e.list[1:] {
		switch {
		case arg.kind == symbol:
			if len(filters) > 0 {
				return &NotUnderstoodError{arg.line, fmt.Sprintf("the word %q after a filter", arg.text)}
			}
			if !IsOperation(arg.text) {
				return &RefusedError{arg.line, fmt.Sprintf("unbound variable: %s", arg.text)}
			}
			ops = append(ops, arg.text)
		case arg.head() == "with":
			if len(arg.list) < 2 || !quiet[arg.list[1].text] {
				return &NotUnderstoodError{arg.line, "a modifier that may change the verdict"}
			}
		case arg.kind == list:
			f, err := parseFilter(arg)
			if err != nil {
				return err
			}
			filters = append(filters, f)
		default:
			return &RefusedError{arg.line, "a string where an operation or a filter belongs"}
		}
	}
	if len(ops) == 0 {
		return &RefusedError{e.line, "a rule without an operation"}
	}
	var f filter
	switch len(filters) {
	case 0:
	case 1:
		f = filters[0]
	default:
		f = anyOf(filters)
	}
	for _, op := range ops {
		if f != nil && op == "default" {
			return &NotUnderstoodError{e.line, "default with a filter"}
		}
		p.rules[op] = append(p.rules[op], &Rule{
			Allow: e.list[0].text == "allow", Op: op, Line: e.line, source: e, filter: f,
		})
	}
	return nil
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// source spells the expression again.
func (e expr) source() string {
	switch e.kind {
	case symbol:
		return e.text
	case raw:
		return `#"` + e.text + `"`
	case text:
		return `"` + escape.Replace(e.text) + `"`
	}
	var parts []string
	for _, sub := range e.list {
		parts = append(parts, sub.source())
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// Replace returns the profile with the rule that starts on a line replaced by
// another one, or taken out when rule is "". It is how a mutant is made without
// reading the whole profile again.
func (p *Profile) Replace(line int, rule string) (*Profile, error) {
	with := &Profile{rules: map[string][]*Rule{}}
	if rule != "" {
		all, err := read(strings.Repeat("\n", line-1) + rule)
		if err != nil {
			return nil, err
		}
		if len(all) != 1 || all[0].head() != "allow" && all[0].head() != "deny" {
			return nil, &NotUnderstoodError{line, "not one rule"}
		}
		if err := with.rule(all[0]); err != nil {
			return nil, err
		}
	}
	out := &Profile{rules: make(map[string][]*Rule, len(p.rules)), imported: p.imported}
	for op, rules := range p.rules {
		n := with.rules[op]
		changed := len(n) > 0
		for _, r := range rules {
			changed = changed || r.Line == line
		}
		if !changed {
			out.rules[op] = rules
			continue
		}
		var list []*Rule
		for _, r := range rules {
			if r.Line > line {
				list, n = append(list, n...), nil
			}
			if r.Line != line {
				list = append(list, r)
			}
		}
		out.rules[op] = append(list, n...)
	}
	for op, rules := range with.rules {
		if _, ok := p.rules[op]; !ok {
			out.rules[op] = rules
		}
	}
	return out, nil
}
