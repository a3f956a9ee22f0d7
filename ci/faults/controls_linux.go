package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// control is a launcher with one defect, as a shell script in kgate's place,
// and the check that must see it. Its arguments are kgate's; $REAL is kgate.
type control struct {
	kind   string
	script string
	mode   string
}

var controls = []control{
	{kindUnfiltered, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "off"},
	{kindUnfiltered, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "restricted"},
	{kindRead, `while [ "$1" != -- ]; do shift; done; shift; exec "$@"`, "off"},
	{kindLeft, `sleep 60 >/dev/null 2>&1 & "$REAL" "$@"`, "off"},
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
	{kindHang, `sleep 60; "$REAL" "$@"`, "off"},
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
		shown++
	}
	return shown, nil
}
