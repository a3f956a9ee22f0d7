package verify

import (
	"flag"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

const usageGone = "gone [-now]"

func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "gone")
	var now bool
	args = options(ts, usageGone, args, func(f *flag.FlagSet) { f.BoolVar(&now, "now", false, "") })
	if len(args) != 0 {
		ts.Fatalf("usage: %s", usageGone)
	}
	d := 5 * time.Second
	if now {
		d = 0
	}
	s := of(ts)
	var left []string
	var err error
	if !poll(d, func() bool {
		left, err = s.left()
		return err != nil || len(left) == 0
	}) {
		ts.Fatalf("still there:\n%s", strings.Join(left, "\n"))
	}
	ts.Check(err)
	s.evidence("no process left")
}

// left lists the processes of this script that are still there.
func (s *script) left() ([]string, error) {
	left, err := processesOf(s.work)
	if err != nil || s.lab == nil {
		return left, err
	}
	inside, err := s.lab.Processes()
	return append(left, inside...), err
}
