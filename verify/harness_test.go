package verify

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if status, ok := Stage(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// outcome runs one script's text and returns its result: "pass", "fail" or
// "skip", with what was said.
func outcome(t *testing.T, text string, o Options) (string, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.txtar")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Files = []string{file}
	if o.Kgate == "" {
		o.Kgate = "/bin/true"
	}
	r := runScript(Params(o))
	return string(r.Result), r.Log
}

// TestHarnessCommands runs the scenario about the harness itself.
func TestHarnessCommands(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, Params(Options{Kgate: self, Files: []string{
		"../testdata/scripts/harness-commands.txtar",
		"../testdata/scripts/harness-lab.txtar",
	}}))
}

// TestHarnessFails shows that each command can fail: a harness that cannot
// finds nothing.
func TestHarnessFails(t *testing.T) {
	for _, tc := range []struct{ name, script, want string }{
		{"status", "status 1 true", "exit status 0, want 1"},
		{"status of a signal", "status 0 sh -c 'kill -KILL $$'", "exit status 137, want 0"},
		{"status not a number", "status fail false", "not an exit status"},
		{"status negated", "status !0 true", "exit status 0, want !0"},
		{"status negated before", "! status 0 true", "exit status 0, want any but 0"},
		{"finish", "start a sh -c 'exit 4'\nfinish a 0", "exit status 4, want 0"},
		{"finish nothing", "finish a 0", "nothing was started"},
		{"eventually", "eventually -for 50ms exists nothing", "not within"},
		{"eventually run", "eventually -for 50ms run false", "not within"},
		{"json value", "json j a 2\n-- proj/j --\n{\"a\":1}", `a is "1", want "2"`},
		{"json key", "json j b 2\n-- proj/j --\n{\"a\":1}", `no key "b"`},
		{"json negated", "! json j a 1\n-- proj/j --\n{\"a\":1}", `a is "1"`},
		{"json not json", "! json j a 1\n-- proj/j --\nhello", "not JSON"},
		{"left behind", "snapshot .\nmkdir new\nunchanged", "left behind: "},
		{"removed", "snapshot .\nrm a\nunchanged\n-- proj/a --\n", "removed: "},
		{"changed", "snapshot .\ncp b a\nunchanged\n-- proj/a --\n1\n-- proj/b --\n2\n", "changed: "},
		{"gone", "start a sleep 20\ngone -now", "still there"},
		{"lab sink", "[!lab] skip\nlab up\nsink proto=tcp", "none of 0, want some"},
		{"lab sink negated", "[!lab] skip\nlab up\nstatus 0 ./kgate-probe tcp 203.0.113.10 9999\nsink ! proto=tcp", "1, want none"},
		{"lab packets", "[!lab] skip\nlab up\npackets outer proto=tcp", "want some"},
		{"lab packets negated", "[!lab] skip\nlab up\nstatus 0 ./kgate-probe tcp 203.0.113.10 9999\npackets outer ! proto=tcp", "want none"},
		{"lab box", "[!lab] skip\nlab up\npackets box ! proto=tcp", "no box was there"},
		{"lab dnsseen", "[!lab] skip\nlab up\nstatus 0 ./kgate-probe dns a.attacker.test\n! dnsseen attacker.test", "want none"},
		{"lab gone", "[!lab] skip\nlab up\nstart a sleep 20\ngone -now", "still there"},
		{"lab bad key", "[!lab] skip\nlab up\nsink colour=red", "no key"},
		{"no lab", "sink proto=tcp", "lab up first"},
		{"unknown condition", "[nonsense] stop", "no such condition"},
		{"must", "[seatbelt] stop", "must hold, but"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Kgate: self}
			if tc.name == "must" {
				if runtime.GOOS != "linux" {
					t.Skip("the condition holds here")
				}
				o.Must = []string{"seatbelt"}
			}
			result, log := outcome(t, tc.script, o)
			if result == "skip" && !strings.Contains(os.Getenv("KGATE_MUST"), "lab") {
				t.Skip(log)
			}
			if result != "fail" || !strings.Contains(log, tc.want) {
				t.Errorf("%s:\n%s\nwant a failure with %q", result, log, tc.want)
			}
		})
	}
}

func TestSkipIsNoPass(t *testing.T) {
	result, log := outcome(t, "skip 'no such kernel'", Options{})
	if result != "skip" || !strings.Contains(log, "no such kernel") {
		t.Errorf("got %s %q", result, log)
	}
}

func TestDescribe(t *testing.T) {
	s := Describe("dir/a-b.txtar", []byte("# It does.\n# proves: network off, home\n[x] skip\n# later\n"))
	if s.Name != "a-b" || s.Title != "It does." || !slices.Equal(s.Proves, []string{"network off", "home"}) {
		t.Errorf("got %+v", s)
	}
}

func TestVariablesOfScript(t *testing.T) {
	result, log := outcome(t, "env NEW=1\nstatus -in empty 0 sh -c 'test \"$NEW\" = 1 && test \"$HOME\" = \"$WORK/home\"'\n-- proj/empty --\n", Options{})
	if result != "pass" {
		t.Errorf("%s:\n%s", result, log)
	}
}
