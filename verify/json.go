package verify

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

const usageJSON = "json [-line N] FILE PATH VALUE"

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	line := 0
	args = options(ts, usageJSON, args, func(f *flag.FlagSet) { f.IntVar(&line, "line", 0, "") })
	if len(args) != 3 {
		ts.Fatalf("usage: %s", usageJSON)
	}
	text := ts.ReadFile(args[0])
	if line != 0 {
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		i := line - 1
		if line < 0 {
			i = len(lines) + line
		}
		if i < 0 || i >= len(lines) {
			ts.Fatalf("%s: no line %d of %d", args[0], line, len(lines))
		}
		text = lines[i]
	}
	var doc any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		ts.Fatalf("%s: not JSON: %v", args[0], err)
	}
	got, err := dig(doc, args[1])
	same := err == nil && got == args[2]
	if pattern, ok := strings.CutPrefix(args[2], "~"); ok {
		re, bad := regexp.Compile(pattern)
		ts.Check(bad)
		same = err == nil && re.MatchString(got)
	}
	switch {
	case !neg && err != nil:
		ts.Fatalf("%v", err)
	case !neg && !same:
		ts.Fatalf("%s is %q, want %q", args[1], got, args[2])
	case neg && same:
		ts.Fatalf("%s is %q", args[1], got)
	}
}

// dig returns the value at a path of a JSON document: a string as it is,
// anything else as JSON.
func dig(doc any, path string) (string, error) {
	here := doc
	for _, key := range steps(path) {
		switch at := here.(type) {
		case map[string]any:
			v, ok := at[key]
			if !ok {
				return "", fmt.Errorf("%s: no key %q", path, key)
			}
			here = v
		case []any:
			v, err := element(at, key)
			if err != nil {
				return "", fmt.Errorf("%s: %w", path, err)
			}
			here = v
		default:
			return "", fmt.Errorf("%s: nothing below at %q", path, key)
		}
	}
	if s, ok := here.(string); ok {
		return s, nil
	}
	text, err := json.Marshal(here)
	return string(text), err
}

// steps cuts a path at its dots, but for those within brackets.
func steps(path string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range path {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '.' && depth == 0:
			out, from = append(out, path[from:i]), i+1
		}
	}
	return append(out, path[from:])
}

func element(list []any, key string) (any, error) {
	if key == "len" {
		return json.Number(strconv.Itoa(len(list))), nil
	}
	if inner, ok := strings.CutPrefix(key, "["); ok {
		field, value, _ := strings.Cut(strings.TrimSuffix(inner, "]"), "=")
		for _, v := range list {
			if got, err := dig(v, field); err == nil && got == value {
				return v, nil
			}
		}
		return nil, fmt.Errorf("no element with %s=%s", field, value)
	}
	i, err := strconv.Atoi(key)
	if err != nil || i < 0 || i >= len(list) {
		return nil, fmt.Errorf("no element %q of %d", key, len(list))
	}
	return list[i], nil
}
