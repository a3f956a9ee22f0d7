package integrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// host is a home with a policy and a kgate in it.
func host(t *testing.T) *Host {
	t.Helper()
	home := t.TempDir()
	h := &Host{
		Home: home, OS: "linux", Dir: filepath.Join(home, "proj"),
		Kgate: filepath.Join(home, "bin", "kgate"), Shell: filepath.Join(home, "bin", "kgate-sh"),
		Getenv: func(string) string { return "" },
		Ask:    func(...string) (string, error) { return "", os.ErrNotExist },
	}
	t.Setenv("PATH", "/usr/bin:/bin") // no harness of this machine's is asked
	put(t, h.Kgate, "#!/bin/sh\n")
	put(t, policyFile(h), "version: 1 # mine\nnetwork: \"off\"\n")
	if err := os.Symlink("kgate", h.Shell); err != nil {
		t.Fatal(err)
	}
	return h
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, h *Host, name string) *Plan {
	t.Helper()
	hs, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := hs.Plan(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(); err != nil {
		t.Fatal(err)
	}
	return p
}

// files is every file below a directory with its mode and text.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(file string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		b.WriteString(file + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			b.WriteString(" " + string(text))
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThereAndBack(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			before := tree(t, h.Home)
			if p := do(t, h, name); len(p.Edits) == 0 {
				t.Fatal("nothing was changed")
			}
			if p := do(t, h, name); len(p.Edits) != 0 {
				t.Errorf("changed again: %v", p.Edits)
			}
			// A kgate elsewhere: the way back still leads to before the first change.
			h.Shell = filepath.Join(h.Home, "elsewhere", "kgate-sh")
			h.Kgate = filepath.Join(h.Home, "elsewhere", "kgate")
			if p := do(t, h, name); len(p.Edits) == 0 {
				t.Error("nothing was changed for a kgate elsewhere")
			}
			hs, _ := Find(name)
			undo, err := hs.Undo(h)
			if err != nil {
				t.Fatal(err)
			}
			if err := undo.Remove(); err != nil {
				t.Fatal(err)
			}
			if after := tree(t, h.Home); after != before {
				t.Errorf("left\n%s\nwant\n%s", after, before)
			}
		})
	}
}

// A check must find what the change of each harness was for, and miss it.
func TestCheckFinds(t *testing.T) {
	bad := func(rows []Row) (out []string) {
		for _, r := range rows {
			if !r.OK {
				out = append(out, r.What)
			}
		}
		return out
	}
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			hs, _ := Find(name)
			if got := bad(hs.Check(h)); len(got) == 0 {
				t.Error("in force before it was done")
			}
			do(t, h, name)
			got := bad(hs.Check(h))
			if name == "codex" {
				// Codex is not there to say that it trusts the hook, and its own
				// sandbox is on.
				if len(got) != 2 || !strings.Contains(got[0], "cannot be asked") || !strings.Contains(got[1], "two boxes") {
					t.Errorf("says %q", got)
				}
			} else if len(got) > 0 {
				t.Errorf("says %q", got)
			}
			if err := os.Remove(h.Kgate); err != nil {
				t.Fatal(err)
			}
			if later := bad(hs.Check(h)); len(later) <= len(got) {
				t.Errorf("with kgate gone it says %q", later)
			}
		})
	}
}

// Project settings that put another shell in the place of kgate's are seen.
func TestCheckProject(t *testing.T) {
	for name, file := range map[string][2]string{
		"claude-code": {".claude/settings.json", `{"env": {"CLAUDE_CODE_SHELL_PREFIX": "/bin/other"}}`},
		"opencode":    {"opencode.json", `{"shell": "/bin/other"}`},
		"aider":       {".aider.conf.yml", "set-env:\n  - SHELL=/bin/other\n"},
		"vscode":      {".vscode/settings.json", `{"chat.tools.terminal.terminalProfile.linux": {"path": "/bin/other"}}`},
		"gemini-cli":  {".gemini/settings.json", `{"hooksConfig": {"enabled": false}}`},
	} {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			do(t, h, name)
			put(t, filepath.Join(h.Dir, file[0]), file[1])
			hs, _ := Find(name)
			for _, r := range hs.Check(h) {
				if !r.OK {
					return
				}
			}
			t.Error("found in force")
		})
	}
}

// What changed between the plan and the writing is not overwritten.
func TestChangedMeanwhile(t *testing.T) {
	h := host(t)
	hs, _ := Find("vscode")
	p, err := hs.Plan(h)
	if err != nil {
		t.Fatal(err)
	}
	put(t, vscodeFile(h), "{}")
	if err := p.Apply(); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("error %v", err)
	}
	if text, _ := os.ReadFile(vscodeFile(h)); string(text) != "{}" {
		t.Errorf("wrote %q", text)
	}
}

// A link to a settings file stays one.
func TestLinked(t *testing.T) {
	h := host(t)
	kept := filepath.Join(h.Home, "dotfiles", "settings.json")
	put(t, kept, "{}\n")
	if err := os.MkdirAll(filepath.Dir(vscodeFile(h)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kept, vscodeFile(h)); err != nil {
		t.Fatal(err)
	}
	do(t, h, "vscode")
	if to, err := os.Readlink(vscodeFile(h)); err != nil || to != kept {
		t.Errorf("the link is %q, %v", to, err)
	}
	if text, _ := os.ReadFile(kept); !strings.Contains(string(text), h.Shell) {
		t.Errorf("it leads to %q", text)
	}
}
