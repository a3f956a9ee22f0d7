package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// trial is one launch with one thing that goes wrong.
type trial struct {
	name     string
	mode     string
	strike   strike
	free     ending
	warm     bool          // there has been a launch before
	prefix   []string      // a program around the launcher
	silent   bool          // the name servers do not answer
	fails    bool          // the launch must come to nothing
	silences bool          // and these fall silent when the command waits
	within   time.Duration // see order.Within
}

// finding is a check that fails.
type finding struct {
	kind string // see the controls for each
	text string
}

func (f finding) String() string { return f.kind + ": " + f.text }

// The kinds of findings.
const (
	kindUnfiltered = "unfiltered" // the command reached what the policy does not list
	kindRead       = "read"       // or read the home
	kindLeft       = "left"       // processes
	kindMounts     = "mounts"
	kindFiles      = "files"
	kindUnlogged   = "unlogged" // the command ran and the log does not say so
	kindLog        = "log"      // the log is broken
	kindSilent     = "silent"   // no message, or no status
	kindClaim      = "claim"    // the message says what is not so
	kindNext       = "next"     // the next launch does not work
	kindHang       = "hang"
	kindWorks      = "works" // the launch does not work without a strike
)

// try runs a trial and returns what is wrong after it.
func (m *machine) try(t trial) (outcome, []finding, error) {
	s, err := m.site(t.mode)
	if err != nil {
		return outcome{}, nil, err
	}
	defer s.remove()
	if t.warm {
		if status, err := s.do("warm", s.kgate, "run", "--", "true"); err != nil || status != 0 {
			return outcome{}, nil, fmt.Errorf("a launch before the trial: status %d, %w: %s", status, err, s.said("warm"))
		}
	}
	return s.try(t)
}

func (s *site) try(t trial) (outcome, []finding, error) {
	var err error
	if s.before, err = s.tree(); err != nil {
		return outcome{}, nil, err
	}
	lab := s.machine.lab
	if err := lab.Mark(); err != nil {
		return outcome{}, nil, err
	}
	mounts, launches := s.mounts(), s.launches()
	if t.silent {
		if err := lab.Silence(true); err != nil {
			return outcome{}, nil, err
		}
	}
	if t.silences {
		s.atRest = func() error { return lab.Silence(true) }
	}
	o := order{Argv: slices.Concat(t.prefix, []string{s.kgate, "run", "-v", "--"}, s.command()), Strike: t.strike, Within: t.within}
	r, err := s.trace(o, t.free)
	if t.silent || t.silences {
		err = errors.Join(err, lab.Silence(false))
	}
	if err != nil {
		return r, nil, err
	}
	var all []finding
	add := func(kind, format string, args ...any) { all = append(all, finding{kind, fmt.Sprintf(format, args...)}) }

	if a, err := lab.Sinks([]string{"dst=" + unlisted}, false); err != nil {
		return r, nil, err
	} else if a.Count > 0 {
		add(kindUnfiltered, "%s has seen %s", unlisted, strings.Join(a.Lines, "; "))
	}
	if text, _ := os.ReadFile(s.in("read")); strings.Contains(string(text), secret) {
		add(kindRead, "the command has read the home directory")
	}
	if r.Error != "" {
		kind := kindLeft
		if r.Status < 0 {
			kind = kindHang
		}
		add(kind, "%s: %s", r.Error, strings.Join(r.Left, ", "))
	}
	if ps, err := lab.Processes(); err != nil {
		return r, nil, err
	} else if ps = others(ps); len(ps) > 0 && r.Error == "" {
		add(kindLeft, "%s", strings.Join(ps, ", "))
	}
	if now := s.mounts(); now != mounts {
		add(kindMounts, "there were %d, now %d", strings.Count(mounts, "\n"), strings.Count(now, "\n"))
	}
	changed, err := s.changed()
	if err != nil {
		return r, nil, err
	}
	for _, name := range changed {
		// A record of what was made stays, when there was nobody to remove it,
		// until the next launch. What it speaks of does not.
		if !strings.HasPrefix(name, ".kgate/run/") {
			add(kindFiles, "%s", name)
		}
	}
	s.judge(t, r, launches, add)
	s.next(add)
	return r, all, nil
}

