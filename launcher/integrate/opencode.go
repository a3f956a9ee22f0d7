package integrate

import (
	"fmt"
	"path/filepath"
)

// opencode has a setting for the shell, which it calls with -c and the command.
func opencode() *Harness {
	return &Harness{
		Name: "opencode", Title: "opencode", Seen: "1.18.33",
		Way:   `"shell" in opencode.json`,
		Open:  "where the program is missing, opencode takes another shell and says nothing; a plugin of kgate's in opencode's own directory refuses the command then",
		edits: opencodeEdits, check: opencodeCheck,
		after: func(*Host) []string {
			return []string{
				"opencode's own file tools and webfetch do not go through a shell: they are its permissions to rule",
				"the model may choose a command's working directory, and the box makes the project around that writable: leave opencode's permission external_directory at ask or deny",
				"opencode gets the library of its plugins with npm before the first command, and without a network tries again for about a minute: npm_config_fetch_retries=0 in its environment shortens that",
			}
		},
	}
}

func opencodeDir(h *Host) string {
	if dir := h.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "opencode")
	}
	return filepath.Join(h.Home, ".config", "opencode")
}

// opencodeFile is the settings file that is there, opencode.json if none is.
func opencodeFile(h *Host) string {
	for _, name := range []string{"opencode.jsonc", "opencode.json"} {
		file := filepath.Join(opencodeDir(h), name)
		if text, err := read(file); text != nil || err != nil {
			return file
		}
	}
	return filepath.Join(opencodeDir(h), "opencode.json")
}

func opencodeGuard(h *Host) string { return filepath.Join(opencodeDir(h), "plugin", "kgate.js") }

// guardText refuses the bash tool when the shell is not there or not to be
// executed.
const guardText = `// Written by kgate integrate opencode, and removed by it with --remove.
// Where the shell named in opencode.json is missing, opencode takes another one.
import { accessSync, constants } from "node:fs"

export const KgateGuard = async () => ({
  "tool.execute.before": async (input) => {
    if (input.tool !== "bash") return
    try {
      accessSync(%s, constants.X_OK)
    } catch {
      throw new Error("kgate: the shell that boxes commands is missing (" + %s + "), so nothing was started: put it back, or run kgate integrate opencode --remove")
    }
  },
})
`

func opencodeEdits(h *Host, f *files) error {
	err := f.edit(opencodeFile(h), func(text []byte) (Splice, error) { return setJSON(text, []string{"shell"}, h.Shell) })
	if err != nil {
		return err
	}
	name := encodeJSON(h.Shell, "")
	return f.edit(opencodeGuard(h), func(text []byte) (Splice, error) {
		return Splice{0, string(text), fmt.Sprintf(guardText, name, name)}, nil
	})
}

func opencodeCheck(h *Host) []Row {
	var rows []Row
	shell, where := "", ""
	// opencode itself merges its files, with those of the project over the
	// person's; where it is not installed they are read one by one.
	if out, err := h.Ask("opencode", "debug", "config"); err == nil {
		if doc, err := decodeJSON([]byte(out)); err == nil {
			if v, ok := getJSON(doc, "shell"); ok {
				shell, where = fmt.Sprint(v), "says opencode debug config"
			}
		}
	}
	if where == "" {
		for _, file := range []string{
			opencodeFile(h), h.Getenv("OPENCODE_CONFIG"),
			filepath.Join(h.Dir, "opencode.json"), filepath.Join(h.Dir, "opencode.jsonc"),
			filepath.Join(h.Dir, ".opencode", "opencode.json"), filepath.Join(h.Dir, ".opencode", "opencode.jsonc"),
		} {
			if file == "" {
				continue
			}
			text, err := read(file)
			doc, derr := decodeJSON(text)
			if err != nil || derr != nil {
				rows = append(rows, Row{false, fmt.Sprintf("%s cannot be read", file), "mend it"})
				continue
			}
			if v, ok := getJSON(doc, "shell"); ok {
				shell, where = fmt.Sprint(v), file
			}
		}
	}
	if shell == "" {
		return append(rows, Row{false, "no setting names a shell: opencode runs commands unboxed", "kgate integrate opencode"})
	}
	rows = append(rows, Row{true, fmt.Sprintf("each command is started as %s -c COMMAND (%s)", shell, where), ""}, program(h, shell))
	name := encodeJSON(shell, "")
	if text, err := read(opencodeGuard(h)); err != nil || string(text) != fmt.Sprintf(guardText, name, name) {
		return append(rows, Row{false, "fails open: where that program is missing opencode takes another shell, and the plugin that would refuse is not there", "kgate integrate opencode"})
	}
	return append(rows, Row{true, "would fail open where that program is missing; the plugin " + opencodeGuard(h) + " refuses then", ""})
}
