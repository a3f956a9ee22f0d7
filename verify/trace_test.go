package verify

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTrace has a command ask a server, and another one ask nobody, and looks
// for the packets beside the steps.
func TestTrace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var trace Trace
	result, log := outcome(t, `[!lab] skip
status -out 0 true
lab up
status 0 ./kgate-probe tcp 203.0.113.10 9999
status 7 sh -c 'exit 7'
start a sleep 20
packets outer dst=203.0.113.10
shows $WORK/a
`, Options{Kgate: self, Trace: &trace})
	if result == "skip" && !strings.Contains(os.Getenv("KGATE_MUST"), "lab") {
		t.Skip(log)
	}
	if result != "pass" {
		t.Fatal(log)
	}
	type short struct {
		kind    StepKind
		words   string
		status  int
		watched bool
	}
	var steps []short
	for _, s := range trace.Steps {
		if s.From.IsZero() || s.To.Before(s.From) {
			t.Errorf("%q from %v to %v", s.Words, s.From, s.To)
		}
		steps = append(steps, short{s.Kind, strings.Join(s.Words, " "), s.Status, s.Watched})
	}
	want := []short{
		{StepRun, "true", 0, false},
		{StepRun, "./kgate-probe tcp 203.0.113.10 9999", 0, true},
		{StepRun, "sh -c exit 7", 7, true},
		{StepStart, "sleep 20", 0, true},
	}
	if len(steps) != len(want)+2 || !slices.Equal(steps[:len(want)], want) || steps[5].words != "$WORK/a" || steps[4].kind != StepSeen {
		t.Errorf("steps: %v", steps)
	}
	asked, answered := false, false
	for _, p := range trace.Packets {
		if p.Link != "outer" || p.Data != nil {
			t.Errorf("a packet on %q with %d bytes kept", p.Link, len(p.Data))
		}
		if p.Is("tcp") && p.Time.After(trace.Steps[1].From) && p.Time.Before(trace.Steps[2].From) {
			asked = asked || p.DstPort == 9999
			answered = answered || p.SrcPort == 9999
		}
	}
	if !asked || !answered || trace.Labs != 1 {
		t.Errorf("asked %v, answered %v, %d labs", asked, answered, trace.Labs)
	}
}
