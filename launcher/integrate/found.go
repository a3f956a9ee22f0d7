package integrate

import (
	"os"
	"path/filepath"
)

// Found is a harness that seems to be installed.
type Found struct {
	Name  string // for kgate integrate NAME
	Title string
	// Where is what was found: its program on PATH, else its settings.
	Where string
}

// signs are each harness's program and where its settings lie.
var signs = [...]struct {
	name, program string
	settings      func(h *Host) string
}{
	{"aider", "aider", func(h *Host) string { return aiderFile(h.Home) }},
	{"claude-code", "claude", claudeDir},
	{"codex", "codex", codexDir},
	{"gemini-cli", "gemini", func(h *Host) string { return filepath.Dir(geminiFile(h)) }},
	{"opencode", "opencode", opencodeDir},
	{"vscode", "code", func(h *Host) string { return filepath.Dir(vscodeFile(h)) }},
}

// Installed lists the harnesses that seem to be installed, in the order of
// their names. Only Home, OS, Getenv and the files are looked at; no program of
// theirs is run.
func Installed(h *Host) []Found {
	var out []Found
	for _, sign := range signs {
		where := onPath(h.Getenv("PATH"), sign.program)
		if where == "" {
			if dir := sign.settings(h); exists(dir) {
				where = dir
			}
		}
		if where == "" {
			continue
		}
		if hs, err := Find(sign.name); err == nil {
			out = append(out, Found{Name: sign.name, Title: hs.Title, Where: where})
		}
	}
	return out
}

// onPath is exec.LookPath for a PATH that need not be the process's own.
func onPath(list, program string) string {
	for _, dir := range filepath.SplitList(list) {
		file := filepath.Join(dir, program)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
