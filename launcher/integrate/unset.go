package integrate

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// Harnesses write their settings anew, with an order and spaces of their own.
// Then kgate's members are found by what they say.

var errUnset = errors.New("what was put in was changed")

func isJSON(file string) bool {
	return strings.HasPrefix(filepath.Ext(file), ".json")
}

// sound says whether a text can still be read, if it could be before.
func sound(before, after []byte) bool {
	if _, err := decodeJSON(before); err != nil {
		return true
	}
	_, err := decodeJSON(after)
	return err == nil
}

// blank says whether a text holds nothing: no member, no comment.
func blank(text []byte) bool {
	rest := bytes.TrimSpace(text)
	if len(rest) > 1 && rest[0] == '{' && rest[len(rest)-1] == '}' {
		rest = bytes.TrimSpace(rest[1 : len(rest)-1])
	}
	return len(rest) == 0
}

// change is a member that was set, or an element that was added when Element is
// true.
type change struct {
	path    []string
	element bool
	old     any // of a member that was there before
	was     bool
	value   any
}

// changes lists what turns one object into another.
func changes(path []string, before, after map[string]any) (out []change) {
	for name, v := range after {
		at := append(path[:len(path):len(path)], name)
		old, was := before[name]
		if reflect.DeepEqual(old, v) && was {
			continue
		}
		was1, isObject := old.(map[string]any)
		now, object := v.(map[string]any)
		list, isList := v.([]any)
		listWas, wasList := old.([]any)
		switch {
		case object && (isObject || !was):
			out = append(out, changes(at, was1, now)...)
		case isList && (wasList || !was):
			for _, e := range list {
				if !contains(listWas, e) {
					out = append(out, change{path: at, element: true, value: e})
				}
			}
		default:
			out = append(out, change{path: at, old: old, was: was, value: v})
		}
	}
	return out
}

// unsetJSON takes out of a text what turned before into after. Objects and lists
// that are empty then, and were not there before, go with it.
func unsetJSON(before, after, now []byte) ([]byte, error) {
	was, err := decodeJSON(before)
	if err != nil {
		return nil, err
	}
	made, err := decodeJSON(after)
	if err != nil {
		return nil, err
	}
	for _, c := range changes(nil, was, made) {
		doc, err := decodeJSON(now)
		if err != nil {
			return nil, err
		}
		v, there := getJSON(doc, c.path...)
		list, _ := v.([]any)
		switch {
		case !there, c.element && !contains(list, c.value):
			continue // somebody took it out
		case c.element:
			for i := len(list) - 1; i >= 0 && err == nil; i-- {
				if reflect.DeepEqual(list[i], c.value) {
					now, err = cutJSON(now, c.path, i)
				}
			}
		case !reflect.DeepEqual(v, c.value):
			if reflect.DeepEqual(v, c.old) {
				continue
			}
			return nil, errUnset
		case c.was:
			var s Splice
			if s, err = setJSON(now, c.path, c.old); err == nil {
				now = s.apply(now)
			}
		default:
			now, err = cutJSON(now, c.path, -1)
		}
		for at := c.path; err == nil && len(at) > 0; at = at[:len(at)-1] {
			if doc, err = decodeJSON(now); err != nil {
				break
			}
			v, there := getJSON(doc, at...)
			object, isObject := v.(map[string]any)
			list, isList := v.([]any)
			if _, old := getJSON(was, at...); old || there && !(isObject && len(object) == 0 || isList && len(list) == 0) {
				break
			}
			if there {
				now, err = cutJSON(now, at, -1)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return now, nil
}

// cutJSON takes a member out of an object, or an element out of the list there.
// The comments around it stay.
func cutJSON(text []byte, path []string, element int) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	root.UpdateOffsets()
	v := root
	var spans [][2]int  // of the members or elements around it, from their begin to their end
	index, end := -1, 0 // end: of what is around it
	for _, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, errUnset
		}
		spans, index, end = nil, -1, v.EndOffset-1
		for i, m := range o.Members {
			spans = append(spans, [2]int{m.Name.StartOffset, m.Value.EndOffset})
			if n, ok := m.Name.Value.(hujson.Literal); ok && n.String() == name {
				index = i
			}
		}
		if index < 0 {
			return nil, errUnset
		}
		v = o.Members[index].Value
	}
	if element >= 0 {
		list, ok := v.Value.(*hujson.Array)
		if !ok || element >= len(list.Elements) {
			return nil, errUnset
		}
		spans, index, end = nil, element, v.EndOffset-1
		for _, e := range list.Elements {
			spans = append(spans, [2]int{e.StartOffset, e.EndOffset})
		}
	}
	from, to := spans[index][0], spans[index][1]
	last := index == len(spans)-1
	rest := text[to:end]
	if !last {
		rest = text[to:spans[index+1][0]]
	}
	out := bytes.Clone(text)
	comma := topComma(string(rest))
	if comma < 0 && index > 0 {
		// The comma in front of it goes instead.
		before := spans[index-1][1]
		if i := topComma(string(text[before:from])); i >= 0 {
			out = append(out[:before+i], out[before+i+1:]...)
			from, to = from-1, to-1
		}
	}
	if comma >= 0 {
		out = append(out[:to+comma], out[to+comma+1:]...)
	}
	out = append(out[:from], out[to:]...)
	// What is left of its lines is white space, or somebody's comment.
	begin := bytes.LastIndexByte(out[:from], '\n') + 1
	eol := bytes.IndexByte(out[from:], '\n')
	if eol >= 0 && begin > 0 && len(bytes.TrimSpace(out[begin:from+eol])) == 0 {
		out = append(out[:begin], out[from+eol+1:]...)
	} else if from < len(out) && out[from] == ' ' && from > 0 && (out[from-1] == ' ' || out[from-1] == '{' || out[from-1] == '[') {
		out = append(out[:from], out[from+1:]...)
	} else if last && from > 0 && out[from-1] == ' ' && from < len(out) && (out[from] == '}' || out[from] == ']') {
		out = append(out[:from-1], out[from:]...)
	}
	return out, nil
}
