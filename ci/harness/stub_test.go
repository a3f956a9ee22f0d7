//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The stand-in gives the commands out in their order, in each dialect, to a
// request that offers the shell tool, and ends when it has the last result; and
// what the model was told is read back from what it kept.
func TestStub(t *testing.T) {
	for name, d := range map[string]struct {
		path    string
		request func(results []string) object
	}{
		"codex": {"/v1/responses", func(results []string) object {
			input := []any{}
			for _, r := range results {
				input = append(input, object{"type": "function_call_output", "output": r})
			}
			return object{"tools": []any{object{"type": "function", "name": responsesTool}}, "input": input}
		}},
		"opencode": {"/v1/chat/completions", func(results []string) object {
			messages := []any{}
			for _, r := range results {
				messages = append(messages, object{"role": "tool", "content": r})
			}
			return object{"tools": []any{object{"function": object{"name": "bash"}}}, "messages": messages}
		}},
		"claude-code": {"/v1/messages", func(results []string) object {
			content := []any{}
			for _, r := range results {
				content = append(content, object{"type": "tool_result", "content": r})
			}
			return object{"tools": []any{object{"name": "Bash"}}, "messages": []any{object{"role": "user", "content": content}}}
		}},
		"gemini-cli": {"/v1beta/models/m:streamGenerateContent", func(results []string) object {
			parts := []any{}
			for _, r := range results {
				parts = append(parts, object{"functionResponse": object{"response": object{"output": r}}})
			}
			return object{"tools": []any{object{"functionDeclarations": []any{object{"name": "run_shell_command"}}}}, "contents": []any{object{"parts": parts}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{Dir: t.TempDir()}
			log, err := os.Create(filepath.Join(r.Dir, "requests.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			server := httptest.NewServer(&stub{steps: []step{{Command: "echo the-first"}, {Command: "echo the-second"}}, log: log})
			defer server.Close()
			for results, want := range []string{"the-first", "the-second", lastWord} {
				body, err := json.Marshal(d.request([]string{"result one", "result two"}[:results]))
				if err != nil {
					t.Fatal(err)
				}
				answer, err := http.Post(server.URL+d.path, "application/json", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(answer.Body)
				answer.Body.Close()
				if err != nil || !strings.Contains(string(text), want) {
					t.Errorf("after %d results it answers %s, %v, want %q", results, text, err, want)
				}
			}
			o, err := read(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := o.says(1, "result two"); err != nil || o.says(0, "result two") == nil {
				t.Errorf("read back %q, %v", o.results, err)
			}
		})
	}
}