// judge looks at what the launch said of itself.
func (s *site) judge(t trial, r outcome, launches int, add func(kind, format string, args ...any)) {
	ran := exists(s.in("ran")) || strings.Contains(s.said("out"), "the command runs")
	said := s.said("err")
	lines := s.launches()
	for line := range strings.Lines(s.said("out")) { // of a launch in namespaces of its own
		if n, ok := strings.CutPrefix(line, "launch lines: "); ok {
			lines, _ = strconv.Atoi(strings.TrimSpace(n))
		}
		switch {
		case strings.HasPrefix(line, "left in the project"):
			add(kindFiles, "%s", strings.TrimSpace(line))
		case strings.HasPrefix(line, "log verify fails"):
			add(kindLog, "after the launch")
		}
	}
	if ran && lines == launches {
		add(kindUnlogged, "the command ran and has no launch line")
	}
	own := strings.HasPrefix(said, "kgate:") || strings.Contains(said, "\nkgate:")
	killed := r.Struck && t.strike.Signal == unix.SIGKILL
	switch {
	case r.Status < 0 || killed && t.strike.Role == "kgate" || t.strike.End == unix.SIGKILL:
		// It did not end, or could not speak.
	case !ran && r.Status == 0:
		add(kindSilent, "status 0, and the command did not run: %q", said)
	case !ran && killed && r.Status == 137 && (t.strike.Role == "command" || t.strike.Role == "bwrap+" || r.Call == "execve" && t.strike.Role == "bwrap++"):
		// To whoever asked it is the command that was killed: so says bwrap.
	case !ran && r.Struck && t.strike.Term > 0 && r.Status > 128:
		// Whoever asked has ended it.
	case !ran && !own && said == "":
		add(kindSilent, "status %d without a message, and the command did not run", r.Status)
	case ran && own && r.Status == 125:
		add(kindClaim, "the command ran, and: %q", said)
	case ran && t.fails:
		add(kindClaim, "the command ran")
	case ran && killed && t.free == never && r.Status == 0:
		add(kindSilent, "status 0 although %s was killed", t.strike.Role)
	case ran && killed && t.free == whenStruck && !r.Late && (r.Call != "exit_group") && filter[t.strike.Role] && !own && exists(s.in("done")):
		add(kindSilent, "%s was killed while the command ran, and nothing says so", t.strike.Role)
	}
	if !r.Struck && t.prefix == nil && !t.fails && t.strike.Term == 0 {
		if r.Status != 0 || !exists(s.in("over")) {
			add(kindWorks, "status %d: %q", r.Status, said)
		}
		allowed, _ := os.ReadFile(s.in("allowed"))
		if t.mode == "restricted" && !strings.Contains(string(allowed), "hello from "+listed) {
			add(kindWorks, "the listed host did not answer: %q", allowed)
		}
	}
}

// filter are the roles without which a command has no network any more.
var filter = map[string]bool{"slirp4netns": true, "hostfilter-gate": true}

// next launches once more, and looks at what is left after that.
func (s *site) next(add func(kind, format string, args ...any)) {
	if status, err := s.do("next", s.kgate, "run", "--", "true"); err != nil || status != 0 {
		add(kindNext, "status %d, %v: %q", status, err, s.said("next"))
	}
	for _, name := range traces {
		os.Remove(s.in(name))
	}
	changed, err := s.changed()
	if err != nil {
		add(kindFiles, "%v", err)
	}
	for _, name := range changed {
		add(kindFiles, "after the next launch: %s", name)
	}
	if status, err := s.do("verify", s.machine.kgate, "log", "verify"); err != nil || status != 0 {
		add(kindLog, "status %d, %v: %q", status, err, s.said("verify"))
	}
}

func (s *site) mounts() string {
	if _, err := s.do("mounts", "cat", "/proc/self/mountinfo"); err != nil {
		return err.Error()
	}
	return s.said("mounts")
}

// others leaves out what is ending already: it has no arguments any more.
func others(processes []string) []string {
	var out []string
	for _, p := range processes {
		if _, argv, _ := strings.Cut(p, ": "); argv != "" {
			out = append(out, filepath.Clean(p))
		}
	}
	return out
}
