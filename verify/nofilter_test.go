//go:build linux

package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// openKgate is a kgate that makes a box and filters nothing.
func openKgate(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kgate")
	text := fmt.Sprintf(`#!/bin/sh
case ${0##*/} in kgate-probe) exec %[1]s verify-probe "$@";; esac
case $1 in
verify-*) exec %[1]s "$@";;
doctor) echo '{"rows": []}';;
run) while [ "$1" != -- ]; do shift; done; shift; exec %[1]s verify-bare -6 -- "$@";;
esac
`, self)
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestScenariosNeedTheFilter runs the scenarios about the host list with a
// kgate that filters nothing: those about a listed host pass, every other one
// fails, and does so after its positive control passed.
func TestScenariosNeedTheFilter(t *testing.T) {
	if err := probes["hostfilter"](); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "hostfilter") {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	kgate := openKgate(t)
	scripts := os.DirFS("../testdata/scripts")
	c := Config{Scripts: scripts, Kgate: kgate}
	all, err := c.every()
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, s := range all {
		if !slices.Contains(s.Proves, "network restricted") && !strings.HasPrefix(s.Name, "net-") {
			continue
		}
		switch s.Name {
		case "net-many": // does fifty times what other-host-refused does once
			continue
		case "net-expiry": // would wait for minutes for what does not come
			continue
		}
		tried++
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			o := c.one(s, filepath.Join("../testdata/scripts", s.Name+".txtar"))
			switch {
			case s.Name == "host-allowed", s.Name == "net-follows":
				// These are about what must work.
				if o.Result == Skip {
					t.Errorf("skipped: %s", o.Reason)
				}
			case o.Result != Fail:
				t.Errorf("without a filter it says %s", o.Result)
			case len(o.Evidence) == 0 || !strings.Contains(o.Log, "> "):
				t.Errorf("it failed before its control: %s", o.Log)
			case strings.Contains(o.Reason, "usage:") || strings.Contains(o.Reason, "unknown command"):
				t.Errorf("the script is wrong: %s", o.Reason)
			default:
				t.Log(o.Reason)
			}
		})
	}
	if tried < 10 {
		t.Errorf("only %d scenarios are about the host list", tried)
	}
}
