package integrate

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// undone takes an integration back and returns what its plan's error says.
func undone(t *testing.T, h *Host, name string) error {
	t.Helper()
	hs, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := hs.Undo(h)
	if err != nil {
		return err
	}
	return p.Remove()
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// settings are the files that each harness has of its own.
func settings(h *Host, name string) string {
	return map[string]string{
		"aider": aiderFile(h.Home), "claude-code": filepath.Join(claudeDir(h), "settings.json"), "codex": codexFile(h),
		"gemini-cli": geminiFile(h), "opencode": filepath.Join(opencodeDir(h), "opencode.json"), "vscode": vscodeFile(h),
	}[name]
}

// What is written into a file with the line ends of another system has them too.
func TestLineEnds(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			was := "{\r\n\t\"z\": 1,\r\n\t\"a\": {\r\n\t\t\"b\": 2\r\n\t}\r\n}\r\n"
			switch name {
			case "aider":
				was = "# mine\r\nmodel: x\r\n"
			case "codex":
				was = "# mine\r\nmodel = \"x\"\r\n"
			}
			put(t, settings(h, name), was)
			do(t, h, name)
			now := text(t, settings(h, name))
			if strings.Count(now, "\n") != strings.Count(now, "\r\n") || now == was {
				t.Errorf("made %q", now)
			}
			if err := undone(t, h, name); err != nil || text(t, settings(h, name)) != was {
				t.Errorf("undone to %q, %v", text(t, settings(h, name)), err)
			}
		})
	}
}

// A file that its owner made read-only is not replaced by one that is new, nor
// is a link that leads nowhere.
func TestNotTouched(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			hs, _ := Find(name)
			h := host(t)
			file := settings(h, name)
			put(t, file, "")
			if err := os.Chmod(file, 0o444); err != nil {
				t.Fatal(err)
			}
			before := tree(t, h.Home)
			if _, err := hs.Plan(h); err == nil || !strings.Contains(err.Error(), "read-only") || !strings.Contains(err.Error(), "chmod u+w") {
				t.Errorf("of a file that is read-only: error %v", err)
			}
			if after := tree(t, h.Home); after != before {
				t.Errorf("left\n%s\nwant\n%s", after, before)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(h.Home, "gone"), file); err != nil {
				t.Fatal(err)
			}
			if _, err := hs.Plan(h); err == nil || !strings.Contains(err.Error(), "is a link to") {
				t.Errorf("of a link that leads nowhere: error %v", err)
			}
		})
	}
}

// When a later file cannot be written, the earlier ones are as they were.
func TestAllOrNothing(t *testing.T) {
	for _, name := range []string{"claude-code", "opencode"} {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			put(t, settings(h, name), "{}\n")
			before := tree(t, h.Home)
			hs, _ := Find(name)
			p, err := hs.Plan(h)
			if err != nil {
				t.Fatal(err)
			}
			last := &p.Edits[len(p.Edits)-1]
			if len(p.Edits) < 2 {
				t.Fatal("one file alone is changed")
			}
			last.Before = append(bytes.Clone(last.Before), "other"...)
			if err := p.Apply(); err == nil {
				t.Fatal("no error")
			}
			if after := tree(t, h.Home); after != before {
				t.Errorf("left\n%s\nwant\n%s", after, before)
			}
		})
	}
}

