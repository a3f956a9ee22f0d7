//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/launcher/integrate"
)

// Every harness that is driven has an integration of that name, made after the
// version that is pinned here; a new pin has to be looked at in both places.
func TestPins(t *testing.T) {
	for _, p := range programs {
		h, err := integrate.Find(p.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if h.Seen != p.version {
			t.Errorf("%s: %s is driven, and the integration was made after %s", p.name, p.version, h.Seen)
		}
		if !strings.Contains(ways(), h.Way) {
			t.Errorf("%s: the page does not say by which setting", p.name)
		}
	}
}

// The results of calls are found in each dialect, in their order.
func TestResults(t *testing.T) {
	for name, request := range map[string]any{
		"responses": object{"input": []any{
			object{"type": "function_call", "call_id": "1"}, object{"type": "function_call_output", "output": "one"},
			object{"type": "function_call_output", "output": []any{object{"type": "input_text", "text": "two"}}}}},
		"chat": object{"messages": []any{object{"role": "user", "content": "x"}, object{"role": "tool", "content": "one"}, object{"role": "tool", "content": "two"}}},
		"messages": object{"messages": []any{object{"role": "user", "content": []any{
			object{"type": "tool_result", "content": "one"}, object{"type": "tool_result", "content": []any{object{"type": "text", "text": "two"}}}}}}},
		"gemini": object{"contents": []any{
			object{"parts": []any{object{"functionResponse": object{"name": "f", "response": object{"output": "one"}}}}},
			object{"parts": []any{object{"functionResponse": object{"name": "f", "response": object{"output": "two"}}}}}}},
	} {
		got := results(request)
		if len(got) != 2 || !strings.Contains(got[0], "one") || !strings.Contains(got[1], "two") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
