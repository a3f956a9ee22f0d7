package verify

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Extract writes the scripts of files (package scripts has them) into dir and
// returns their names, sorted.
func Extract(files fs.FS, dir string) ([]string, error) {
	names, err := fs.Glob(files, "*.txtar")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		to := filepath.Join(dir, name)
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return nil, err
		}
		out = append(out, to)
	}
	return out, nil
}

// Scenario is what a script says of itself in its first lines.
type Scenario struct {
	Name   string
	Title  string   // the first sentence of its first comment
	Proves []string // the rows of doctor it proves; none: not a scenario of kgate verify
	OS     string   // the only system it can say anything about, as GOOS names it; "": any
}

// onlyOn are the first words of scripts that are about one system.
var onlyOn = map[string]string{
	"[!darwin] skip": "darwin", "[!linux] skip": "linux",
	"[!userns] skip": "linux", "[!hostfilter] skip": "linux", "[!lab] skip": "linux",
}

// Describe reads the head of a script.
func Describe(name string, text []byte) Scenario {
	var about []string
	s := Scenario{Name: strings.TrimSuffix(filepath.Base(name), ".txtar")}
	for _, line := range strings.Split(string(text), "\n") {
		comment, ok := strings.CutPrefix(line, "# ")
		if !ok {
			for condition, os := range onlyOn {
				if strings.HasPrefix(line, condition) {
					s.OS = os
				}
			}
			break
		}
		if rows, ok := strings.CutPrefix(comment, "proves: "); ok {
			for _, row := range strings.Split(rows, ",") {
				s.Proves = append(s.Proves, strings.TrimSpace(row))
			}
		} else if len(s.Proves) == 0 {
			about = append(about, comment)
		}
	}
	// A sentence may take more than a line, and may be followed by who reported it.
	s.Title, _, _ = strings.Cut(strings.Join(about, " ")+" ", ". ")
	if s.Title = strings.TrimSpace(s.Title); s.Title != "" && !strings.HasSuffix(s.Title, ".") {
		s.Title += "."
	}
	return s
}
