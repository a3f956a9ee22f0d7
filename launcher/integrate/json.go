package integrate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// setJSON sets a member of an object in a JSON text, which may have comments and
// trailing commas. Nothing but that member changes; objects on the way are made.
// A nil text is an empty object.
func setJSON(text []byte, path []string, value any) (Splice, error) {
	return editJSON(text, path, func(old any, there bool) any { return value },
		func(t []byte, v hujson.Value, indent string) (Splice, error) {
			return Splice{v.StartOffset, string(t[v.StartOffset:v.EndOffset]), encodeJSON(value, indent)}, nil
		}, value)
}

// addJSON adds an element to an array in a JSON text, which is made where it is
// missing. An equal element that is there already is left alone.
func addJSON(text []byte, path []string, value any) (Splice, error) {
	return editJSON(text, path, func(old any, there bool) any {
		list, _ := old.([]any)
		if contains(list, value) {
			return list
		}
		return append(list[:len(list):len(list)], value)
	}, func(t []byte, v hujson.Value, indent string) (Splice, error) {
		list, ok := v.Value.(*hujson.Array)
		if !ok {
			return Splice{}, fmt.Errorf("%s is no list: write into it by hand", strings.Join(path, "."))
		}
		var have []any
		plain(v, &have)
		if contains(have, value) {
			return Splice{At: v.StartOffset}, nil
		}
		var elements []hujson.Value
		for _, e := range list.Elements {
			elements = append(elements, hujson.Value(e))
		}
		return insertJSON(t, v, elements, encodeJSON(value, indent+unit(t)), indent), nil
	}, []any{value})
}

func contains(list []any, value any) bool {
	want := normal(value)
	for _, e := range list {
		if reflect.DeepEqual(normal(e), want) {
			return true
		}
	}
	return false
}

// normal is a value as it comes out of a JSON text.
func normal(v any) (out any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic("integrate: own value cannot be encoded: " + err.Error())
	}
	return out
}

// plain decodes a value without its comments.
func plain(v hujson.Value, into any) error {
	v = v.Clone()
	v.Standardize()
	return json.Unmarshal(v.Pack(), into)
}

// editJSON finds the deepest object on the way. When all of the path is there,
// change makes the splice; else a member is added that holds the rest of it with
// fresh at its end. The result is read again and compared with what want makes
// of the old value.
func editJSON(text []byte, path []string, want func(old any, there bool) any,
	change func(text []byte, v hujson.Value, indent string) (Splice, error), fresh any) (Splice, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return Splice{0, string(text), encodeJSON(nest(path, fresh), "") + "\n"}, nil
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return Splice{}, fmt.Errorf("is no JSON (%w): mend it first", err)
	}
	root.UpdateOffsets()
	v, indent := root, ""
	rest := path
	for len(rest) > 0 {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return Splice{}, fmt.Errorf("%s is no object: write %s by hand", strings.Join(path[:len(path)-len(rest)], "."), strings.Join(path, "."))
		}
		next := -1
		for i, m := range o.Members {
			if name, ok := m.Name.Value.(hujson.Literal); ok && name.String() == rest[0] {
				next = i // the last of equal names counts, as for most readers
			}
		}
		if next < 0 {
			break
		}
		v = o.Members[next].Value
		rest = rest[1:]
		indent += unit(text)
	}
	var s Splice
	if len(rest) == 0 {
		s, err = change(text, v, indent)
	} else {
		o := v.Value.(*hujson.Object)
		var members []hujson.Value
		for _, m := range o.Members {
			members = append(members, m.Value)
		}
		member := encodeJSON(rest[0], "") + ": " + encodeJSON(nest(rest[1:], fresh), indent+unit(text))
		s = insertJSON(text, v, members, member, indent)
	}
	if err != nil {
		return Splice{}, err
	}
	s.New = ends(text, s.New)
	return s, verifyJSON(text, s, path, want)
}

// ends gives what is added to a text the line ends that it has throughout.
func ends(text []byte, added string) string {
	if n := bytes.Count(text, []byte("\r\n")); n > 0 && n == bytes.Count(text, []byte("\n")) {
		added = strings.ReplaceAll(strings.ReplaceAll(added, "\r\n", "\n"), "\n", "\r\n")
	}
	return added
}

// insertJSON adds text after the last of the values in an object or array.
func insertJSON(text []byte, around hujson.Value, values []hujson.Value, added, indent string) Splice {
	end := around.EndOffset - 1 // the closing bracket
	from := around.StartOffset + 1
	comma := ""
	if n := len(values); n > 0 {
		from = values[n-1].EndOffset
		comma = ","
	}
	between := string(text[from:end]) // comments, white space, perhaps a comma
	if i := topComma(between); len(values) > 0 && i >= 0 {
		// The list ends in a comma: so it shall.
		comma, added = "", added+","
	}
	if !strings.Contains(between, "\n") && len(values) > 0 {
		return Splice{from, between, comma + between + " " + added}
	}
	// The comments behind the last value stay behind it.
	at := strings.LastIndexByte(between, '\n')
	head, tail := between, "\n"+indent
	if at >= 0 {
		head, tail = between[:at], between[at:]
	}
	return Splice{from, between, comma + head + "\n" + indent + unit(text) + added + tail}
}

// topComma finds a comma outside comments, -1 when there is none.
func topComma(s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "//"):
			n := strings.IndexByte(s[i:], '\n')
			if n < 0 {
				return -1
			}
			i += n
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return -1
			}
			i += n + 3
		case s[i] == ',':
			return i
		}
	}
	return -1
}

// unit is what the text is indented by.
func unit(text []byte) string {
	for _, line := range bytes.Split(text, []byte("\n")) {
		if rest := bytes.TrimLeft(line, " \t"); len(rest) < len(line) && len(rest) > 0 && rest[0] == '"' {
			return string(line[:len(line)-len(rest)])
		}
	}
	return "  "
}

func nest(path []string, value any) any {
	for i := len(path) - 1; i >= 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return value
}

func encodeJSON(v any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(indent, "  ")
	if err := e.Encode(v); err != nil {
		panic("integrate: own value cannot be encoded: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// decodeJSON reads a JSON text with comments; nil and blank ones are empty.
func decodeJSON(text []byte) (map[string]any, error) {
	out := map[string]any{}
	if len(bytes.TrimSpace(text)) == 0 {
		return out, nil
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	return out, plain(v, &out)
}

// getJSON looks a member up.
func getJSON(doc any, path ...string) (any, bool) {
	for _, name := range path {
		o, ok := doc.(map[string]any)
		if !ok {
			return nil, false
		}
		if doc, ok = o[name]; !ok {
			return nil, false
		}
	}
	return doc, true
}

// verifyJSON makes sure that a splice does what it should and nothing else.
func verifyJSON(text []byte, s Splice, path []string, want func(old any, there bool) any) error {
	byHand := fmt.Errorf("cannot be edited without changing something else: write %s by hand", strings.Join(path, "."))
	before, err := decodeJSON(text)
	if err != nil {
		return byHand
	}
	after, err := decodeJSON(s.apply(text))
	if err != nil {
		return byHand
	}
	old, there := getJSON(before, path...)
	expected := normal(want(old, there))
	at := before
	for _, name := range path[:len(path)-1] {
		next, ok := at[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[name] = next
		}
		at = next
	}
	at[path[len(path)-1]] = expected
	if !reflect.DeepEqual(before, after) {
		return byHand
	}
	return nil
}
