package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/audit"
	"github.com/kgate-dev/kgate/verify"
)

// jsonPage reads docs/json.md: the fields and types of each command's document.
func jsonPage(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (text|number|truth) \\|")
	page := map[string]map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		page[title] = map[string]string{}
		for _, m := range row.FindAllStringSubmatch(body, -1) {
			page[title][m[1]] = m[2]
		}
	}
	return page
}

// fieldsOf adds a document's fields with their types, as the page names them.
func fieldsOf(v any, path string, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			name := k
			if path != "" {
				name = path + "." + k
			}
			fieldsOf(sub, name, into)
		}
	case []any:
		for _, sub := range v {
			fieldsOf(sub, path+"[]", into)
		}
	case string:
		into[path] = "text"
	case float64:
		into[path] = "number"
	case bool:
		into[path] = "truth"
	case nil: // an empty list
	default:
		into[path] = fmt.Sprintf("%T", v)
	}
}

// TestJSONPage holds the page to what is printed: every field that is printed
// stands there with its type, and every field that stands there is printed.
func TestJSONPage(t *testing.T) {
	samples := map[string][]string{
		"kgate doctor --json":     {doctorSample(t)},
		"kgate explain --json":    explainSamples(t),
		"kgate verify --json":     {verifySample(t)},
		"kgate log --json":        logSamples(t),
		"kgate log verify --json": {logVerifySample(t)},
	}
	page := jsonPage(t)
	if len(page) != len(samples) {
		t.Errorf("%d sections in the page, %d commands", len(page), len(samples))
	}
	for command, texts := range samples {
		said := page[command]
		printed := map[string]string{}
		for _, text := range texts {
			var doc map[string]any
			if err := json.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatalf("%s: %v in\n%s", command, err, text)
			}
			if doc["version"] != 1.0 {
				t.Errorf("%s: version %v", command, doc["version"])
			}
			fieldsOf(doc, "", printed)
		}
		for field, kind := range printed {
			if said[field] != kind {
				t.Errorf("%s prints %s, a %s; the page says %q", command, field, kind, said[field])
			}
		}
		for field := range said {
			if printed[field] == "" {
				t.Errorf("%s does not print %s, which is in the page", command, field)
			}
		}
		// Words that programs look for are in the page as they are.
		for field, words := range map[string][]string{
			"kgate doctor --json": {string(backends.Ready), string(backends.Degraded), string(backends.Blocked)},
			"kgate log --json":    {audit.Launch, audit.Block},
			"kgate log verify --json": {audit.Edited, audit.Removed, audit.Reordered, audit.Truncated, audit.Anchored, audit.Cut,
				"version"},
		} {
			if field != command {
				continue
			}
			text, _ := os.ReadFile("../../docs/json.md")
			for _, w := range words {
				if !strings.Contains(string(text), "`"+w+"`") {
					t.Errorf("%s: the page does not name %q", command, w)
				}
			}
		}
	}
}

func doctorSample(t *testing.T) string {
	var b bytes.Buffer
	rows := []backends.Finding{{Row: "a", Status: backends.Ready, Reason: "x"}, {Row: "b", Status: backends.Blocked, Reason: "y", Mend: "z"}}
	if err := printRows(&b, rows, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// explainSamples are plans of both systems, made by the program itself.
func explainSamples(t *testing.T) []string {
	kgate, err := exec.LookPath("kgate")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	project := filepath.Join(home, "project")
	if err := errors.Join(os.MkdirAll(filepath.Join(home, ".kgate"), 0o700), os.Mkdir(project, 0o755),
		os.WriteFile(filepath.Join(home, ".kgate", "config.yaml"), []byte("version: 1\nallow:\n  hosts: [host.example]\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command(kgate, "explain", "--json", "--os", system, "--", "true")
		cmd.Dir = project
		cmd.Env = append(os.Environ(), "HOME="+home)
		text, err := cmd.Output()
		if err != nil {
			t.Fatalf("explain --os %s: %v", system, err)
		}
		out = append(out, string(text))
	}
	return out
}

func verifySample(t *testing.T) string {
	var out, progress bytes.Buffer
	p := &verifyPrinter{out: &out, progress: &progress, quiet: true}
	var silent *statusError
	r := verifyReport()
	r.Attacks = &verify.Attacks{Tried: 3, Held: 2, Controls: 3, Limits: 1}
	r.Scenarios[0].Attacks = r.Attacks
	if err := finishVerify(p, r, true, ""); !errors.As(err, &silent) {
		t.Fatal(err)
	}
	return out.String()
}

// logSamples are lines with everything that a line can have: the third closes
// one that was cut, the last found audit.head gone.
func logSamples(t *testing.T) []string {
	e := audit.Entry{Kind: audit.Block, Dir: "/p", Project: "/p", Argv: []string{"curl", "x"}, Flags: []string{"--network off"},
		Reason: "denied", Network: "off", Backend: "bubblewrap", User: "u"}
	home := logHome(t, e, e)
	file := audit.File(home)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(text[:40]); err != nil {
		t.Fatal(err)
	}
	f.Close()
	add := func() {
		if err := audit.Open(file, audit.Options{}).Append(e); err != nil {
			t.Fatal(err)
		}
	}
	add()
	if err := os.Remove(filepath.Join(filepath.Dir(file), "audit.head")); err != nil {
		t.Fatal(err)
	}
	add()
	out, _, status := runLog("--json")
	if status != 0 {
		t.Fatalf("log --json: %d", status)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return !json.Valid([]byte(l)) })
}

// logVerifySample has findings and notes.
func logVerifySample(t *testing.T) string {
	logSamples(t)
	file := audit.File(os.Getenv("HOME"))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("denied"), []byte("DENIED"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ := runLog("verify", "--json")
	return out
}
