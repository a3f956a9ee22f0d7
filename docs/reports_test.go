package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var reportRow = regexp.MustCompile(`(?m)^\| (\S+?(?: PR)?#\d+) \| .* \| \[([^\]]+)\]\(\.\./([^)]+)\) \|$`)

// uncited says what is wrong with a row of the reports: what it names must exist
// and speak of the report.
func uncited(report, name, file string) string {
	text, err := os.ReadFile(filepath.Join(top, file))
	if err != nil {
		return err.Error()
	}
	_, short, ok := strings.Cut(report, "/")
	if !ok {
		short = report
	}
	if !regexp.MustCompile(regexp.QuoteMeta(short) + `\b`).Match(text) {
		return "does not cite it"
	}
	if strings.HasPrefix(name, "Test") && !strings.Contains(string(text), "\nfunc "+name+"(") {
		return "no such test"
	}
	if !strings.HasPrefix(name, "Test") && filepath.Base(file) != name+".txtar" {
		return "is another scenario"
	}
	return ""
}

// TestReports holds the table of reports against what it names.
func TestReports(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(top, "docs/verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## What was reported about other tools")
	rows := reportRow.FindAllStringSubmatch(table, -1)
	for _, m := range rows {
		if why := uncited(m[1], m[2], m[3]); why != "" {
			t.Errorf("%s: %s: %s", m[1], m[2], why)
		}
	}
	if lines := strings.Count(table, "\n| ") - 1; len(rows) != lines || lines < 35 {
		t.Errorf("%d rows of %d were understood", len(rows), lines)
	}
}

func TestUncitedNotices(t *testing.T) {
	for _, tc := range []struct {
		report, name, file string
		ok                 bool
	}{
		{"a/fence#48", "exec-denied", "testdata/scripts/exec-denied.txtar", true},
		{"a/fence#4", "exec-denied", "testdata/scripts/exec-denied.txtar", false},
		{"a/fence#48", "exec-other", "testdata/scripts/exec-denied.txtar", false},
		{"a/fence#48", "exec-none", "testdata/scripts/exec-none.txtar", false},
		{"landrun#43", "TestNoServiceManager", "backends/bubblewrap/files_linux_test.go", true},
		{"landrun#43", "TestNoService", "backends/bubblewrap/files_linux_test.go", false},
	} {
		if why := uncited(tc.report, tc.name, tc.file); (why == "") != tc.ok {
			t.Errorf("%v: %q", tc, why)
		}
	}
}
