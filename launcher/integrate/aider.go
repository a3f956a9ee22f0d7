package integrate

import (
	"fmt"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// aider runs $SHELL -c COMMAND, and has a setting for its environment. With a
// terminal and a shell that is not there it runs the command by itself
// (aider/run_cmd.py).
func aider() *Harness {
	return &Harness{
		Name: "aider", Title: "aider",
		Way:   "set-env with SHELL in ~/.aider.conf.yml",
		Open:  "where the program is missing, aider starts the command without a shell when it has a terminal; nothing of aider's closes that, so keep kgate-sh where it is and check",
		edits: aiderEdits, check: aiderCheck,
		after: func(*Host) []string {
			return []string{"a .aider.conf.yml of a project replaces set-env as a whole: kgate integrate aider --check in the project tells"}
		},
	}
}

func aiderFile(dir string) string { return filepath.Join(dir, ".aider.conf.yml") }

func aiderEdits(h *Host, f *files) error {
	return f.edit(aiderFile(h.Home), func(text []byte) (Splice, error) {
		return addYAML(text, []string{"set-env"}, []string{yamlWord("SHELL=" + h.Shell)})
	})
}

func yamlWord(s string) string {
	if strings.ContainsAny(s, " :#{}[],&*!|>%@\"") {
		return fmt.Sprintf("%q", s)
	}
	return s
}

func aiderCheck(h *Host) []Row {
	shell, where := h.Getenv("SHELL"), "$SHELL"
	// The file of the project counts more, and its list replaces the other.
	for _, file := range []string{aiderFile(h.Home), aiderFile(h.Dir)} {
		text, err := read(file)
		var doc map[string]any
		if err != nil || yaml.Unmarshal(text, &doc) != nil {
			return []Row{{false, fmt.Sprintf("%s cannot be read", file), "mend it"}}
		}
		v, ok := doc["set-env"]
		if !ok {
			continue
		}
		shell, where = h.Getenv("SHELL"), "$SHELL, since "+file+" has a set-env without it"
		list, _ := v.([]any)
		if s, ok := v.(string); ok {
			list = []any{s}
		}
		for _, e := range list {
			if s, ok := strings.CutPrefix(fmt.Sprint(e), "SHELL="); ok {
				shell, where = s, file
			}
		}
	}
	if filepath.Base(shell) != "kgate-sh" {
		return []Row{{false, fmt.Sprintf("commands are started as %s -c COMMAND (%s): unboxed", shell, where), "kgate integrate aider"}}
	}
	return []Row{
		{true, fmt.Sprintf("each command is started as %s -c COMMAND (%s)", shell, where), ""},
		program(h, shell),
		{true, "fails open: where that program is missing aider, on a terminal, starts the command without it; only a check like this one tells", ""},
	}
}
