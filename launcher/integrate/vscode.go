package integrate

import (
	"fmt"
	"path/filepath"
)

// VS Code gives its agent a terminal, with one long-lived shell, and has a
// setting for that terminal's profile.
func vscode() *Harness {
	return &Harness{
		Name: "vscode", Title: "VS Code",
		Way:   "chat.tools.terminal.terminalProfile in the person's settings.json",
		Open:  "a workspace's own settings can name another profile, and extensions start programs by themselves: trust no workspace that you would not run unboxed",
		edits: vscodeEdits, check: vscodeCheck,
		after: func(*Host) []string {
			return []string{
				"open a new chat: the agent's terminal is one shell that lives on, in one box",
				"only the agent's terminal is boxed, not your own terminals, tasks, debuggers or extensions",
			}
		},
	}
}

func vscodeKey(h *Host) string {
	os := "linux"
	if h.OS == "darwin" {
		os = "osx"
	}
	return "chat.tools.terminal.terminalProfile." + os
}

func vscodeFile(h *Host) string {
	if h.OS == "darwin" {
		return filepath.Join(h.Home, "Library", "Application Support", "Code", "User", "settings.json")
	}
	if dir := h.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "Code", "User", "settings.json")
	}
	return filepath.Join(h.Home, ".config", "Code", "User", "settings.json")
}

func vscodeEdits(h *Host, f *files) error {
	return f.edit(vscodeFile(h), func(text []byte) (Splice, error) {
		return setJSON(text, []string{vscodeKey(h)}, map[string]any{"path": h.Shell})
	})
}

func vscodeCheck(h *Host) []Row {
	var rows []Row
	shell, where := "", ""
	for _, file := range []string{vscodeFile(h), filepath.Join(h.Dir, ".vscode", "settings.json")} {
		text, err := read(file)
		doc, derr := decodeJSON(text)
		if err != nil || derr != nil {
			rows = append(rows, Row{false, fmt.Sprintf("%s cannot be read", file), "mend it"})
			continue
		}
		if v, ok := getJSON(doc, vscodeKey(h), "path"); ok {
			shell, where = fmt.Sprint(v), file
		} else if _, ok := getJSON(doc, vscodeKey(h)); ok {
			shell, where = "another profile", file
		}
	}
	if shell == "" {
		return append(rows, Row{false, "no setting names the agent's terminal: its commands run unboxed", "kgate integrate vscode"})
	}
	rows = append(rows, Row{true, fmt.Sprintf("the agent's terminal runs %s (%s)", shell, where), ""}, program(h, shell))
	return append(rows, Row{true, "fails closed where the program is missing: no terminal; fails open where a trusted workspace's settings name another", ""})
}
