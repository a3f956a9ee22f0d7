//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
)

// A stub stands in for the model's API of all four harnesses at once. It has a
// list of command lines: to a request that carries n results of the shell tool
// it answers with a call of that tool for line n, and with a last word when
// there is none left. What was asked of it is kept.
type stub struct {
	steps []step
	log   *os.File

	mu    sync.Mutex
	calls int
}

// step is one call of the shell tool.
type step struct {
	Command string `json:"command"`
	Timeout int    `json:"timeout,omitempty"` // milliseconds that the harness shall give it; 0: its own
}

// serve answers on an address from now on.
func (s *stub) serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go http.Serve(l, s)
	return nil
}

func (s *stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
	if err != nil {
		return
	}
	s.mu.Lock()
	line, _ := json.Marshal(map[string]any{"path": r.URL.Path, "body": json.RawMessage(orNull(body))})
	s.log.Write(append(line, '\n'))
	s.calls++
	id := fmt.Sprintf("call_%d", s.calls)
	s.mu.Unlock()

	var answer func(*writer, *call)
	var results int
	var hasTool bool
	var request any
	if json.Unmarshal(body, &request) != nil && len(body) > 0 {
		http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
		return
	}
	switch p := r.URL.Path; {
	case strings.HasSuffix(p, "/responses"):
		results, hasTool, answer = count(request, "type", "function_call_output"), tool(request, responsesTool), openaiResponse
	case strings.HasSuffix(p, "/chat/completions"):
		results, hasTool, answer = count(request, "role", "tool"), tool(request, "bash"), openaiChat
	case strings.HasSuffix(p, "/messages"):
		results, hasTool, answer = count(request, "type", "tool_result"), tool(request, "Bash"), anthropic
	case strings.HasSuffix(p, "/count_tokens"):
		reply(w, map[string]any{"input_tokens": 10})
		return
	case strings.Contains(p, ":streamGenerateContent"):
		results, hasTool, answer = countKey(request, "functionResponse"), tool(request, "run_shell_command"), gemini
	case strings.Contains(p, ":generateContent"):
		reply(w, geminiText("{}"))
		return
	case strings.Contains(p, ":countTokens"):
		reply(w, map[string]any{"totalTokens": 10})
		return
	case strings.HasSuffix(p, "/models"):
		reply(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": modelName, "object": "model"}}, "models": []any{}})
		return
	default:
		http.NotFound(w, r)
		return
	}
	var c *call
	if hasTool && results < len(s.steps) {
		c = &call{id: id, step: s.steps[results]}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	answer(&writer{w}, c)
}

func orNull(body []byte) []byte {
	if len(body) == 0 || !json.Valid(body) {
		return []byte("null")
	}
	return body
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}

// count is how many objects anywhere in a request have that value under a key.
func count(v any, key, value string) (n int) {
	walk(v, func(o map[string]any) {
		if o[key] == value {
			n++
		}
	})
	return n
}

func countKey(v any, key string) (n int) {
	walk(v, func(o map[string]any) {
		if _, ok := o[key]; ok {
			n++
		}
	})
	return n
}

// tool says whether a request offers a tool of that name. Harnesses also ask
// for titles and summaries, without tools.
func tool(v any, name string) bool { return count(v, "name", name) > 0 }

func walk(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, e := range v {
			walk(e, f)
		}
	case []any:
		for _, e := range v {
			walk(e, f)
		}
	}
}
