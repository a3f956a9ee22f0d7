package integrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// HookBlocked is the exit status by which a hook's program keeps Codex and Gemini
// CLI from starting a command; its standard error is the reason.
const HookBlocked = 2

// hookAnswer tells a harness that hands each command to a program before it
// starts it, and takes it back changed, to start this one; nil for a harness
// that does not.
func hookAnswer(name string, input map[string]any) any {
	switch name {
	case "codex":
		return map[string]any{"hookSpecificOutput": map[string]any{
			"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": input,
		}}
	case "gemini-cli":
		return map[string]any{"decision": "allow", "hookSpecificOutput": map[string]any{
			"hookEventName": "BeforeTool", "tool_input": input,
		}}
	}
	return nil
}

// hookCall is what both harnesses tell a hook.
type hookCall struct {
	Dir        string         `json:"cwd"`
	Transcript string         `json:"transcript_path"`
	Tool       string         `json:"tool_name"`
	Input      map[string]any `json:"tool_input"`
}

// Hook answers a harness's question what to do with a command: start it through
// shell. Any error means that nothing may start.
func Hook(name string, in []byte, shell string) ([]byte, error) {
	if hookAnswer(name, nil) == nil {
		return nil, fmt.Errorf("there is no hook for %q (there is one for codex and gemini-cli)", name)
	}
	var call hookCall
	if err := json.Unmarshal(in, &call); err != nil {
		return nil, fmt.Errorf("the harness's question is not understood: %w", err)
	}
	command, ok := call.Input["command"].(string)
	if !ok {
		return nil, fmt.Errorf("the harness's question about %q has no command", call.Tool)
	}
	if name == "codex" {
		if err := inSession(call); err != nil {
			return nil, err
		}
	}
	call.Input["command"] = Word(shell) + " -c " + Word(command)
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(hookAnswer(name, call.Input))
	return out.Bytes(), err
}

// inSession refuses a working directory outside the one that the person started
// Codex in: the directory is the model's to choose, and what it lies in is what
// the box makes writable.
func inSession(c hookCall) error {
	root := sessionDir(c.Transcript)
	if root == "" || c.Dir == "" {
		return nil // a release that does not say
	}
	dir, rdir := filepath.Clean(c.Dir), filepath.Clean(root)
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		dir = r
	}
	if r, err := filepath.EvalSymlinks(rdir); err == nil {
		rdir = r
	}
	if top := project(rdir); top != "" {
		rdir = top
	}
	if dir == rdir || strings.HasPrefix(dir, rdir+"/") {
		return nil
	}
	return fmt.Errorf("the working directory %q lies outside %q, which this session was started in (start codex there)", c.Dir, rdir)
}

// project is the nearest directory at or above dir with a repository in it, ""
// for none.
func project(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
		dir = filepath.Dir(dir)
	}
}

// sessionDir is the directory that a Codex session was started in, from the
// first line of its record; "" when that does not say.
func sessionDir(transcript string) string {
	f, err := os.Open(transcript)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, err := bufio.NewReaderSize(f, 1<<20).ReadSlice('\n')
	if err != nil {
		return ""
	}
	var first struct {
		Type    string
		Payload struct{ Cwd string }
	}
	if json.Unmarshal(line, &first) != nil || first.Type != "session_meta" {
		return ""
	}
	return first.Payload.Cwd
}

// Word writes a word so that a shell reads it back as it is.
func Word(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// hookCommand is the command line for a settings file. Where kgate is missing it
// still ends with the status that keeps the command from starting.
func hookCommand(h *Host, name string) string {
	return h.Kgate + " hook " + name + " || exit 2"
}
