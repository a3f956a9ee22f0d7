//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// modelName is what the harnesses are told that the model is called.
const modelName = "stub-model"

// lastWord is the model's answer when it has no more commands.
const lastWord = "all done"

// call is one call of the shell tool.
type call struct {
	id   string
	step step
}

// writer writes server-sent events.
type writer struct{ io.Writer }

func (w *writer) event(name string, v any) {
	text, _ := json.Marshal(v)
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", text)
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// object is a JSON object.
type object = map[string]any

// responsesTool is Codex's shell tool.
const responsesTool = "exec_command"

// openaiResponse is POST /v1/responses, as Codex 0.171 speaks it.
func openaiResponse(w *writer, c *call) {
	w.event("response.created", object{"type": "response.created", "response": object{"id": "resp_1"}})
	var item object
	if c != nil {
		args := object{"cmd": c.step.Command, "yield_time_ms": 30000}
		if c.step.Timeout > 0 {
			args["yield_time_ms"] = c.step.Timeout
		}
		item = object{"type": "function_call", "id": "fc_" + c.id, "call_id": c.id, "name": responsesTool, "arguments": text(args)}
	} else {
		item = object{"type": "message", "role": "assistant", "id": "msg_1",
			"content": []any{object{"type": "output_text", "text": lastWord}}}
	}
	w.event("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	w.event("response.completed", object{"type": "response.completed", "response": object{"id": "resp_1",
		"usage": object{"input_tokens": 1, "input_tokens_details": nil, "output_tokens": 1, "output_tokens_details": nil, "total_tokens": 2}}})
}

// openaiChat is POST /v1/chat/completions, as opencode 1.18 speaks it.
func openaiChat(w *writer, c *call) {
	chunk := func(delta object, finish any) {
		w.event("", object{"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": modelName,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	if c != nil {
		args := object{"command": c.step.Command, "description": "a step"}
		if c.step.Timeout > 0 {
			args["timeout"] = c.step.Timeout
		}
		chunk(object{"role": "assistant", "content": nil, "tool_calls": []any{object{"index": 0, "id": c.id, "type": "function",
			"function": object{"name": "bash", "arguments": text(args)}}}}, nil)
		chunk(object{}, "tool_calls")
	} else {
		chunk(object{"role": "assistant", "content": lastWord}, nil)
		chunk(object{}, "stop")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// anthropic is POST /v1/messages, as Claude Code 2.1 speaks it.
func anthropic(w *writer, c *call) {
	w.event("message_start", object{"type": "message_start", "message": object{"id": "msg_1", "type": "message", "role": "assistant",
		"model": modelName, "content": []any{}, "stop_reason": nil, "usage": object{"input_tokens": 1, "output_tokens": 1}}})
	stop := "end_turn"
	if c != nil {
		stop = "tool_use"
		args := object{"command": c.step.Command, "description": "a step"}
		if c.step.Timeout > 0 {
			args["timeout"] = c.step.Timeout
		}
		w.event("content_block_start", object{"type": "content_block_start", "index": 0,
			"content_block": object{"type": "tool_use", "id": "toolu_" + c.id, "name": "Bash", "input": object{}}})
		w.event("content_block_delta", object{"type": "content_block_delta", "index": 0,
			"delta": object{"type": "input_json_delta", "partial_json": text(args)}})
	} else {
		w.event("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": object{"type": "text", "text": ""}})
		w.event("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": lastWord}})
	}
	w.event("content_block_stop", object{"type": "content_block_stop", "index": 0})
	w.event("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 1}})
	w.event("message_stop", object{"type": "message_stop"})
}

// gemini is POST /v1beta/models/M:streamGenerateContent?alt=sse, as Gemini CLI
// 0.61 speaks it.
func gemini(w *writer, c *call) {
	if c == nil {
		w.event("", geminiText(lastWord))
		return
	}
	w.event("", geminiParts(object{"functionCall": object{"name": "run_shell_command",
		"args": object{"command": c.step.Command, "description": "a step"}}}))
}

func geminiText(s string) object { return geminiParts(object{"text": s}) }

func geminiParts(part object) object {
	return object{
		"candidates": []any{object{"index": 0, "finishReason": "STOP",
			"content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
		"modelVersion":  modelName,
	}
}
