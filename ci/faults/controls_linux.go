package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// control is a launcher with one defect, as a shell script in kgate's place,
// and the check that must see it. Its arguments are kgate's; $REAL is kgate. The
// next launch, which nobody traces, has three.
type control struct {
	kind   string
	script string
	mode   string
}

var controls = []control{
	{kindUnfiltered, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "off"},
	{kindUnfiltered, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "restricted"},
	{kindRead, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "off"},
	{kindLeft, `[ $# = 3 ] || sleep 60 >/dev/null 2>&1 & "$REAL" "$@"`, "off"},
	{kindFiles, `mkdir -p .envrc; "$REAL" "$@"`, "off"},
	{kindFiles, `"$REAL" "$@"; s=$?; mkdir -p ~/.kgate/run; echo >~/.kgate/run/record; exit $s`, "off"},
	{kindFiles, `"$REAL" "$@"; s=$?; echo >$TMPDIR/kgate-file; exit $s`, "off"},
	{kindFiles, `"$REAL" "$@"; s=$?; rm file; exit $s`, "off"},
	{kindUnlogged, `"$REAL" "$@"; s=$?; rm ~/.kgate/audit*; exit $s`, "off"},
	{kindLog, `"$REAL" "$@"; s=$?; sed -i '$s/launch/lunch/' ~/.kgate/audit.jsonl; exit $s`, "off"},
	{kindSilent, `exit 1`, "off"},
	{kindSilent, `exit 0`, "off"},
	{kindClaim, `"$REAL" "$@"; echo kgate: it did not run >&2; exit 125`, "off"},
	{kindNext, `[ ! -e ../was ] || exit 125; echo >../was; "$REAL" "$@"`, "off"},
	{kindWorks, `echo kgate: not today >&2; exit 125`, "off"},
	{kindWorks, `[ $# = 6 ] || exec "$REAL" "$@"; "$REAL" run --network off -- "$4" "$5" "$6"`, "restricted"},
	{kindHang, `[ $# = 3 ] || sleep 60; "$REAL" "$@"`, "off"},
	{kindMounts, `mount -t tmpfs none ../../tmp; "$REAL" "$@"`, "off"},
}

// controls tries n of them taken at random, or each of them (0), and returns how
// many there were.
func (m *machine) controls(n int) (int, error) {
	shown := 0
	for at, i := range rand.Perm(len(controls)) {
		if n > 0 && at == n {
			break
		}
		c := controls[i]
		if c.kind == kindMounts && os.Geteuid() != 0 {
			continue // nobody else can
		}
		s, err := m.site(c.mode)
		if err != nil {
			return 0, err
		}
		s.kgate = filepath.Join(s.dir, "kgate")
		if err := os.WriteFile(s.kgate, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			return 0, err
		}
		within := 2 * time.Second
		if c.kind == kindHang {
			within = time.Second
		}
		_, found, err := s.try(trial{mode: c.mode, free: atOnce, within: within})
		if err != nil {
			return 0, fmt.Errorf("control %d: %w", i, err)
		}
		if !slices.ContainsFunc(found, func(f finding) bool { return f.kind == c.kind }) {
			return 0, fmt.Errorf("the check %q does not see what this launcher does, so that it is fine shows nothing: %s (seen: %v)", c.kind, c.script, found)
		}
		s.remove()
		if err := m.empty(time.Second); err != nil {
			return 0, fmt.Errorf("the control %s would be every later trial's fault: %w", c.script, err)
		}
		shown++
	}
	return shown, nil
}

// empty waits until the lab has no process of a launch any more: what the
// tracer ended may take a moment to be gone.
func (m *machine) empty(within time.Duration) error {
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		ps, err := m.lab.Processes()
		if err != nil {
			return err
		}
		if ps = others(ps); len(ps) == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("left: %s", strings.Join(ps, ", "))
		}
	}
}
