package main

import (
	"fmt"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/seatbelt"
)

// planRule is one rule of a Seatbelt profile, for programs.
type planRule struct {
	Rule string `json:"rule"`
	Why  string `json:"why"`
	From string `json:"from"`
}

// planRules are the rules of a plan's profile; none for a plan without one.
func planRules(plan *backends.Plan) []planRule {
	profile, ok := plan.Extra.(*seatbelt.Profile)
	if !ok {
		return nil
	}
	var rules []planRule
	for _, l := range profile.Lines {
		rules = append(rules, planRule{l.Text, l.Why, l.From.String()})
	}
	return rules
}

// profileText is a plan's profile for people: each rule below its reason and its
// origin, both in Seatbelt's own language.
func profileText(plan *backends.Plan) string {
	var b strings.Builder
	last := ""
	for _, r := range planRules(plan) {
		note := fmt.Sprintf("; %s (%s)\n", oneLine(r.Why), oneLine(r.From))
		if note != last {
			b.WriteString(note)
			last = note
		}
		b.WriteString(oneLine(r.Rule) + "\n")
	}
	return b.String()
}
