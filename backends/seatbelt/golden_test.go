package seatbelt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/verify/sbpl"
)

var update = flag.Bool("update", false, "rewrite the golden profiles")

// questions are all rows of a case: what programs need of any policy, then what
// the case says itself, which counts where both ask the same.
func (c testCase) questions() []row {
	all := append(needs(), c.rows...)
	last := map[string]int{}
	key := func(r row) string {
		if r.ask != nil {
			return ""
		}
		n := sbpl.Net{}
		if r.q.Net != nil {
			n = *r.q.Net
		}
		return fmt.Sprint(r.q.NoRegex, r.q.Op, "\x00", r.q.Path, "\x00", r.q.Name, "\x00", r.q.Target, r.q.Extensions, r.q.Words, n)
	}
	for i, r := range all {
		last[key(r)] = i
	}
	var rows []row
	for i, r := range all {
		if r.ask != nil || last[key(r)] == i {
			rows = append(rows, r)
		}
	}
	return rows
}

// first returns what is wrong with a profile, "" when it answers every question
// right.
func first(p *sbpl.Profile, lists ...[]row) string {
	for _, rows := range lists {
		for _, r := range rows {
			if wrong := r.check(p); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// places are the numbers of a profile's lines in its text.
func places(p *Profile) []int {
	var all []int
	i := 0
	for n, l := range strings.Split(p.Text(), "\n") {
		if i < len(p.Lines) && l == p.Lines[i].Text {
			all, i = append(all, n+1), i+1
		}
	}
	return all
}

// decided sorts rows by the rule that answers them in the whole profile: what
// misses a line is found among its own rows first.
func decided(t *testing.T, profile *Profile, rows []row) map[string][]row {
	p := judge(t, profile.Text())
	by := map[string][]row{}
	for _, r := range rows {
		if r.ask == nil {
			if a := p.Judge(r.q); a.Rule != nil {
				by[a.Rule.Text()] = append(by[a.Rule.Text()], r)
			}
		}
	}
	return by
}

func TestGolden(t *testing.T) {
	if n := len(testCases()); n < 12 {
		t.Fatalf("%d policies", n)
	}
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			got := profileOf(plan(t, c.facts, c.policy)).Text()
			file := filepath.Join("testdata", "golden", c.name+".sb")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the profile is not that of %s (-update rewrites it):\n%s", file, difference(string(want), got))
			}
		})
	}
}

func difference(want, got string) string {
	in := func(s string) map[string]bool {
		m := map[string]bool{}
		for l := range strings.Lines(s) {
			m[l] = true
		}
		return m
	}
	w, g := in(want), in(got)
	var b strings.Builder
	for l := range strings.Lines(want) {
		if !g[l] {
			b.WriteString("- " + l)
		}
	}
	for l := range strings.Lines(got) {
		if !w[l] {
			b.WriteString("+ " + l)
		}
	}
	return b.String()
}

// Every question about every policy has the answer of its plain reading; those about
// a broad denial around an allowed path are clash#295.
func TestExpectations(t *testing.T) {
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			text := profileOf(plan(t, c.facts, c.policy)).Text()
			p := judge(t, text)
			for _, r := range c.questions() {
				if wrong := r.check(p); wrong != "" {
					t.Error(wrong)
				}
			}
		})
	}
}

// What is denied under its own name stays denied however regular expressions are
// read: the literal and the subpath of a denial are not there for show.
func TestDenialsDoNotRestOnExpressions(t *testing.T) {
	asked := 0
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			p := judge(t, profileOf(plan(t, c.facts, c.policy)).Text())
			for _, d := range c.policy.DenyRead {
				at := c.facts.Follow(d.Name).Path
				for _, name := range []string{at, at + "/x"} {
					for _, op := range strings.Fields(everyFile) {
						asked++
						q := sbpl.Query{Op: op, Path: name, Type: sbpl.Regular, NoRegex: true}
						if a := p.Judge(q); a.Verdict != sbpl.Deny {
							t.Errorf("%s %s: %v", op, name, a)
						}
					}
				}
			}
			for _, e := range c.policy.Programs {
				asked++
				q := sbpl.Query{Op: "process-exec", Path: c.facts.Follow(e.Path).Path, Type: sbpl.Regular, NoRegex: true}
				if a := p.Judge(q); a.Verdict != sbpl.Deny {
					t.Errorf("exec %s: %v", e.Path, a)
				}
			}
		})
	}
	if asked < 100 {
		t.Errorf("only %d questions", asked)
	}
}

// Take any one line out of any profile, and a question has the wrong answer: no
// line is there that nothing needs, and none can be lost unseen.
func TestEveryLineIsNeeded(t *testing.T) {
	mutate(t, func(line string) []string { return []string{""} })
}

// The same for each operation and each filter within a line.
func TestEveryWordIsNeeded(t *testing.T) { mutate(t, shorter) }

// mutate puts other rules in the place of each line of each profile and wants
// some question to notice.
func mutate(t *testing.T, others func(line string) []string) {
	mutants := 0
	for _, c := range testCases() {
		t.Run(c.name, func(t *testing.T) {
			profile := profileOf(plan(t, c.facts, c.policy))
			at := places(profile)
			if len(at) != len(profile.Lines) {
				t.Fatalf("%d lines, %d found in the text", len(profile.Lines), len(at))
			}
			rows := c.questions()
			own := decided(t, profile, rows)
			whole := judge(t, profile.Text())
			for i, l := range profile.Lines {
				if strings.HasPrefix(l.Text, "(version") {
					continue // without it nothing compiles
				}
				for _, other := range others(l.Text) {
					mutants++
					m, err := whole.Replace(at[i], other)
					if err == nil && first(m, own[l.Text], rows) == "" {
						t.Errorf("nothing tells %q from %s", other, l.Text)
					}
				}
			}
		})
	}
	if mutants < 2000 {
		t.Errorf("only %d mutants", mutants)
	}
	t.Logf("%d mutants", mutants)
}

// shorter are the rules that lack one operation or one filter of a rule.
func shorter(rule string) []string {
	words := split(strings.TrimSuffix(strings.TrimPrefix(rule, "("), ")"))
	if len(words) < 3 {
		return nil
	}
	ops, filters := 0, 0
	for _, w := range words[1:] {
		if strings.HasPrefix(w, "(") {
			filters++
		} else {
			ops++
		}
	}
	var all []string
	for i := 1; i < len(words); i++ {
		filter := strings.HasPrefix(words[i], "(")
		if filter && filters == 1 || !filter && ops == 1 {
			continue // the whole line, or a rule for every object, is another mutant
		}
		all = append(all, "("+strings.Join(append(append([]string{}, words[:i]...), words[i+1:]...), " ")+")")
	}
	return all
}

// split cuts a rule at the blanks outside parentheses and strings.
func split(s string) []string {
	var words []string
	depth, start, quoted, raw := 0, 0, false, false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\' && !raw:
			i++
		case s[i] == '"':
			raw = !quoted && i > 0 && s[i-1] == '#'
			quoted = !quoted
		case quoted:
		case s[i] == '(':
			depth++
		case s[i] == ')':
			depth--
		case s[i] == ' ' && depth == 0:
			words, start = append(words, s[start:i]), i+1
		}
	}
	return append(words, s[start:])
}
