package integrate

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// addYAML adds items, each a line of YAML, to a list in a YAML text, in front of
// what it holds. The list and the mappings on the way are made where they are
// missing. Items that are there already are left alone.
func addYAML(text []byte, path []string, items []string) (Splice, error) {
	byHand := fmt.Errorf("cannot be edited without changing something else: add to %s by hand: %s", strings.Join(path, "."), strings.Join(items, ", "))
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return Splice{}, fmt.Errorf("is no YAML (%w): mend it first", err)
	}
	var node *yaml.Node // the deepest one on the way
	if len(doc.Content) > 0 {
		node = doc.Content[0]
		if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
			node = nil
		}
	}
	have, err := listAt(text, path)
	if err != nil {
		return Splice{}, byHand
	}
	var missing []string
	for _, item := range items {
		var v any
		if err := yaml.Unmarshal([]byte(item), &v); err != nil {
			return Splice{}, err
		}
		if !contains(have, v) {
			missing = append(missing, item)
		}
	}
	if len(missing) == 0 {
		return Splice{At: len(text)}, nil
	}

	rest, indent := path, ""
	var key *yaml.Node
	for node != nil && len(rest) > 0 {
		if node.Kind != yaml.MappingNode || node.Style&yaml.FlowStyle != 0 {
			return Splice{}, byHand
		}
		i := 0
		for i < len(node.Content) && node.Content[i].Value != rest[0] {
			i += 2
		}
		if i >= len(node.Content) {
			break
		}
		key, node, rest = node.Content[i], node.Content[i+1], rest[1:]
		indent = strings.Repeat(" ", key.Column-1)
		if node.Kind == yaml.ScalarNode && node.Tag == "!!null" && node.Value == "" {
			break
		}
	}
	var s Splice
	switch {
	case len(rest) == 0 && node.Kind == yaml.SequenceNode && node.Style&yaml.FlowStyle != 0:
		at := offset(text, node.Line, node.Column) + 1
		added := strings.Join(missing, ", ")
		if len(node.Content) > 0 {
			added += ", "
		}
		s = Splice{At: at, New: added}
	case len(rest) == 0 && node.Kind == yaml.SequenceNode && len(node.Content) > 0:
		indent = strings.Repeat(" ", node.Column-1)
		s = Splice{At: offset(text, node.Line, 1), New: block(indent, nil, missing)}
	case len(rest) == 0 && node.Kind != yaml.ScalarNode:
		return Splice{}, byHand
	case key != nil && node.Kind == yaml.ScalarNode: // the key is there with nothing behind it
		s = Splice{At: after(text, key.Line), New: block(indent+"  ", rest, missing)}
	case key != nil: // a mapping that lacks the next key
		indent = strings.Repeat(" ", node.Column-1)
		s = Splice{At: offset(text, node.Line, 1), New: block(indent, rest, missing)}
	default:
		s = Splice{At: len(text), New: block("", rest, missing)}
	}
	if s.At > 0 && text[s.At-1] != '\n' && strings.HasSuffix(s.New, "\n") {
		s.New = "\n" + s.New
	}
	s.New = ends(text, s.New)
	if err := verifyYAML(text, s, path, missing); err != nil {
		return Splice{}, byHand
	}
	return s, nil
}

// block is the lines for the rest of a path and items at its end.
func block(indent string, path, items []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteString(indent + name + ":\n")
		indent += "  "
	}
	for _, item := range items {
		b.WriteString(indent + "- " + item + "\n")
	}
	return b.String()
}

// offset is where a line and column, as YAML counts them, are in a text.
func offset(text []byte, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		at = at + bytes.IndexByte(text[at:], '\n') + 1
	}
	for r := range strings.SplitSeq(string(text[at:]), "") {
		if column--; column < 1 {
			break
		}
		at += len(r)
	}
	return at
}

// after is where the line after one begins.
func after(text []byte, line int) int {
	at := offset(text, line, 1)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

func listAt(text []byte, path []string) ([]any, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	v, ok := getJSON(doc, path...)
	if !ok || v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New("no list")
	}
	return list, nil
}

func verifyYAML(text []byte, s Splice, path, items []string) error {
	var before, after map[string]any
	if err := yaml.Unmarshal(text, &before); err != nil {
		return err
	}
	if err := yaml.Unmarshal(s.apply(text), &after); err != nil {
		return err
	}
	if before == nil {
		before = map[string]any{}
	}
	var list []any
	for _, item := range items {
		var v any
		if err := yaml.Unmarshal([]byte(item), &v); err != nil {
			return err
		}
		list = append(list, v)
	}
	at := before
	for _, name := range path[:len(path)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	last := path[len(path)-1]
	old, _ := at[last].([]any)
	at[last] = append(list, old...)
	if !reflect.DeepEqual(before, after) {
		return errors.New("something else changed")
	}
	return nil
}
