package verify

import (
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type command = func(ts *testscript.TestScript, neg bool, args []string)

func commands() map[string]command {
	cmds := map[string]command{
		"status":     cmdStatus,
		"start":      cmdStart,
		"signal":     cmdSignal,
		"finish":     cmdFinish,
		"eventually": cmdEventually,
		"json":       cmdJSON,
		"snapshot":   cmdSnapshot,
		"unchanged":  cmdUnchanged,
		"gone":       cmdGone,
		"shows":      cmdShows,
	}
	for name, cmd := range labCommands() {
		cmds[name] = cmd
	}
	for name, cmd := range attackCommands() {
		cmds[name] = cmd
	}
	return cmds
}

// never refuses the "!" that a command has no meaning for.
func never(ts *testscript.TestScript, neg bool, name string) {
	if neg {
		ts.Fatalf("unsupported: ! %s", name)
	}
}

// options parses the flags of a script command.
func options(ts *testscript.TestScript, usage string, args []string, define func(*flag.FlagSet)) []string {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	define(f)
	if err := f.Parse(args); err != nil {
		ts.Fatalf("usage: %s: %v", usage, err)
	}
	return f.Args()
}

const usageStatus = "status [-in FILE] [-out] N CMD [ARG...]"

func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	var in string
	var out bool
	args = options(ts, usageStatus, args, func(f *flag.FlagSet) {
		f.StringVar(&in, "in", "", "")
		f.BoolVar(&out, "out", false, "")
	})
	if len(args) < 2 {
		ts.Fatalf("usage: %s", usageStatus)
	}
	s := of(ts)
	var got int
	from := time.Now()
	if (s.lab != nil && !out) || in != "" {
		got = s.run(ts, in, out, args[1:])
	} else {
		got = exitStatus(ts, ts.Exec(args[1], args[2:]...))
	}
	s.traced(Step{From: from, Kind: StepRun, Words: slices.Clone(args[1:]), Status: got, Watched: s.lab != nil && !out})
	if statusIs(ts, args[0], got) == neg {
		ts.Fatalf("exit status %d, want %s%s", got, map[bool]string{true: "any but "}[neg], args[0])
	}
}

// statusIs tells whether an exit status is what a script asked for.
func statusIs(ts *testscript.TestScript, want string, got int) bool {
	if want == "any" {
		return true
	}
	number, not := strings.CutPrefix(want, "!")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > 255 {
		ts.Fatalf("not an exit status: %q", want)
	}
	return (got == n) != not
}

// exitStatus is the status a shell would report: 128+n for a signal.
func exitStatus(ts *testscript.TestScript, err error) int {
	if err == nil {
		return 0
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return exit.ExitCode()
}

// run runs a command whose streams are files, in the lab if there is one, and
// hands its output to stdout and stderr.
func (s *script) run(ts *testscript.TestScript, in string, out bool, argv []string) int {
	p, err := s.launch(ts, in, out, argv, filepath.Join(s.work, ".run"))
	ts.Check(err)
	got, err := p.wait(time.Minute)
	p.copy(ts)
	ts.Check(err)
	return got
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "start")
	if len(args) < 2 {
		ts.Fatalf("usage: start NAME CMD [ARG...]")
	}
	s := of(ts)
	if s.procs[args[0]] != nil {
		ts.Fatalf("%s is running already", args[0])
	}
	from := time.Now()
	p, err := s.launch(ts, "", false, args[1:], filepath.Join(s.work, args[0]))
	ts.Check(err)
	s.traced(Step{From: from, Kind: StepStart, Words: slices.Clone(args[1:]), Watched: s.lab != nil})
	s.mu.Lock()
	s.procs[args[0]] = p
	s.mu.Unlock()
}

func (s *script) started(ts *testscript.TestScript, name string) *process {
	p := s.procs[name]
	if p == nil {
		ts.Fatalf("nothing was started as %q", name)
	}
	return p
}

const usageSignal = "signal [-group] SIG NAME"

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "signal")
	var group bool
	args = options(ts, usageSignal, args, func(f *flag.FlagSet) { f.BoolVar(&group, "group", false, "") })
	if len(args) != 2 {
		ts.Fatalf("usage: %s", usageSignal)
	}
	sig := signalNumber(strings.TrimPrefix(args[0], "SIG"))
	if sig == 0 {
		ts.Fatalf("no such signal: %q", args[0])
	}
	ts.Check(of(ts).started(ts, args[1]).signal(sig, group))
}

func cmdFinish(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "finish")
	if len(args) != 2 {
		ts.Fatalf("usage: finish NAME N")
	}
	s := of(ts)
	p := s.started(ts, args[0])
	got, err := p.wait(20 * time.Second)
	p.copy(ts)
	ts.Check(err)
	s.mu.Lock()
	delete(s.procs, args[0])
	s.mu.Unlock()
	if !statusIs(ts, args[1], got) {
		ts.Fatalf("%s: exit status %d, want %s", args[0], got, args[1])
	}
}

const usageEventually = "eventually [-for D] exists FILE | absent FILE | grep REGEX FILE | run CMD [ARG...]"

func cmdEventually(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "eventually")
	d := 10 * time.Second
	args = options(ts, usageEventually, args, func(f *flag.FlagSet) { f.DurationVar(&d, "for", d, "") })
	if len(args) < 2 || (args[0] == "grep") != (len(args) == 3) && args[0] != "run" {
		ts.Fatalf("usage: %s", usageEventually)
	}
	var holds func() bool
	switch args[0] {
	case "exists", "absent":
		file := ts.MkAbs(args[1])
		holds = func() bool {
			_, err := os.Lstat(file)
			return (err == nil) == (args[0] == "exists")
		}
	case "grep":
		re, err := regexp.Compile("(?m)" + args[1])
		ts.Check(err)
		file := ts.MkAbs(args[2])
		holds = func() bool {
			text, err := os.ReadFile(file)
			return err == nil && re.Match(text)
		}
	case "run":
		holds = func() bool { return of(ts).run(ts, "", false, args[1:]) == 0 }
	default:
		ts.Fatalf("usage: %s", usageEventually)
	}
	if !poll(d, holds) {
		ts.Fatalf("not within %v: %s", d, strings.Join(args, " "))
	}
}

// poll tries at ever longer steps until holds does, or the time is over.
func poll(d time.Duration, holds func() bool) bool {
	end := time.Now().Add(d)
	for step := 2 * time.Millisecond; ; step = min(step*3/2, 100*time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(step)
	}
}

func cmdShows(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "shows")
	of(ts).evidence("%s", strings.Join(args, " "))
}
