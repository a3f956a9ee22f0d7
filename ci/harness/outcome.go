//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// outcome is what a run left behind.
type outcome struct {
	*run
	text    []byte   // all requests
	results []string // what the model was told of each call, in order
}

// read takes the results from the request that has most of them.
func read(r *run) (*outcome, error) {
	o := &outcome{run: r}
	var err error
	if o.text, err = os.ReadFile(r.requests()); err != nil {
		return nil, err
	}
	for line := range bytes.Lines(o.text) {
		var request struct{ Body any }
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		if got := results(request.Body); len(got) > len(o.results) {
			o.results = got
		}
	}
	if len(o.text) == 0 {
		said, _ := os.ReadFile(filepath.Join(r.Dir, "output.log"))
		return nil, fmt.Errorf("the harness asked the model nothing (%s): %.300s", r.Status, said)
	}
	return o, nil
}

// results are the results of tool calls in a request of any of the dialects.
// Objects of one list keep its order, and none holds two.
func results(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, results(e)...)
		}
	case map[string]any:
		switch {
		case v["type"] == "function_call_output":
			return []string{plain(v["output"])}
		case v["role"] == "tool", v["type"] == "tool_result":
			return []string{plain(v["content"])}
		case v["functionResponse"] != nil:
			return []string{plain(v["functionResponse"])}
		}
		for _, e := range v {
			out = append(out, results(e)...)
		}
	}
	return out
}

// plain is all text in a value.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, plain(e))
		}
		return strings.Join(all, "\n")
	case map[string]any:
		var all []string
		for _, e := range v {
			all = append(all, plain(e))
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	return ""
}

func (o *outcome) says(n int, want string) error {
	if n >= len(o.results) {
		return fmt.Errorf("the model got %d results, of which this would be number %d (the harness ended with %s)", len(o.results), n+1, o.Status)
	}
	if !strings.Contains(o.results[n], want) {
		return fmt.Errorf("the model got %.200q", o.results[n])
	}
	return nil
}

// refused is the case of the denied program.
func (o *outcome) refused(p *program) error {
	errs := []error{o.says(stepCurl, `kgate: denied program "curl", not started`), absent(filepath.Join(o.home(), "curl-ran"))}
	if p.status != "" {
		errs = append(errs, o.says(stepCurl, fmt.Sprintf(p.status, 126)))
	}
	log, err := os.ReadFile(filepath.Join(o.home(), ".kgate", "audit.jsonl"))
	if err != nil {
		return err
	}
	blocks := 0
	for line := range bytes.Lines(log) {
		var e struct {
			Kind string
			Argv []string
		}
		if json.Unmarshal(line, &e) == nil && strings.Contains(strings.Join(e.Argv, " "), "curl") {
			if e.Kind == "block" {
				blocks++
			} else {
				errs = append(errs, fmt.Errorf("the log has a %s of it", e.Kind))
			}
		}
	}
	if blocks != 1 {
		errs = append(errs, fmt.Errorf("the log has %d blocks of it, want 1", blocks))
	}
	return errors.Join(errs...)
}

// sameDirectory compares where the call after the one with cd was, as a place in
// the project.
func (o *outcome) sameDirectory(bare *outcome) error {
	where := func(o *outcome) string {
		if stepPwd >= len(o.results) {
			return "nowhere"
		}
		for _, line := range strings.Fields(o.results[stepPwd]) {
			if rest, ok := strings.CutPrefix(line, o.project()); ok {
				return "the project" + rest
			}
		}
		return "elsewhere"
	}
	if a, b := where(o), where(bare); a != b || a == "nowhere" || a == "elsewhere" {
		return fmt.Errorf("the next call is in %s, without kgate in %s", a, b)
	}
	return o.says(stepCd, o.project()+"/sub")
}

// ended is the case of a command that did not end by itself.
func (o *outcome) ended(sig syscall.Signal) error {
	if err := present(filepath.Join(o.project(), "started")); err != nil {
		return fmt.Errorf("the command was not started (the harness ended with %s)", o.Status)
	}
	if len(o.Left) > 0 {
		return fmt.Errorf("left running: %s", strings.Join(o.Left, "; "))
	}
	if sig != syscall.SIGKILL && o.Late {
		return errors.New("the harness did not end by itself")
	}
	if sig == 0 && len(o.results) == 0 {
		return fmt.Errorf("the model was told nothing (the harness ended with %s)", o.Status)
	}
	return absent(filepath.Join(o.project(), "finished"))
}

func absent(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s was made", filepath.Base(file))
	}
	return nil
}

func present(file string) error {
	if _, err := os.Lstat(file); err != nil {
		return fmt.Errorf("%s was not made", filepath.Base(file))
	}
	return nil
}
