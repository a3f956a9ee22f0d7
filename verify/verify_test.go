package verify

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// fakeKgate is a kgate whose doctor says what the test wants.
func fakeKgate(t *testing.T, doctor string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kgate")
	text := "#!/bin/sh\n[ \"$1 $2\" = 'doctor --json' ] || exit 9\ncat <<'END'\n" + doctor + "\nEND\n"
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

func files(list ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		fs[list[i]+".txtar"] = &fstest.MapFile{Data: []byte(list[i+1])}
	}
	return fs
}

const (
	passes = "# Works.\n# proves: box\nshows 'two seen'\nstatus 0 true\n"
	fails  = "# Breaks.\n# proves: box\nstatus 1 true\n"
	skips  = "# Cannot.\n# proves: box\n[!seatbelt] skip 'no such kernel'\nstatus 0 true\n"
	plain  = "# No scenario of verify.\nstatus 1 true\n"
)

func TestVerdict(t *testing.T) {
	ready := `{"rows": [{"row": "box", "status": "READY", "reason": "tried"}]}`
	for _, tc := range []struct {
		name    string
		doctor  string
		scripts fstest.MapFS
		only    []string
		must    []string
		verdict Verdict
		results []Result
	}{
		{"all proven", ready, files("a", passes, "b", passes, "c", plain), nil, nil, Proven, []Result{Pass, Pass}},
		{"one fails", ready, files("a", passes, "b", fails), nil, nil, Failed, []Result{Pass, Fail}},
		{"one skips", ready, files("a", passes, "b", skips), nil, nil, Unproven, []Result{Pass, Skip}},
		{"nothing about a ready row", `{"rows": [{"row": "other", "status": "READY"}]}`, files("a", passes), nil, nil, Unproven, []Result{Pass}},
		{"a blocked row may be skipped", `{"rows": [{"row": "box", "status": "BLOCKED"}]}`, files("a", skips), nil, nil, Proven, []Result{Skip}},
		{"a blocked row may not fail", `{"rows": [{"row": "box", "status": "BLOCKED"}]}`, files("a", fails), nil, nil, Failed, []Result{Fail}},
		{"only", ready, files("a", passes, "b", fails), []string{"a"}, nil, Proven, []Result{Pass}},
		{"only, skipped", `{"rows": []}`, files("a", skips), []string{"a"}, nil, Unproven, []Result{Skip}},
		{"must", ready, files("a", skips), nil, []string{"seatbelt"}, Failed, []Result{Fail}},
		{"a part of a claim", `{"rows": [{"row": "markers", "status": "READY"}]}`, files("a", passes), nil, nil, Proven, []Result{Pass}},
		{"the mode of the network", `{"rows": [{"row": "network", "status": "READY", "reason": "network off: nothing in it"}]}`,
			files("a", strings.ReplaceAll(passes, "box", "network off")), nil, nil, Proven, []Result{Pass}},
		{"another mode", `{"rows": [{"row": "network", "status": "READY", "reason": "network restricted: 1 host"}]}`,
			files("a", strings.ReplaceAll(passes, "box", "network off")), nil, nil, Unproven, []Result{Pass}},
		{"none", ready, files("a", plain), nil, nil, Unproven, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if probes["seatbelt"]() == nil {
				t.Skip("the condition holds here")
			}
			var told []string
			r, err := Run(Config{Scripts: tc.scripts, Kgate: fakeKgate(t, tc.doctor), Only: tc.only, Must: tc.must,
				Ended: func(o Outcome) { told = append(told, o.Name) }})
			if err != nil {
				t.Fatal(err)
			}
			var results []Result
			for _, o := range r.Scenarios {
				results = append(results, o.Result)
				if (o.Result == Pass) != (o.Reason == "") {
					t.Errorf("%s: %s with reason %q", o.Name, o.Result, o.Reason)
				}
			}
			if r.Verdict != tc.verdict || !slices.Equal(results, tc.results) || len(told) != len(results) {
				t.Errorf("got %s %q, want %s %q; told of %q", r.Verdict, results, tc.verdict, tc.results, told)
			}
		})
	}
}

func TestEvidence(t *testing.T) {
	r, err := Run(Config{Scripts: files("a", passes), Kgate: fakeKgate(t, `{"rows":[]}`)})
	if err != nil {
		t.Fatal(err)
	}
	if o := r.Scenarios[0]; o.Title != "Works." || !slices.Equal(o.Evidence, []string{"two seen"}) {
		t.Errorf("got %+v", o)
	}
}

func TestRunErrors(t *testing.T) {
	for name, c := range map[string]Config{
		"unknown scenario": {Scripts: files("a", passes), Only: []string{"b"}, Kgate: fakeKgate(t, "{}")},
		"doctor fails":     {Scripts: files("a", passes), Kgate: "/bin/false"},
		"doctor babbles":   {Scripts: files("a", passes), Kgate: fakeKgate(t, "READY")},
	} {
		if _, err := Run(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestEscapeIsAsked(t *testing.T) {
	fs := files("a", passes, "escape-b", plain)
	for _, tc := range []struct {
		escape bool
		want   int
	}{{false, 1}, {true, 2}} {
		c := Config{Scripts: fs, Escape: tc.escape}
		all, err := c.Scenarios()
		if err != nil || len(all) != tc.want {
			t.Errorf("escape %v: %v %v", tc.escape, all, err)
		}
	}
}

func TestJUnit(t *testing.T) {
	r, err := Run(Config{Scripts: files("a", passes, "b", fails, "c", skips), Kgate: fakeKgate(t, `{"rows": [{"row": "box", "status": "READY"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var back junitSuite
	if err := xml.Unmarshal([]byte(b.String()), &back); err != nil {
		t.Fatal(err)
	}
	if back.Tests != 3 || back.Failures != 1 || back.Skipped != 1 || len(back.Cases) != 3 ||
		back.Cases[1].Failure == nil || !strings.Contains(back.Cases[1].Failure.Text, "exit status 0, want 1") {
		t.Errorf("got %s", b.String())
	}
}

// TestUnprovenInJUnit shows that a row that is READY and not proven does not
// look like success to a CI system.
func TestUnprovenInJUnit(t *testing.T) {
	r, err := Run(Config{Scripts: files("a", passes), Kgate: fakeKgate(t, `{"rows": [{"row": "net", "status": "READY", "reason": "tried"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `failures="1"`) || !strings.Contains(b.String(), `name="net"`) {
		t.Errorf("got %s", b.String())
	}
}
