package integrate

import (
	"errors"
	"strings"
	"testing"
)

func TestSetJSON(t *testing.T) {
	set := func(path string) func([]byte) (Splice, error) {
		return func(text []byte) (Splice, error) { return setJSON(text, strings.Split(path, "/"), "V") }
	}
	add := func(path string) func([]byte) (Splice, error) {
		return func(text []byte) (Splice, error) {
			return addJSON(text, strings.Split(path, "/"), map[string]any{"a": 1})
		}
	}
	for _, tt := range []struct {
		name   string
		text   string
		edit   func([]byte) (Splice, error)
		want   string
		errors string
	}{
		{"nothing", "", set("k"), "{\n  \"k\": \"V\"\n}\n", ""},
		{"empty", "{}", set("k"), "{\n  \"k\": \"V\"\n}", ""},
		{"empty, two deep", "{}\n", set("a/k"), "{\n  \"a\": {\n    \"k\": \"V\"\n  }\n}\n", ""},
		{"last", "{\n  \"a\": 1\n}\n", set("k"), "{\n  \"a\": 1,\n  \"k\": \"V\"\n}\n", ""},
		{"tabs", "{\n\t\"a\": 1\n}\n", set("k"), "{\n\t\"a\": 1,\n\t\"k\": \"V\"\n}\n", ""},
		{"a comment behind", "{\n  \"a\": 1 // one, two\n}\n", set("k"), "{\n  \"a\": 1, // one, two\n  \"k\": \"V\"\n}\n", ""},
		{"a trailing comma", "{\n  \"a\": 1, // one\n}\n", set("k"), "{\n  \"a\": 1, // one\n  \"k\": \"V\",\n}\n", ""},
		{"a comment at the end", "{\n  \"a\": 1\n  // \"b\": 2,\n}\n", set("k"), "{\n  \"a\": 1,\n  // \"b\": 2,\n  \"k\": \"V\"\n}\n", ""},
		{"in one line", `{"a": 1}`, set("k"), `{"a": 1, "k": "V"}`, ""},
		{"deep", "{\n  \"e\": {\n    \"x\": \"y\"\n  },\n  \"z\": 0\n}\n", set("e/k"), "{\n  \"e\": {\n    \"x\": \"y\",\n    \"k\": \"V\"\n  },\n  \"z\": 0\n}\n", ""},
		{"there", "{\n  \"k\": \"old\", /* c */ \"z\": 0\n}\n", set("k"), "{\n  \"k\": \"V\", /* c */ \"z\": 0\n}\n", ""},
		{"the same", "{\"k\":\"V\"}", set("k"), "{\"k\":\"V\"}", ""},
		{"a byte order mark", "\ufeff{}", set("k"), "", "is no JSON"},
		{"broken", `{"a": }`, set("k"), "", "is no JSON"},
		{"no object on the way", `{"a": 1}`, set("a/k"), "", "by hand"},
		{"twice, of which the last counts", `{"k": 1, "k": 2}`, set("k"), `{"k": 1, "k": "V"}`, ""},
		{"a list", `{}`, add("l"), "{\n  \"l\": [\n    {\n      \"a\": 1\n    }\n  ]\n}", ""},
		{"a list with one", "{\n  \"l\": [\n    {\"b\": 2} // two\n  ]\n}\n", add("l"), "{\n  \"l\": [\n    {\"b\": 2}, // two\n    {\n      \"a\": 1\n    }\n  ]\n}\n", ""},
		{"an empty list", "{\n  \"l\": []\n}\n", add("l"), "{\n  \"l\": [\n    {\n      \"a\": 1\n    }\n  ]\n}\n", ""},
		{"in the list already", "{\"l\": [{\"a\":1}]}", add("l"), "{\"l\": [{\"a\":1}]}", ""},
		{"not a list", `{"l": 1}`, add("l"), "", "by hand"},
	} {
		t.Run(tt.name, func(t *testing.T) { testEdit(t, tt.text, tt.edit, tt.want, tt.errors) })
	}
}