// Harnesses write their settings anew, and people add to them: what kgate put in
// is found all the same, and nothing else is touched.
func TestUndoAmongOthers(t *testing.T) {
	for _, tt := range []struct{ name, harness, was, change, now, want string }{
		{"a file of kgate's that grew", "opencode", "", "{\n  \"shell\": %q,\n  \"model\": \"m\"\n}\n", "", "{\n  \"model\": \"m\"\n}\n"},
		{"a comment behind", "opencode", "{}\n", "{\n  // s\n  \"shell\": %q, // kgate\n  // m\n  \"model\": \"m\"\n}\n", "", "{\n  // s\n  // kgate\n  // m\n  \"model\": \"m\"\n}\n"},
		{"the last", "opencode", "{\"a\": 1}", "{\n  \"a\": 1, // one\n  \"shell\": %q\n}\n", "", "{\n  \"a\": 1 // one\n}\n"},
		{"the last, with a comma", "opencode", "{\"a\": 1}", "{\n  \"a\": 1,\n  \"shell\": %q,\n}\n", "", "{\n  \"a\": 1,\n}\n"},
		{"there before", "opencode", "{\"shell\": \"/bin/zsh\"}", "{\n  \"model\": \"m\",\n  \"shell\": %q\n}\n", "", "{\n  \"model\": \"m\",\n  \"shell\": \"/bin/zsh\"\n}\n"},
		{"taken out by somebody", "opencode", "{}", "{\"x\": 1, \"y\": \"z\"}\n", "", "{\"x\": 1, \"y\": \"z\"}\n"},
		{"an object that others use", "claude-code", "{}", "{\n  \"env\": {\n    \"A\": \"b\",\n    \"CLAUDE_CODE_SHELL_PREFIX\": %q,\n    \"CLAUDE_CODE_TMPDIR\": %q\n  },\n  \"model\": \"m\"\n}\n", "",
			"{\n  \"env\": {\n    \"A\": \"b\"\n  },\n  \"model\": \"m\"\n}\n"},
		{"an object that nobody uses", "claude-code", "{}", "{\n  \"model\": \"m\",\n  \"env\": {\"CLAUDE_CODE_SHELL_PREFIX\": %q, \"CLAUDE_CODE_TMPDIR\": %q}\n}\n", "",
			"{\n  \"model\": \"m\"\n}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := host(t)
			file := settings(h, tt.harness)
			if tt.was != "" {
				put(t, file, tt.was)
			}
			do(t, h, tt.harness)
			now := tt.change
			for _, v := range []string{h.Shell, claudeTmpDir(h)} {
				now = strings.Replace(now, "%q", encodeJSON(v, ""), 1)
			}
			put(t, file, now)
			if err := undone(t, h, tt.harness); err != nil {
				t.Fatal(err)
			}
			if got := text(t, file); got != tt.want {
				t.Errorf("left\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	t.Run("a list", func(t *testing.T) {
		h := host(t)
		do(t, h, "gemini-cli")
		mine := encodeJSON(geminiGroup(h), "")
		put(t, geminiFile(h), `{"hooks": {"BeforeTool": [{"matcher": "x"}, `+mine+`], "other": 1}}`)
		if err := undone(t, h, "gemini-cli"); err != nil {
			t.Fatal(err)
		}
		if got, want := text(t, geminiFile(h)), `{"hooks": {"BeforeTool": [{"matcher": "x"}], "other": 1}}`; got != want {
			t.Errorf("left\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("changed by somebody", func(t *testing.T) {
		h := host(t)
		do(t, h, "opencode")
		const other = "{\"shell\": \"/bin/other\", \"x\": 1}\n"
		put(t, settings(h, "opencode"), other)
		if err := undone(t, h, "opencode"); err == nil || !strings.Contains(err.Error(), "by hand") {
			t.Errorf("error %v", err)
		}
		if got := text(t, settings(h, "opencode")); got != other {
			t.Errorf("left %q", got)
		}
	})
	t.Run("emptied", func(t *testing.T) {
		h := host(t)
		do(t, h, "vscode")
		put(t, vscodeFile(h), "{\n\t"+encodeJSON(vscodeKey(h), "")+": {\"path\": "+encodeJSON(h.Shell, "")+"}\n}\n")
		if err := undone(t, h, "vscode"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(filepath.Join(h.Home, ".config")); err == nil {
			t.Error("the file that kgate made is there still")
		}
	})
}

// Whatever a harness makes of its settings, what kgate put in comes out and the
// rest says what it said.
func TestUnset(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "b", "c", "list"}
	var value func(deep int) any
	value = func(deep int) any {
		switch n := r.IntN(6); {
		case n == 0 && deep > 0:
			list := []any{}
			for range r.IntN(3) {
				list = append(list, value(deep-1))
			}
			return list
		case n < 4 && deep > 0:
			o := object{}
			for range r.IntN(4) {
				o[names[r.IntN(len(names))]] = value(deep - 1)
			}
			return o
		}
		return []any{1.0, "s", true, nil, "}, ]"}[r.IntN(5)]
	}
	write := func(v any) []byte {
		out, err := json.Marshal(v)
		if r.IntN(2) == 0 {
			out, err = json.MarshalIndent(v, "", "\t")
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.IntN(2) == 0 {
			// A comma at the end of each list and object, as some write it.
			var loose []byte
			quoted := false
			for i, c := range out {
				if c == '"' {
					quoted = !quoted
				}
				if (c == '}' || c == ']') && !quoted && !bytes.ContainsAny(bytes.TrimRight(out[:i], " \t\n")[len(bytes.TrimRight(out[:i], " \t\n"))-1:], "{[") {
					loose = append(loose, ',')
				}
				loose = append(loose, c)
			}
			out = loose
		}
		return out
	}
	done := 0
	for range 3000 {
		was, ok := value(3).(object)
		if !ok {
			continue
		}
		before := write(was)
		var s Splice
		var err error
		if r.IntN(2) == 0 {
			s, err = setJSON(before, []string{"a", "list"}, "kgate")
		} else {
			s, err = addJSON(before, []string{"a", "list"}, object{"kgate": true})
		}
		if err != nil {
			continue // by hand
		}
		after := s.apply(before)
		now, err := decodeJSON(after)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decodeJSON(before)
		if err != nil {
			t.Fatal(err)
		}
		now["new"], want["new"] = value(1), nil
		want["new"] = normal(now["new"])
		text := write(now)
		got, err := unsetJSON(before, after, text)
		if err != nil {
			t.Fatalf("%s\nin\n%s\nfrom\n%s", err, text, before)
		}
		if doc, err := decodeJSON(got); err != nil || !reflect.DeepEqual(doc, want) {
			t.Fatalf("left\n%s\n%v\nof\n%s\nfrom\n%s", got, err, text, before)
		}
		done++
	}
	if done < 500 {
		t.Errorf("only %d were looked at", done)
	}
}

type object = map[string]any

// A kgate that moved, after somebody changed the settings: the new one takes the
// old one's place, and nothing of either is left behind.
func TestMovedAmongOthers(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			h := host(t)
			file, more := settings(h, name), "\n// more\n"
			switch name {
			case "aider", "codex":
				put(t, file, "# mine\n")
				more = "# more\n"
			default:
				put(t, file, "{\n  \"z\": 1\n}\n")
			}
			do(t, h, name)
			was := text(t, file)
			put(t, file, was+more)
			old := h.Shell
			h.Shell = filepath.Join(h.Home, "elsewhere", "kgate-sh")
			h.Kgate = filepath.Join(h.Home, "elsewhere", "kgate")
			do(t, h, name)
			now := text(t, file)
			if strings.Contains(now, filepath.Dir(old)) || !strings.Contains(now, filepath.Dir(h.Shell)) || !strings.HasSuffix(now, more) && name != "aider" && name != "codex" {
				t.Errorf("made\n%s", now)
			}
			if err := undone(t, h, name); err != nil {
				t.Fatal(err)
			}
			if got := text(t, file); strings.Contains(got, "kgate") || !strings.Contains(got, "more") {
				t.Errorf("left\n%s", got)
			}
		})
	}
}

// Without a policy every command is refused, which a check has to say.
func TestCheckPolicy(t *testing.T) {
	for _, name := range Names() {
		h := host(t)
		do(t, h, name)
		if err := os.Remove(policyFile(h)); err != nil {
			t.Fatal(err)
		}
		hs, _ := Find(name)
		found := false
		for _, r := range hs.Check(h) {
			found = found || !r.OK && strings.Contains(r.Mend, "kgate init")
		}
		if !found {
			t.Errorf("%s: not said", name)
		}
	}
}
