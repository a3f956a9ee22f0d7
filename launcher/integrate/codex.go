package integrate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
)

// Codex hands each command to a hook, which puts kgate in front of it. It runs
// only hooks that were trusted, and one that it does not run does not stop the
// command.
func codex() *Harness {
	return &Harness{
		Name: "codex", Title: "Codex", Seen: "0.171.0",
		Way: "a PreToolUse hook for ^Bash$ in config.toml",
		Open: "a hook that is not trusted, or turned off, is skipped and the command runs unboxed; " +
			"a missing program is closed by the hook's own command line (|| exit 2); " +
			"an administrator closes the rest with the same hook in /etc/codex/requirements.toml, where it cannot be turned off",
		edits: codexEdits, check: codexCheck, after: codexAfter,
	}
}

func codexDir(h *Host) string {
	if dir := h.Getenv("CODEX_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(h.Home, ".codex")
}

func codexFile(h *Host) string { return filepath.Join(codexDir(h), "config.toml") }

// codexTimeout is how long Codex waits for the hook, in seconds; its own default
// is ten minutes.
const codexTimeout = 30

func codexBlock(h *Host) string {
	return fmt.Sprintf(`# kgate integrate codex: every command runs in kgate's box
[[hooks.PreToolUse]]
matcher = "^Bash$"

[[hooks.PreToolUse.hooks]]
type = "command"
command = %q
timeout = %d
`, hookCommand(h, "codex"), codexTimeout)
}

func codexEdits(h *Host, f *files) error {
	file, err := real(codexFile(h))
	if err != nil {
		return err
	}
	return f.edit(file, func(text []byte) (Splice, error) {
		var doc map[string]any
		if err := toml.Unmarshal(text, &doc); err == nil {
			if at, _ := codexHook(h, doc); at >= 0 {
				return Splice{At: len(text)}, nil
			}
		}
		want := func(before, after map[string]any) error {
			at, groups := codexHook(h, after)
			if at < 0 || at != len(groups)-1 || len(groups) != len(codexGroups(before))+1 {
				return errors.New("not there")
			}
			return sameBut(before, after, "hooks")
		}
		s, err := appendTOML(text, codexBlock(h), want)
		if err != nil {
			return Splice{}, err
		}
		key, hash := codexTrust(h, file, s.apply(text))
		if hash == "" {
			return s, nil
		}
		trusted := fmt.Sprintf("\n[hooks.state.%q]\ntrusted_hash = %q\n", key, hash)
		if t, err := appendTOML(text, codexBlock(h)+trusted, want); err == nil {
			return t, nil
		}
		return s, nil
	})
}

func codexGroups(doc map[string]any) []any {
	v, _ := getJSON(doc, "hooks", "PreToolUse")
	switch v := v.(type) {
	case []any:
		return v
	case []map[string]any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = v[i]
		}
		return out
	}
	return nil
}

// codexHook finds kgate's group among those of PreToolUse; -1: it is not there.
func codexHook(h *Host, doc map[string]any) (at int, groups []any) {
	groups = codexGroups(doc)
	for i, g := range groups {
		if g, ok := g.(map[string]any); ok && g["matcher"] == "^Bash$" {
			text, _ := json.Marshal(normal(g))
			var group struct {
				Hooks []struct{ Type, Command string }
			}
			json.Unmarshal(text, &group)
			for _, one := range group.Hooks {
				if one.Type == "command" && one.Command == hookCommand(h, "codex") {
					return i, groups
				}
			}
		}
	}
	return -1, groups
}

// codexListed is one hook as Codex itself lists it.
type codexListed struct {
	Key, Command, SourcePath, CurrentHash, TrustStatus, Matcher string
	Enabled                                                     bool
}

// codexList asks Codex's app server which hooks it knows. It may be asked in a
// home of its own, so that nothing of the person's is touched.
func codexList(home, dir string) ([]codexListed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "codex", "app-server")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
	cmd.WaitDelay = time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// It ends with its input.
	defer cmd.Wait()
	defer cmd.Process.Kill()
	list, err := json.Marshal(map[string]any{"id": 2, "method": "hooks/list", "params": map[string]any{"cwds": []string{dir}}})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(in, "%s\n%s\n%s\n", `{"id":1,"method":"initialize","params":{"clientInfo":{"name":"kgate","version":"1"}}}`,
		`{"method":"initialized"}`, list)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var answer struct {
			ID     int
			Result struct {
				Data []struct{ Hooks []codexListed }
			}
		}
		if json.Unmarshal(lines.Bytes(), &answer) == nil && answer.ID == 2 && len(answer.Result.Data) > 0 {
			return answer.Result.Data[0].Hooks, nil
		}
	}
	return nil, errors.New("codex app-server did not list its hooks")
}