func TestAddYAML(t *testing.T) {
	add := func(text []byte) (Splice, error) {
		return addYAML(text, []string{"allow", "paths"}, []string{"~/a", "{path: ~/b, write: true}"})
	}
	for _, tt := range []struct{ name, text, want, errors string }{
		{"nothing", "", "allow:\n  paths:\n    - ~/a\n    - {path: ~/b, write: true}\n", ""},
		{"only comments", "# c\n", "# c\nallow:\n  paths:\n    - ~/a\n    - {path: ~/b, write: true}\n", ""},
		{"no allow", "version: 1", "version: 1\nallow:\n  paths:\n    - ~/a\n    - {path: ~/b, write: true}\n", ""},
		{"nothing allowed", "allow:\n  # none\ndeny: {}\n", "allow:\n  paths:\n    - ~/a\n    - {path: ~/b, write: true}\n  # none\ndeny: {}\n", ""},
		{"no paths", "allow:\n    hosts: [x]  # c\n", "allow:\n    paths:\n      - ~/a\n      - {path: ~/b, write: true}\n    hosts: [x]  # c\n", ""},
		{"only commented paths", "allow:\n  paths:   # shown\n    # - ~/x\ndeny: {}\n", "allow:\n  paths:   # shown\n    - ~/a\n    - {path: ~/b, write: true}\n    # - ~/x\ndeny: {}\n", ""},
		{"some", "allow:\n  paths:\n  # first\n  - ~/x # c\n  - ~/y\n", "allow:\n  paths:\n  # first\n  - ~/a\n  - {path: ~/b, write: true}\n  - ~/x # c\n  - ~/y\n", ""},
		{"in one line", "allow: \n  paths: [~/x]\n", "allow: \n  paths: [~/a, {path: ~/b, write: true}, ~/x]\n", ""},
		{"one there", "allow:\n  paths:\n    - ~/a\n", "allow:\n  paths:\n    - {path: ~/b, write: true}\n    - ~/a\n", ""},
		{"both there", "allow: {paths: [{write: true, path: ~/b}, ~/a]}\n", "allow: {paths: [{write: true, path: ~/b}, ~/a]}\n", ""},
		{"line ends", "version: 1\r\n", "version: 1\r\nallow:\r\n  paths:\r\n    - ~/a\r\n    - {path: ~/b, write: true}\r\n", ""},
		{"all in one line", "{allow: {hosts: [x]}}\n", "", "by hand"},
		{"no list", "allow:\n  paths: 3\n", "", "by hand"},
		{"broken", "allow: [\n", "", "is no YAML"},
	} {
		t.Run(tt.name, func(t *testing.T) { testEdit(t, tt.text, add, tt.want, tt.errors) })
	}
}

func TestAppendTOML(t *testing.T) {
	add := func(text []byte) (Splice, error) {
		return appendTOML(text, "[[h.P]]\nx = 1\n", func(before, after map[string]any) error {
			if err := sameBut(before, after, "h"); err != nil {
				return err
			}
			if _, ok := after["h"]; !ok {
				return errors.New("not there")
			}
			return nil
		})
	}
	for _, tt := range []struct{ name, text, want, errors string }{
		{"nothing", "", "[[h.P]]\nx = 1\n", ""},
		{"something", "a = 1 # c\n[t]\nb = 2", "a = 1 # c\n[t]\nb = 2\n\n[[h.P]]\nx = 1\n", ""},
		{"line ends", "a = 1\r\n", "a = 1\r\n\r\n[[h.P]]\r\nx = 1\r\n", ""},
		{"more of them", "[[h.P]]\nx = 2\n", "[[h.P]]\nx = 2\n\n[[h.P]]\nx = 1\n", ""},
		{"in one line", "h = {P = [{x = 2}]}\n", "", "by hand"},
		{"broken", "a = \n", "", "is no TOML"},
	} {
		t.Run(tt.name, func(t *testing.T) { testEdit(t, tt.text, add, tt.want, tt.errors) })
	}
}

// testEdit edits, compares, edits again (which must change nothing where the
// editor looks first), and takes the change out of a text that others changed.
func testEdit(t *testing.T, text string, edit func([]byte) (Splice, error), want, fails string) {
	t.Helper()
	s, err := edit([]byte(text))
	if fails != "" {
		if err == nil || !strings.Contains(err.Error(), fails) {
			t.Fatalf("error %v, want %q; made %q", err, fails, s.apply([]byte(text)))
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	got := string(s.apply([]byte(text)))
	if got != want {
		t.Fatalf("made\n%s\nwant\n%s", got, want)
	}
	if got == text {
		return
	}
	back := Splice{At: s.At, Old: s.New, New: s.Old}
	if undone := string(back.apply([]byte(got))); undone != text {
		t.Errorf("undone to %q, want %q", undone, text)
	}
	if len(s.New) > 4 && strings.HasSuffix(got, "\n") {
		grown, err := s.undo([]byte(got + "# more\n"))
		if err == nil && string(grown) != text+"# more\n" && !strings.Contains(s.Old, "\n") {
			t.Errorf("undone in a changed text to %q, want %q", grown, text+"# more\n")
		}
	}
}
