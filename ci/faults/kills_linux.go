package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var modes = []string{"off", "restricted"}

// kills are the trials in which one process of a launch gets a signal: a trial
// run counts each role's system calls, and points of them are spread evenly.
func (m *machine) kills(points int) ([]trial, error) {
	var all []trial
	for _, mode := range modes {
		for _, end := range []ending{never, atOnce} {
			steps, err := m.measure(mode, end)
			if err != nil {
				return nil, err
			}
			for role, n := range steps {
				if role == "sh" || strings.HasPrefix(role, "command's") {
					continue // before kgate; the command's own affairs
				}
				free := end
				if end == never && !box(role) {
					free = whenStruck
				}
				for i, step := range spread(n, points) {
					all = append(all, trial{
						name: fmt.Sprintf("kill %s %s %s %d", mode, endings[end], role, step), mode: mode,
						strike: strike{Role: role, Step: step, Signal: unix.SIGKILL}, free: free, warm: i%2 == 1,
					})
				}
				if end == atOnce {
					continue
				}
				if lasting[role] {
					// It is stopped when kgate is killed, and so cannot end by itself.
					all = append(all, trial{name: fmt.Sprintf("freeze %s %s %d", mode, role, n-n/50), mode: mode, free: never,
						strike: strike{Role: role, Step: n - n/50, Signal: unix.SIGSTOP, Term: 500 * time.Millisecond, End: unix.SIGKILL}})
				}
				// A stop costs the time of the stop.
				for i, step := range spread(n, max(1, points/4)) {
					s := strike{Role: role, Step: step, Signal: unix.SIGSTOP, Thaw: 700 * time.Millisecond}
					free, kind := whenStruck, "stop"
					if i%2 == 1 {
						s.Thaw, s.Term, s.End, free, kind = 0, 500*time.Millisecond, unix.SIGTERM, never, "freeze"
						if role == "command" || role == "bwrap++" || strings.HasPrefix(role, "kgate") {
							s.End = unix.SIGKILL // a SIGTERM waits for a stopped process to go on
						}
						if role == "kgate+" {
							// A fork that is no other program yet has open what kgate had, so that
							// nobody is told of kgate's end before it goes on.
							s.Thaw = 1500 * time.Millisecond
						}
					}
					all = append(all, trial{name: fmt.Sprintf("%s %s %s %d", kind, mode, role, step), mode: mode, strike: s, free: free})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b trial) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

var endings = map[ending]string{never: "begin", atOnce: "whole"}

// lasting are the processes that live as long as a launch.
var lasting = map[string]bool{"bwrap": true, "bwrap+": true, "bwrap++": true, "command": true, "slirp4netns": true, "hostfilter-gate": true}

// box says whether the command must end when this role does.
func box(role string) bool {
	return role == "kgate" || strings.HasPrefix(role, "bwrap") || role == "command"
}

// spread picks n of the numbers 1 to total, the first and the last among them.
func spread(total, n int) []int {
	var out []int
	for i := range min(n, total) {
		step := 1
		if n > 1 && total > 1 {
			step = 1 + i*(total-1)/(min(n, total)-1)
		}
		out = append(out, step)
	}
	return slices.Compact(out)
}

// measure counts the system calls of a launch that nothing happens to: until
// the command waits, or all of them.
func (m *machine) measure(mode string, end ending) (map[string]int, error) {
	s, err := m.site(mode)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	free := end
	if end == never {
		free = whenStruck // which it is not; so after a while
	}
	o := order{Argv: append([]string{s.kgate, "run", "-v", "--"}, s.command()...), Steps: true}
	r, err := s.trace(o, free)
	if err != nil || r.Status != 0 || r.Error != "" {
		return nil, fmt.Errorf("a launch without a fault: status %d, %w %s: %s", r.Status, err, r.Error, s.said("err"))
	}
	if end == atOnce {
		return r.Steps, nil
	}
	if r.AtRest == nil {
		return nil, fmt.Errorf("the command was not seen to wait")
	}
	return r.AtRest, nil
}
