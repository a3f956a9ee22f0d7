package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	scripts "github.com/kgate-dev/kgate/testdata/scripts"
	"github.com/kgate-dev/kgate/verify"
)

// TestVerifyNames holds the names that people and CI systems rely on.
func TestVerifyNames(t *testing.T) {
	var out bytes.Buffer
	if err := listScenarios(&out, &verify.Config{Scripts: scripts.Files}); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`home-refused curl-blocked home-write-isolated network-off-silent host-allowed
		other-host-refused raw-ip-dropped listed-port-only udp-dropped dns-gated foreign-resolver-dropped ipv6-dropped
		host-loopback-closed lan-closed filter-undo-refused no-address-aborts shared-address-stated`) {
		if !strings.Contains("\n"+out.String(), "\n"+name+" ") {
			t.Errorf("no scenario %s", name)
		}
	}
}

func verifyReport() *verify.Report {
	return &verify.Report{
		Verdict: verify.Unproven,
		Seconds: 1.5,
		Scenarios: []verify.Outcome{
			{Name: "one", Result: verify.Pass, Evidence: []string{"3 of 9 seen", "none of 9 seen"}, Proves: []string{"box"}},
			{Name: "two", Result: verify.Skip, Reason: "no such kernel", Evidence: []string{}, Proves: []string{"net"}},
			{Name: "three", Result: verify.Fail, Reason: "x.txtar:3: status 0\x1b[2J", Log: "> status 1 true\nFAIL: x.txtar:3: status 0", Evidence: []string{}},
		},
		Rows: []verify.Row{
			{Row: "box", Status: "READY", Proven: true, By: []string{"one"}},
			{Row: "net", Status: "READY", By: []string{"two"}},
			{Row: "tun", Status: "BLOCKED", Reason: "no device"},
			{Row: "new", Status: "READY"},
		},
	}
}

func TestVerifyPrinter(t *testing.T) {
	var out, progress bytes.Buffer
	p := &verifyPrinter{out: &out, progress: &progress}
	r := verifyReport()
	for i, o := range r.Scenarios {
		p.started(verify.Scenario{Name: o.Name}, i+1, len(r.Scenarios))
		p.ended(o)
	}
	err := finishVerify(p, r, false, "")
	for _, want := range []string{
		"proven      one", "3 of 9 seen; none of 9 seen",
		"not proven  two", "no such kernel",
		"FAILED      three", "    > status 1 true\n",
		"READY      box: proven by one\n", "READY      net: not proven by two\n",
		"BLOCKED    tun: no device\n", "READY      new: not proven: no scenario is about it\n",
		"not proven: 1 proven, 1 failed, 1 not proven, in 1.5 seconds\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") || progress.Len() > 0 {
		t.Errorf("a terminal's bytes without a terminal: %q %q", out.String(), progress.String())
	}
	if exitStatus(err) != 1 {
		t.Errorf("exit status %d", exitStatus(err))
	}
}

func TestVerifyJSON(t *testing.T) {
	var out, progress bytes.Buffer
	p := &verifyPrinter{out: &out, progress: &progress, quiet: true}
	r := verifyReport()
	p.ended(r.Scenarios[0])
	junit := filepath.Join(t.TempDir(), "report.xml")
	err := finishVerify(p, r, true, junit)
	var silent *statusError
	if !errors.As(err, &silent) || silent.status != 1 {
		t.Errorf("got %v", err)
	}
	var back struct {
		Verdict   string
		Scenarios []struct {
			Name, Result, Reason string
			Evidence             []string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if back.Verdict != "not proven" || len(back.Scenarios) != 3 || back.Scenarios[1].Result != "skip" ||
		back.Scenarios[1].Reason != "no such kernel" || len(back.Scenarios[0].Evidence) != 2 {
		t.Errorf("got %+v", back)
	}
	if !strings.Contains(progress.String(), "one") {
		t.Error("no progress beside the report")
	}
	if text, err := os.ReadFile(junit); err != nil || !strings.Contains(string(text), `<testcase name="two"`) {
		t.Errorf("junit: %v %s", err, text)
	}
	r.Verdict = verify.Proven
	if err := finishVerify(p, r, true, ""); err != nil {
		t.Errorf("proven, but %v", err)
	}
}

// TestEveryRowCanBeProven holds that what doctor calls READY is something that a
// scenario speaks for; kgate verify would say "not proven" everywhere otherwise.
func TestEveryRowCanBeProven(t *testing.T) {
	kgate, err := exec.LookPath("kgate")
	if err != nil {
		t.Fatal(err)
	}
	claimed := map[string]bool{}
	files, err := fs.Glob(scripts.Files, "*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := fs.ReadFile(scripts.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range verify.Describe(name, text).Proves {
			claimed[row] = true
		}
	}
	for _, text := range []string{"version: 1\nnetwork: off\n", "version: 1\nnetwork: restricted\nallow:\n  hosts: [203.0.113.10]\n"} {
		home := t.TempDir()
		project := filepath.Join(home, "project")
		if err := errors.Join(os.MkdirAll(filepath.Join(home, ".kgate"), 0o700), os.Mkdir(project, 0o755),
			os.WriteFile(filepath.Join(home, ".kgate", "config.yaml"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(kgate, "doctor", "--json")
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "HOME="+home)
		out, _ := cmd.Output() // its status is 1 where something is blocked
		var said struct{ Rows []verify.Row }
		if err := json.Unmarshal(out, &said); err != nil || len(said.Rows) < 5 {
			t.Fatalf("doctor: %v\n%s", err, out)
		}
		for _, row := range said.Rows {
			if row.Status == "READY" && !claimed[row.Claim()] {
				t.Errorf("no scenario proves the row %q (%s)", row.Row, row.Reason)
			}
		}
	}
}