// codexTrust asks Codex, in a directory of its own with the new text, under
// which key and hash it would trust the hook: what its own screen for hooks
// writes when the person says yes. Empty where Codex is not there to be asked.
func codexTrust(h *Host, file string, text []byte) (key, hash string) {
	dir, err := os.MkdirTemp("", "kgate-codex-")
	if err != nil {
		return "", ""
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", ""
	}
	mine := filepath.Join(dir, "config.toml")
	if os.WriteFile(mine, text, 0o600) != nil {
		return "", ""
	}
	list, err := codexList(dir, dir)
	if err != nil {
		return "", ""
	}
	for _, l := range list {
		if rest, ok := strings.CutPrefix(l.Key, mine+":"); ok && l.Command == hookCommand(h, "codex") {
			return file + ":" + rest, l.CurrentHash
		}
	}
	return "", ""
}

func codexAfter(h *Host) []string {
	out := []string{
		"use one box: kgate's needs user namespaces, which Codex's own sandbox takes away. Set sandbox_mode = \"danger-full-access\" in config.toml, or start codex --sandbox danger-full-access; with Codex's sandbox on, kgate refuses every command and says so (or leave kgate out: kgate integrate codex --remove)",
		"the login shell that Codex puts around each command stays outside the box, and with it what the person's profile does; apply_patch and other tools of Codex's do not go through a shell",
	}
	if list, err := codexList(codexDir(h), h.Dir); err != nil || codexState(h, list) != "trusted" {
		out = append(out, "Codex has not been told to trust the hook: start codex, type /hooks and trust it; until then commands run unboxed")
	}
	return out
}

// codexState is what Codex says of kgate's hook; "" when it has none.
func codexState(h *Host, list []codexListed) string {
	for _, l := range list {
		if l.Command == hookCommand(h, "codex") && l.Matcher == "^Bash$" {
			if !l.Enabled {
				return "turned off"
			}
			return l.TrustStatus
		}
	}
	return ""
}

func codexCheck(h *Host) []Row {
	file := codexFile(h)
	text, err := read(file)
	var doc map[string]any
	if err == nil {
		err = toml.Unmarshal(text, &doc)
	}
	if err != nil {
		return []Row{{false, fmt.Sprintf("%s cannot be read: %v", file, err), "mend it"}}
	}
	if at, _ := codexHook(h, doc); at < 0 {
		return []Row{{false, file + " has no hook of this kgate's: Codex runs commands unboxed", "kgate integrate codex"}}
	}
	rows := []Row{
		{true, "each command becomes " + h.Shell + " -c COMMAND (hook in " + file + ")", ""},
		program(h, h.Kgate), program(h, h.Shell),
	}
	if list, err := codexList(codexDir(h), h.Dir); err != nil {
		rows = append(rows, Row{false, "fails open: a hook that is not trusted is skipped, and Codex cannot be asked whether this one is (" + err.Error() + ")", "put codex on PATH, or look under /hooks in it"})
	} else if s := codexState(h, list); s == "trusted" || s == "managed" {
		rows = append(rows, Row{true, "Codex says that the hook is " + s, ""})
	} else {
		rows = append(rows, Row{false, "fails open now: Codex says that the hook is " + s + " and skips it", "start codex, type /hooks and trust it"})
	}
	if v, ok := getJSON(doc, "features", "hooks"); ok && v == false {
		rows = append(rows, Row{false, "fails open now: hooks are turned off (features.hooks)", "take that out of " + file})
	}
	if doc["sandbox_mode"] == "danger-full-access" {
		rows = append(rows, Row{true, "one box: Codex's own sandbox is off (sandbox_mode), kgate's is around each command", ""})
	} else {
		rows = append(rows, Row{false, "two boxes: with Codex's own sandbox on, kgate can make none and refuses every command",
			`sandbox_mode = "danger-full-access" in ` + file + `, or codex --sandbox danger-full-access; or leave kgate out`})
	}
	return append(rows, Row{true, "fails closed where kgate is missing (|| exit 2); fails open where the hook is turned off, untrusted or bypassed: an administrator closes that in /etc/codex/requirements.toml", ""})
}
