package integrate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Claude Code starts everything through a prefix if it is given one: the model's
// commands, hooks, MCP servers. The prefix is one program's name; it gets the
// whole command line as one argument, and a missing one is status 127.
//
// That line sources a snapshot of the person's shell functions from ~/.claude
// and writes where it ended to a file in Claude Code's temporary directory. Where
// the last fails, a command that succeeded is reported as failed; where the box
// has a /tmp of its own, cd does not persist. So both directories are in the
// policy, and the temporary one is moved out of /tmp.
func claudeCode() *Harness {
	return &Harness{
		Name: "claude-code", Title: "Claude Code", Seen: "2.1.332",
		Way:   "CLAUDE_CODE_SHELL_PREFIX in the env of ~/.claude/settings.json",
		edits: claudeEdits, check: claudeCheck,
		after: func(*Host) []string {
			return []string{
				"hooks and MCP servers that Claude Code starts are in the box as well: allow what they need in ~/.kgate/config.yaml",
				"its own file tools (Read, Edit, Write) and WebFetch do not go through a shell: they are Claude Code's permissions to rule",
			}
		},
	}
}

const (
	claudePrefix = "CLAUDE_CODE_SHELL_PREFIX"
	claudeTmp    = "CLAUDE_CODE_TMPDIR"
)

func claudeDir(h *Host) string {
	if dir := h.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	return filepath.Join(h.Home, ".claude")
}

func claudeTmpDir(h *Host) string { return filepath.Join(h.Home, ".cache", "kgate", "claude-code") }

func claudeEdits(h *Host, f *files) error {
	// One stretch for both variables: set one after the other in memory.
	err := f.edit(filepath.Join(claudeDir(h), "settings.json"), func(text []byte) (Splice, error) {
		return setBoth(text, []string{"env"}, []member{{claudePrefix, h.Shell}, {claudeTmp, claudeTmpDir(h)}})
	})
	if err != nil {
		return err
	}
	if err := f.directory(claudeTmpDir(h)); err != nil {
		return err
	}
	return policyPaths(h, f, []string{
		yamlPath(h, filepath.Join(claudeDir(h), "shell-snapshots")),
		"{path: " + yamlPath(h, claudeTmpDir(h)) + ", write: true}",
	})
}

func claudeCheck(h *Host) []Row {
	var rows []Row
	prefix, tmp, where := "", "", ""
	// From the weakest to the strongest; the person's own is the first.
	for _, file := range []string{
		filepath.Join(claudeDir(h), "settings.json"),
		filepath.Join(h.Dir, ".claude", "settings.json"),
		filepath.Join(h.Dir, ".claude", "settings.local.json"),
		"/etc/claude-code/managed-settings.json",
		"/Library/Application Support/ClaudeCode/managed-settings.json",
	} {
		text, err := read(file)
		doc, derr := decodeJSON(text)
		if err != nil || derr != nil {
			rows = append(rows, Row{false, fmt.Sprintf("%s cannot be read", file), "mend it"})
			continue
		}
		if v, ok := getJSON(doc, "env", claudePrefix); ok {
			prefix, where = fmt.Sprint(v), file
		}
		if v, ok := getJSON(doc, "env", claudeTmp); ok {
			tmp = fmt.Sprint(v)
		}
	}
	if prefix == "" {
		prefix, where = h.Getenv(claudePrefix), "the environment"
	}
	if prefix == "" {
		return append(rows, Row{false, "no setting wraps commands: Claude Code runs them unboxed", "kgate integrate claude-code"})
	}
	if tmp == "" {
		tmp = h.Getenv(claudeTmp)
	}
	rows = append(rows, Row{true, fmt.Sprintf("every command line becomes one argument of %s (%s)", prefix, where), ""}, program(h, prefix),
		Row{true, "fails closed: where the program is missing each command ends with 127", ""})
	if tmp == "" {
		rows = append(rows, Row{false, "Claude Code's temporary directory is in /tmp, which the box does not share: cd does not persist", "kgate integrate claude-code"})
	} else {
		rows = append(rows, shown(h, tmp, true))
	}
	return append(rows, shown(h, filepath.Join(claudeDir(h), "shell-snapshots"), false))
}

// member is a name and value of a JSON object.
type member struct{ name, value string }

// setBoth sets several members of one object as one change.
func setBoth(text []byte, path []string, members []member) (Splice, error) {
	now := text
	for _, m := range members {
		s, err := setJSON(now, append(append([]string(nil), path...), m.name), m.value)
		if err != nil {
			return Splice{}, err
		}
		now = s.apply(now)
	}
	return between(text, now), nil
}

// between is the one stretch in which two texts differ, in whole lines.
func between(a, b []byte) Splice {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for head > 0 && a[head-1] != '\n' {
		head--
	}
	for tail > 0 && a[len(a)-tail-1] != '\n' {
		tail--
	}
	return Splice{At: head, Old: string(a[head : len(a)-tail]), New: string(b[head : len(b)-tail])}
}

// shown checks that the policy shows a directory to the box.
func shown(h *Host, dir string, write bool) Row {
	how, mend := "", "kgate integrate again"
	if write {
		how = ", writable"
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return Row{false, dir + " is not there", "mkdir -p " + dir}
		}
	}
	text, err := read(policyFile(h))
	if err != nil {
		return Row{false, fmt.Sprintf("the policy cannot be read: %v", err), "mend it"}
	}
	have, err := listAt(text, []string{"allow", "paths"})
	if err != nil {
		return Row{false, "the policy cannot be read", "mend " + policyFile(h)}
	}
	for _, e := range have {
		name, writes := "", false
		switch e := e.(type) {
		case string:
			name = e
		case map[string]any:
			name, _ = e["path"].(string)
			writes, _ = e["write"].(bool)
		}
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(h.Home, rest)
		}
		if (dir == name || strings.HasPrefix(dir, name+"/")) && (writes || !write) {
			return Row{true, "the box shows " + dir + how, ""}
		}
	}
	return Row{false, "the box does not show " + dir + how, mend}
}
