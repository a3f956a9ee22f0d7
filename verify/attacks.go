package verify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgate-dev/kgate/verify/lab"
)

// Attacks counts what became of the attacks of a scenario, or of all.
type Attacks struct {
	Tried    int `json:"tried"`    // distinct attacks made on a box or on kgate
	Held     int `json:"held"`     // those that got nothing
	Controls int `json:"controls"` // those shown to work where nothing stands in their way
	Limits   int `json:"limits"`   // those that get through, as the documents say
}

func (a *Attacks) add(b Attacks) {
	a.Tried += b.Tried
	a.Held += b.Held
	a.Controls += b.Controls
	a.Limits += b.Limits
}

func (a Attacks) String() string {
	text := fmt.Sprintf("%d attacks: %d held, %d of %d shown to work without the box", a.Tried, a.Held, a.Controls, a.Tried)
	if a.Limits > 0 {
		text += fmt.Sprintf(", %d known limits", a.Limits)
	}
	return text
}

// tally is what a script has shown of its attacks, by their names.
type tally struct {
	worked  map[string]bool   // without the box
	held    map[string]bool   // with it
	limits  map[string]bool   // got through, and it is said that they do
	excused map[string]string // why a control cannot be shown everywhere
	failed  map[string]string // what a control that did not work said
}

func (s *script) attacks() *tally {
	if s.tally == nil {
		s.tally = &tally{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]string{}}
	}
	return s.tally
}

func attackCommands() map[string]command {
	return map[string]command{
		"control":   cmdControl,
		"held":      cmdHeld,
		"limit":     cmdLimit,
		"nocontrol": cmdNoControl,
		"tally":     cmdTally,
	}
}

// through and held are the lines that a program which attacks prints.
var verdictLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^(through|held) ([a-z0-9][a-z0-9-]*)(?:: (.*))?\r?$`)
})

// said reads those lines from what the last command printed.
func said(ts *testscript.TestScript) (through []string, held map[string]string) {
	held = map[string]string{}
	for _, m := range verdictLine().FindAllStringSubmatch(ts.ReadFile("stdout"), -1) {
		if m[1] == "through" {
			through = append(through, m[2])
		} else {
			held[m[2]] = m[3]
		}
	}
	if len(through)+len(held) == 0 {
		ts.Fatalf("no line says what became of an attack")
	}
	return through, held
}

// cmdControl notes that attacks work without the box: those that are named, by
// what the script found before, those that the last command says came through, or
// those that a witness saw.
func cmdControl(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "control")
	t := of(ts).attacks()
	through := args
	if by := slices.Index(args, "by"); by > 0 {
		through = of(ts).seen(ts, args[:by], args[by+1:])
	} else if len(args) == 0 {
		var not map[string]string
		through, not = said(ts)
		for name, why := range not {
			t.failed[name] = why
		}
	}
	for _, name := range through {
		t.worked[name] = true
		delete(t.failed, name)
	}
}

// seen asks a witness for each of the attacks, whose name stands for NAME in the
// question, and returns those that it saw something of.
func (s *script) seen(ts *testscript.TestScript, names, question []string) (through []string) {
	if len(question) < 2 || question[0] != "packets" && question[0] != "sink" {
		ts.Fatalf("usage: control NAME... by packets box|outer|any KEY=VALUE... | by sink KEY=VALUE...")
	}
	l := s.needLab(ts)
	for _, name := range names {
		var words []string
		for _, w := range question[1:] {
			words = append(words, strings.ReplaceAll(w, "NAME", name))
		}
		var a lab.Answer
		var err error
		if question[0] == "sink" {
			a, err = l.Sinks(words, true)
		} else {
			// All has been sent, and there is nothing to wait for.
			a, err = l.Packets(words[0], words[1:], false)
		}
		ts.Check(err)
		if a.Count > 0 {
			through = append(through, name)
			continue
		}
		s.attacks().failed[name] = fmt.Sprintf("%s %s: none of %d", question[0], strings.Join(words, " "), a.Total)
	}
	s.evidence("without a filter: %s: %d of %d seen", strings.Join(question, " "), len(through), len(names))
	return through
}

// cmdHeld notes that attacks got nothing from a box.
func cmdHeld(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "held")
	t := of(ts).attacks()
	if len(args) == 0 {
		through, held := said(ts)
		if len(through) > 0 {
			ts.Fatalf("got through: %s", strings.Join(through, ", "))
		}
		for name := range held {
			args = append(args, name)
		}
	}
	for _, name := range args {
		t.held[name] = true
	}
}

// cmdLimit notes that attacks get through, as the documents say: the scenario
// fails when one no longer does, so that they do not say it for ever.
func cmdLimit(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "limit")
	t := of(ts).attacks()
	if len(args) == 0 {
		through, held := said(ts)
		if len(held) > 0 {
			ts.Fatalf("held, although it is said not to: %v", held)
		}
		args = through
	}
	for _, name := range args {
		t.limits[name] = true
		t.worked[name] = true
	}
}

// cmdNoControl says why the control of some attacks need not work everywhere.
func cmdNoControl(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "nocontrol")
	if len(args) < 2 {
		ts.Fatalf("usage: nocontrol WHY NAME...")
	}
	for _, name := range args[1:] {
		of(ts).attacks().excused[name] = args[0]
	}
}

// cmdTally holds each attack against its control and adds up.
func cmdTally(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "tally")
	s := of(ts)
	a, err := s.attacks().sum()
	ts.Check(err)
	s.evidence("%s", a)
	if s.opts.Attacks != nil {
		s.opts.Attacks(s.name, a)
	}
}

func (t *tally) sum() (Attacks, error) {
	var a Attacks
	var wrong []string
	for name := range t.held {
		a.Tried++
		a.Held++
		switch {
		case t.limits[name]:
			wrong = append(wrong, name+": both held and a limit")
		case t.worked[name]:
			a.Controls++
		case t.excused[name] == "":
			wrong = append(wrong, strings.TrimSuffix(name+": not shown to work without the box: "+t.failed[name], ": "))
		}
	}
	for range t.limits {
		a.Tried++
		a.Controls++
		a.Limits++
	}
	for name := range t.worked {
		if !t.held[name] && !t.limits[name] {
			wrong = append(wrong, name+": works without the box, and was not tried on it")
		}
	}
	for name := range t.excused {
		if !t.held[name] {
			wrong = append(wrong, name+": excused from a control, and was not tried")
		}
	}
	if a.Tried == 0 {
		wrong = append(wrong, "no attack was made")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return a, fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return a, nil
}

// sum adds up the attacks of scenarios that passed; nil if there were none.
func sum(scenarios []Outcome) *Attacks {
	var all *Attacks
	for _, o := range scenarios {
		if o.Attacks == nil || o.Result != Pass {
			continue
		}
		if all == nil {
			all = &Attacks{}
		}
		all.add(*o.Attacks)
	}
	return all
}
