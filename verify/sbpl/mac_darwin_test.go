package sbpl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These tests ask the kernel of a Mac what this package only knows from others,
// and print what it says where this package says unknown.

// boxed runs a program under a profile, "/T" in which stands for dir.
func boxed(t *testing.T, dir, profile string, argv ...string) (status int, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "profile.sb")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(profile, "/T", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/bin/sandbox-exec", append([]string{"-f", file, "--"}, argv...)...)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Control for all of them: a profile that allows everything lets programs run.
func TestMacRuns(t *testing.T) {
	if status, out := boxed(t, "/", "(version 1)(allow default)", "/usr/bin/true"); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
}

// What others report that the compiler refuses, it refuses, with status 65.
func TestMacRefuses(t *testing.T) {
	for _, tt := range refused {
		status, out := boxed(t, "/", tt.profile, "/usr/bin/true")
		// The rest of the refusals are this package's caution, and only printed.
		reported := strings.Contains(tt.reason, "host must be") || strings.Contains(tt.reason, "unbound variable") ||
			strings.Contains(tt.reason, "unexpected ^") || strings.Contains(tt.profile, "1-1024")
		if reported && status != 65 {
			t.Errorf("%s: status %d, want 65: %s", tt.profile, status, out)
		}
		t.Logf("%s: %s", tt.profile, strings.TrimSpace(out))
	}
	for _, profile := range notUnderstood {
		status, out := boxed(t, "/", profile+"(allow default)", "/usr/bin/true")
		t.Logf("not understood here: %q: status %d %s", profile, status, strings.TrimSpace(out))
	}
}

// For reading one file the kernel decides as this package does. Where this says
// unknown the kernel's answer is printed.
func TestMacDecides(t *testing.T) {
	dir := realTemp(t)
	for _, name := range []string{"a/b", "a/ab", "x.c", "plain", "caf\u00e9"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("content"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	known, unknown := 0, 0
	for _, tt := range []struct{ rules, file string }{
		{`(deny file-read* (literal "/T/a/b"))`, "a/b"},
		{`(deny file-read* (literal "/T/a/b"))`, "a/ab"},
		{`(deny file-read* (subpath "/T/a"))`, "a/b"},
		{`(deny file-read* (subpath "/T/a"))(allow file-read* (literal "/T/a/b"))`, "a/b"},
		{`(allow file-read* (literal "/T/a/b"))(deny file-read* (subpath "/T/a"))`, "a/b"},
		{`(deny file-read*)(allow file-read* (subpath "/"))`, "a/b"},
		{`(allow file-read* (subpath "/"))(deny file-read-data (literal "/T/a/b"))`, "a/b"},
		{`(deny file-read-data (literal "/T/a/b"))(allow file-read* (subpath "/"))`, "a/b"},
		{`(deny file-read* (literal "/T/a/b"))(allow file-read*)`, "a/b"},
		{`(deny file-read* (regex #"^/T/[^/]*[.]c$"))`, "x.c"},
		{`(deny file-read* (regex #"^/T/a/b(/.*)?$"))`, "a/b"},
		{`(deny file-read* (require-all (subpath "/T/a") (require-not (literal "/T/a/b"))))`, "a/b"},
		{`(deny file-read* (prefix "/T/a/a"))`, "a/ab"},
		// From here on nobody has said.
		{`(deny file-read* (subpath "/T/plain"))`, "plain"},
		{`(deny file-read* (literal "/T/A/B"))`, "a/b"},
		{`(deny file-read* (subpath "/T/A"))`, "a/b"},
		{`(deny file-read* (literal "/T/a/b"))`, "A/B"},
		{`(deny file-read* (regex #"/a/b"))`, "a/b"},
		{"(deny file-read* (literal \"/T/caf\u00e9\"))", "caf\u00e9"},
		{"(deny file-read* (literal \"/T/cafe\u0301\"))", "caf\u00e9"},
		{"(deny file-read* (regex #\"^/T/caf\u00e9$\"))", "caf\u00e9"},
		{`(deny file-read* (regex #"^/T/[Cc][Aa][Ff]([A-Za-z]?[^ -~]+)$"))`, "caf\u00e9"},
		{`(deny file-read-data)(allow file-read* (subpath "/"))`, "a/b"},
	} {
		profile := "(version 1)(allow default)" + tt.rules
		p, err := Parse(strings.ReplaceAll(profile, "/T", dir))
		if err != nil {
			t.Errorf("%s: %v", tt.rules, err)
			continue
		}
		file := filepath.Join(dir, tt.file)
		want := p.Judge(Query{Op: "file-read-data", Path: file, Type: Regular}).Verdict
		status, out := boxed(t, dir, profile, "/bin/cat", file)
		got := Deny
		switch {
		case status == 0 && out == "content":
			got = Allow
		case !strings.Contains(out, "not permitted"):
			t.Errorf("%s: cat %s: status %d: %s", tt.rules, tt.file, status, out)
			continue
		}
		if want == Unknown {
			unknown++
			t.Logf("not known here: %s: cat %s: %v", tt.rules, tt.file, got)
			continue
		}
		known++
		if got != want {
			t.Errorf("%s: cat %s: %v, want %v", tt.rules, tt.file, got, want)
		}
	}
	t.Logf("%d agree or fail above, %d were not known", known, unknown)
}

// A directory above what is denied can be renamed unless unlinking it is denied.
func TestMacRename(t *testing.T) {
	for _, tt := range []struct {
		rules string
		moves bool
	}{
		{`(deny file-read* file-write* (subpath "/T/a/b"))`, true},
		{`(deny file-read* file-write* (subpath "/T/a/b"))(deny file-write-unlink (literal "/T/a"))`, false},
	} {
		dir := realTemp(t)
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/b/key"), []byte("secret"), 0o644)); err != nil {
			t.Fatal(err)
		}
		_, out := boxed(t, dir, "(version 1)(allow default)"+tt.rules, "/bin/sh", "-c", fmt.Sprintf("cd %q && mv a x; cat x/b/key", dir))
		if got := strings.Contains(out, "secret"); got != tt.moves {
			t.Errorf("%s: read after a rename: %v, want %v: %s", tt.rules, got, tt.moves, out)
		}
	}
}
