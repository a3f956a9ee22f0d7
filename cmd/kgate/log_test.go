package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kgate-dev/kgate/launcher/audit"
)

// logHome is a home with a log of these lines.
func logHome(t *testing.T, entries ...audit.Entry) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, e := range entries {
		if err := audit.Open(audit.File(home), audit.Options{}).Append(e); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// runLog returns what kgate log prints and the exit status its error stands for.
func runLog(args ...string) (out, errs string, status int) {
	var o, e bytes.Buffer
	cmd := newLogCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetArgs(args)
	err := cmd.Execute()
	var s interface{ ExitStatus() int }
	switch {
	case errors.As(err, &s):
		status = s.ExitStatus()
	case err != nil:
		status = 1
	}
	return o.String(), e.String(), status
}

func TestLogFilters(t *testing.T) {
	now := time.Now()
	home := logHome(t,
		audit.Entry{Kind: "launch", Dir: "/proj", Argv: []string{"git", "status"}, Time: now.Add(-50 * time.Hour)},
		audit.Entry{Kind: "launch", Dir: "/proj/sub", Argv: []string{"npm", "run", "a/b"}, Time: now.Add(-3 * time.Hour)},
		audit.Entry{Kind: "block", Dir: "/project", Argv: []string{"curl", "x"}, Reason: "curl is denied", Time: now.Add(-time.Hour)},
		audit.Entry{Kind: "launch", Dir: "/else", Argv: []string{"npm"}, Time: now},
	)
	for _, test := range []struct {
		args string
		want string // the first words of the commands, in order
	}{
		{"", "git npm curl npm"},
		{"-n 2", "curl npm"},
		{"-n 0", ""},
		{"-n 99", "git npm curl npm"},
		{"--kind block", "curl"},
		{"--kind launch -n 1", "npm"},
		{"--since 2h", "curl npm"},
		{"--since 1.5d", "npm curl npm"},
		{"--until 2h", "git npm"},
		{"--since 4h --until 2h", "npm"},
		{"--since " + now.Add(-4*time.Hour).Format(time.RFC3339) + " --until " + now.Add(-2*time.Hour).UTC().Format(time.RFC3339), "npm"},
		{"--since " + now.Add(24*time.Hour).Format(time.DateOnly), ""},
		{"--dir /proj", "git npm"},
		{"--dir /proj/", "git npm"},
		{"--dir /", "git npm curl npm"},
		{"--command npm", "npm npm"},
		{"--command npm*b", "npm"},
		{"--command *r?n*", "npm"},
		{"--command np", "npm npm"},
		{"--command np?", "npm"},
	} {
		out, errs, status := runLog(append(strings.Fields(test.args), "--json")...)
		if status != 0 || errs != "" {
			t.Errorf("%s: status %d, %s", test.args, status, errs)
		}
		var got []string
		for line := range strings.Lines(out) {
			var e struct{ Argv []string }
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%s: %q: %v", test.args, line, err)
			}
			got = append(got, e.Argv[0])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: %v, want %s", test.args, got, test.want)
		}
	}
	out, _, _ := runLog("--json")
	if text, err := os.ReadFile(audit.File(home)); err != nil || out != string(text) {
		t.Errorf("--json prints\n%s\nand the file holds\n%s", out, text)
	}
}

func TestLogUsage(t *testing.T) {
	logHome(t)
	for _, args := range []string{"extra", "--kind x", "--since yesterdays", "--until -3h", "--since 2026-13-01", "--command [z-a]"} {
		if out, _, status := runLog(strings.Fields(args)...); status != statusUsage || out != "" {
			t.Errorf("%s: status %d, stdout %q", args, status, out)
		}
	}
	if out, errs, status := runLog(); out != "" || !strings.Contains(errs, "next: kgate run") || status != 0 {
		t.Errorf("without a log: %q, %q, %d", out, errs, status)
	}
}

// TestLogTable: what an agent put into a command cannot drive the terminal of
// whoever reads the log, and can be pasted.
func TestLogTable(t *testing.T) {
	home := logHome(t)
	when := time.Date(2026, 12, 1, 9, 30, 0, 0, time.Local)
	for _, e := range []audit.Entry{
		{Kind: "launch", Dir: home + "/src", Argv: []string{"git", "commit", "-m", "it's"}, Time: when},
		{Kind: "block", Dir: "/a/very/long/way/down/to/a/directory", Argv: []string{"\x1b]0;x\a", "\u202e", "\xff"}, Reason: "no\x1b[2J\nway", Time: when},
		{Kind: "launch", Dir: "/\x1b[1m", Argv: []string{"cat", strings.Repeat("x", 5000)}, Time: when},
	} {
		if err := audit.Open(audit.File(home), audit.Options{}).Append(e); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, status := runLog()
	if status != 0 || errs != "" {
		t.Fatal(status, errs)
	}
	lines := strings.SplitAfter(out, "\n")
	want := []string{
		"2026-12-01 09:30:00  launch  ~/src                         git commit -m \"it's\"\n",
		"2026-12-01 09:30:00  block   …ong/way/down/to/a/directory  $'\\x1b]0;x\\a' $'\\u202e' $'\\xff'  (no\\x1b[2J\\nway)\n",
		"2026-12-01 09:30:00  launch  /\\x1b[1m                      cat " + strings.Repeat("x", commandWidth-5) + "…\n",
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d\n%q, want\n%q", i+1, lines[i], want[i])
		}
	}
	for _, r := range strings.ReplaceAll(out, "\n", "") {
		if !unicode.IsPrint(r) {
			t.Errorf("the table holds %q", r)
		}
	}
}

func TestLogVerify(t *testing.T) {
	home := logHome(t, audit.Entry{Kind: "launch"}, audit.Entry{Kind: "block"}, audit.Entry{Kind: "launch"})
	file := audit.File(home)
	if out, _, status := runLog("verify"); status != 0 || out != "3 lines in 1 file, sequence 1 to 3: the chain is whole\n" {
		t.Errorf("status %d, %s", status, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("block"), []byte("blick"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, status := runLog("verify")
	if status != 1 || !strings.HasPrefix(out, file+":2: edited: ") || !strings.Contains(out, "1 finding\n") {
		t.Errorf("status %d, %s", status, out)
	}
	out, _, status = runLog("verify", "--json")
	var report struct {
		Clean    bool
		Findings []struct {
			File, What string
			Line       int
		}
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != 1 || report.Clean || len(report.Findings) != 1 || report.Findings[0].Line != 2 {
		t.Errorf("status %d, %v, %s", status, err, out)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(home, "other"), file); err != nil {
		t.Fatal(err)
	}
	if out, _, status := runLog("verify"); status != 1 || out != "" {
		t.Errorf("a symlink: status %d, %s", status, out)
	}
}
