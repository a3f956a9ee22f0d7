package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTable holds the table to the code: each mutant has a name of its own, can
// be made, and names scenarios and tests that there are.
func TestTable(t *testing.T) {
	t.Chdir("../..")
	every, err := all(regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range every {
		if seen[m.name] {
			t.Errorf("%s stands in the table twice", m.name)
		}
		seen[m.name] = true
		by := m.scenarios
		if m.edit != nil {
			by = m.edit.tests
		}
		if len(by) == 0 && (m.edit == nil || m.edit.in == nil) {
			t.Errorf("%s names nothing that fails without it", m.name)
		}
		for _, name := range by {
			if !exists(t, name) {
				t.Errorf("%s names %q, which does not exist", m.name, name)
			}
		}
	}
	if len(every) < 300 {
		t.Errorf("only %d mutants", len(every))
	}
}

// exists says whether there is such a scenario or test.
func exists(t *testing.T, name string) bool {
	t.Helper()
	pkg, pattern, ok := strings.Cut(name, " ")
	if !ok && !strings.HasPrefix(name, "Test") {
		_, err := os.Stat(filepath.Join("testdata", "scripts", name+".txtar"))
		return err == nil
	}
	dirs := []string{pkg}
	if !ok {
		test, _, _ := strings.Cut(name, "/")
		dirs, pattern = []string{"backends/bubblewrap", "cmd/kgate"}, "^"+test+"$"
	}
	want := regexp.MustCompile(pattern)
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range test.FindAllSubmatch(text, -1) {
				if want.Match(m[1]) {
					return true
				}
			}
		}
	}
	return false
}

// TestInserted puts texts before bytes.
func TestInserted(t *testing.T) {
	for _, c := range []struct {
		changes []change
		want    string
	}{
		{nil, "if a || b {"},
		{[]change{{3, "("}, {9, ")"}}, "if (a || b) {"},
		{[]change{{9, ")"}, {3, "("}, {3, "("}, {9, ") && x"}}, "if ((a || b)) && x {"},
		{[]change{{0, "<"}, {11, ">"}}, "<if a || b {>"},
	} {
		if got := string(inserted([]byte("if a || b {"), c.changes)); got != c.want {
			t.Errorf("%v: %q, want %q", c.changes, got, c.want)
		}
	}
}
