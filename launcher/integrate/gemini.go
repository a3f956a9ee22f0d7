package integrate

import (
	"fmt"
	"path/filepath"
)

// Gemini CLI hands each command to a hook, which puts kgate in front of it. A
// hook that cannot be started stops the command.
func geminiCLI() *Harness {
	return &Harness{
		Name: "gemini-cli", Title: "Gemini CLI", Seen: "0.61.0",
		Way:   "a BeforeTool hook for run_shell_command in ~/.gemini/settings.json",
		Open:  "hooks can be turned off (hooksConfig.enabled, hooksConfig.disabled), by a trusted project's settings too",
		edits: geminiEdits, check: geminiCheck,
		after: func(*Host) []string {
			return []string{"Gemini CLI's own file tools and web_fetch do not go through a shell: they are its permissions to rule"}
		},
	}
}

func geminiFile(h *Host) string { return filepath.Join(h.Home, ".gemini", "settings.json") }

const geminiMatcher = "^run_shell_command$"

func geminiGroup(h *Host) any {
	return map[string]any{"matcher": geminiMatcher, "hooks": []any{map[string]any{
		"name": "kgate", "type": "command", "command": hookCommand(h, "gemini-cli"), "timeout": 30000,
	}}}
}

func geminiEdits(h *Host, f *files) error {
	return f.edit(geminiFile(h), func(text []byte) (Splice, error) {
		return addJSON(text, []string{"hooks", "BeforeTool"}, geminiGroup(h))
	})
}

func geminiCheck(h *Host) []Row {
	text, err := read(geminiFile(h))
	doc, derr := decodeJSON(text)
	if err != nil || derr != nil {
		return []Row{{false, fmt.Sprintf("%s cannot be read", geminiFile(h)), "mend it"}}
	}
	list, _ := getJSON(doc, "hooks", "BeforeTool")
	groups, _ := list.([]any)
	if !contains(groups, geminiGroup(h)) {
		return []Row{{false, geminiFile(h) + " has no hook of this kgate's: Gemini CLI runs commands unboxed", "kgate integrate gemini-cli"}}
	}
	rows := []Row{
		{true, "each command becomes " + h.Shell + " -c COMMAND (hook in " + geminiFile(h) + ")", ""},
		program(h, h.Kgate), program(h, h.Shell),
	}
	for _, file := range []string{geminiFile(h), filepath.Join(h.Dir, ".gemini", "settings.json")} {
		text, err := read(file)
		doc, derr := decodeJSON(text)
		if err != nil || derr != nil {
			rows = append(rows, Row{false, fmt.Sprintf("%s cannot be read", file), "mend it"})
			continue
		}
		if v, ok := getJSON(doc, "hooksConfig", "enabled"); ok && v == false {
			rows = append(rows, Row{false, "fails open now: hooks are turned off in " + file, "take hooksConfig.enabled out of it"})
		}
		if v, ok := getJSON(doc, "hooksConfig", "disabled"); ok {
			if list, ok := v.([]any); ok && (contains(list, "kgate") || contains(list, hookCommand(h, "gemini-cli"))) {
				rows = append(rows, Row{false, "fails open now: the hook is turned off in " + file, "take kgate out of hooksConfig.disabled"})
			}
		}
	}
	return append(rows, Row{true, "fails closed where kgate is missing; fails open where hooks are turned off in settings", ""})
}
