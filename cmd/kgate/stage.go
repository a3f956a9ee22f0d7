package main

import (
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/backends/seatbelt"
	"github.com/kgate-dev/kgate/launcher/terminal"
	"github.com/kgate-dev/kgate/verify"
)

// stage runs one of kgate's own inner processes when argv names one: programs
// that kgate starts from its own file inside a namespace it has just made. They
// are told apart by their first argument, before any command is parsed. None of
// them does anything that a person could not do without kgate.
func stage(argv []string) (status int, ok bool) {
	if status, ok := verify.Stage(argv); ok {
		return status, true
	}
	if len(argv) < 2 {
		return 0, false
	}
	run, ok := stages[argv[1]]
	if !ok {
		return 0, false
	}
	return run(argv[2:]), true
}

var stages = map[string]func(args []string) int{
	hostfilter.GateName: func([]string) int { return hostfilter.Gate() },
	seatbelt.StageName:  seatbelt.Stage,
	terminal.StageName:  terminal.Stage,
}
