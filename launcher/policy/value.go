package policy

import (
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// describe says what a node is, for an error about its type.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch n.Tag {
		case "!!null":
			return "nothing"
		case "!!str":
			return "the text " + excerpt(n.Value)
		case "!!bool":
			return "the truth value " + excerpt(n.Value)
		case "!!int", "!!float":
			return "the number " + excerpt(n.Value)
		}
		return excerpt(n.Value)
	}
	return "something else"
}

func (r *reader) network(v *yaml.Node, key string) error {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!str" {
		if m, err := ParseNetwork(v.Value); err == nil {
			r.doc.network = &Mode{m, r.origin(v, key)}
			return nil
		}
	}
	return r.bad(v, key, "want off, open or restricted, found "+describe(v), "")
}

// ParseNetwork returns the mode that a person's word stands for.
func ParseNetwork(s string) (Network, error) {
	switch n := Network(s); n {
	case Off, Restricted, Open:
		return n, nil
	}
	return "", fmt.Errorf("unknown network mode %s (want off, open or restricted)", excerpt(s))
}

func (r *reader) boolean(v *yaml.Node, key string) (*Flag, error) {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!bool" {
		switch strings.ToLower(v.Value) {
		case "true":
			return &Flag{true, r.origin(v, key)}, nil
		case "false":
			return &Flag{false, r.origin(v, key)}, nil
		}
	}
	return nil, r.bad(v, key, "want true or false, found "+describe(v), "")
}

// number takes a whole number.
func (r *reader) number(v *yaml.Node, key string, least, most int) (*Number, error) {
	if v.Kind == yaml.ScalarNode && v.Tag == "!!int" {
		var n int
		if err := v.Decode(&n); err == nil && n >= least && n <= most {
			return &Number{n, r.origin(v, key)}, nil
		}
	}
	return nil, r.bad(v, key, fmt.Sprintf("want a number from %d to %d, found %s", least, most, describe(v)), "")
}

// maxEntries bounds each list, and with it the time that merging and looking
// for programs takes, whatever a checkout brings along.
const maxEntries = 16384

// list calls each for the entries of a list, with the key "KEY[i]".
func (r *reader) list(v *yaml.Node, key string, each func(item *yaml.Node, key string) error) error {
	if isNull(v) {
		return nil
	}
	if v.Kind != yaml.SequenceNode {
		mend := ""
		if v.Kind == yaml.ScalarNode {
			mend = "put brackets around it"
		}
		return r.bad(v, key, "want a list, found "+describe(v), mend)
	}
	if len(v.Content) > maxEntries {
		return r.bad(v, key, fmt.Sprintf("has more than %d entries", maxEntries), "allow or deny a directory instead")
	}
	for i, item := range v.Content {
		if err := each(item, fmt.Sprintf("%s[%d]", key, i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) text(v *yaml.Node, key string) (string, error) {
	if v.Kind != yaml.ScalarNode || v.Tag != "!!str" {
		mend := ""
		if v.Kind == yaml.ScalarNode && !isNull(v) {
			mend = "put it in quotes"
		}
		return "", r.bad(v, key, "want a text, found "+describe(v), mend)
	}
	return v.Value, nil
}

// pathText is text, with "~" as the path that a person means by it: YAML reads
// a bare one as nothing.
func (r *reader) pathText(v *yaml.Node, key string) (string, error) {
	if isNull(v) && v.Value == "~" {
		return "~", nil
	}
	return r.text(v, key)
}

func (r *reader) words(v *yaml.Node, key string, check func(string) error) (out []Word, err error) {
	err = r.list(v, key, func(item *yaml.Node, key string) error {
		s, err := r.text(item, key)
		if err != nil {
			return err
		}
		if err := check(s); err != nil {
			return r.bad(item, key, err.Error(), "")
		}
		out = append(out, Word{s, r.origin(item, key)})
		return nil
	})
	return out, err
}

func (r *reader) hosts(v *yaml.Node, key string) (out []Host, err error) {
	err = r.list(v, key, func(item *yaml.Node, key string) error {
		s, err := r.text(item, key)
		if err != nil {
			return err
		}
		h, err := parseHost(s)
		if err != nil {
			return r.bad(item, key, err.Error(), "")
		}
		h.From = r.origin(item, key)
		out = append(out, h)
		return nil
	})
	return out, err
}

func (r *reader) paths(v *yaml.Node, key string, writable bool) (out []Path, err error) {
	err = r.list(v, key, func(item *yaml.Node, key string) error {
		if item.Kind == yaml.MappingNode {
			if !writable {
				return r.bad(item, key, "want a path, found keys and values", "only allow.paths has {path: P, write: true}")
			}
			p, err := r.pathEntry(item, key)
			if err == nil {
				out = append(out, p)
			}
			return err
		}
		s, err := r.pathText(item, key)
		if err != nil {
			return err
		}
		name, err := r.path(item, key, s)
		if err != nil {
			return err
		}
		if writable {
			if err := allowable(name, r.home); err != nil {
				return r.bad(item, key, err.Error(), "")
			}
		}
		out = append(out, Path{Name: name, From: r.origin(item, key)})
		return nil
	})
	return out, err
}

// pathEntry reads {path: P, write: BOOL}.
func (r *reader) pathEntry(n *yaml.Node, key string) (p Path, err error) {
	p.From = r.origin(n, key)
	err = r.mapping(n, key, func(k, v *yaml.Node, key string) error {
		switch k.Value {
		case "path":
			s, err := r.pathText(v, key)
			if err != nil {
				return err
			}
			p.Name, err = r.path(v, key, s)
			return err
		case "write":
			f, err := r.boolean(v, key)
			if err == nil {
				p.Write = f.Value
			}
			return err
		}
		return r.unknown(k, key, "path, write")
	})
	if err != nil {
		return p, err
	}
	if p.Name == "" {
		return p, r.bad(n, key, "has no path", "write {path: P, write: true}")
	}
	if err := allowable(p.Name, r.home); err != nil {
		return p, r.bad(n, key, err.Error(), "")
	}
	return p, nil
}

func (r *reader) path(n *yaml.Node, key, s string) (string, error) {
	name, err := expand(s, r.home, r.base)
	if err == nil {
		err = literal(s, name)
	}
	if err != nil {
		return "", r.bad(n, key, err.Error(), "")
	}
	return name, nil
}

// allowable refuses to show what no launch may see.
func allowable(name, home string) error {
	switch {
	case name == "/":
		return errors.New("/ is the whole machine: name what is needed")
	case within(name, home+"/.kgate"):
		return fmt.Errorf("%q is kgate's own: it is never shown to a command", name)
	}
	return nil
}

// programs reads names of programs, or paths of them, which are made absolute.
func (r *reader) programs(v *yaml.Node, key string) (out []Word, err error) {
	err = r.list(v, key, func(item *yaml.Node, key string) error {
		s, err := r.text(item, key)
		if err != nil {
			return err
		}
		name, err := programName(s, r.home, r.base)
		if err != nil {
			return r.bad(item, key, err.Error(), "")
		}
		out = append(out, Word{name, r.origin(item, key)})
		return nil
	})
	return out, err
}

func programName(s, home, base string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("an empty program name")
	case strings.IndexByte(s, 0) >= 0:
		return "", errors.New("a program name cannot hold a NUL byte")
	case s == "." || s == "..":
		return "", fmt.Errorf("%s is a directory, not a program", excerpt(s))
	case strings.HasSuffix(s, "/"):
		return "", fmt.Errorf("%s is a directory: name the programs in it", excerpt(s))
	case strings.ContainsAny(s, "*?"):
		return "", fmt.Errorf("program %s: patterns are not understood (name each program)", excerpt(s))
	case strings.Contains(s, "/") || s[0] == '~':
		return expand(s, home, base)
	case strings.ContainsAny(s, " \t\n"):
		return "", fmt.Errorf("%s is a command line: name the program alone", excerpt(s))
	case len(s) > 255:
		return "", fmt.Errorf("program name %s is longer than a file name can be (255 bytes)", excerpt(s))
	}
	return s, nil
}

// checkPrefix wants enough of a token's start to tell it from ordinary words.
func checkPrefix(s string) error {
	switch {
	case len(s) < 3:
		return fmt.Errorf("prefix %s is shorter than 3 bytes: it would mask ordinary text", excerpt(s))
	case len(s) > 256:
		return fmt.Errorf("prefix %s is longer than 256 bytes", excerpt(s))
	}
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] == 0x7f {
			return fmt.Errorf("prefix %s holds a blank or a control byte", excerpt(s))
		}
	}
	return nil
}

func checkVariable(s string) error {
	if err := checkPattern(s); err != nil {
		return err
	}
	if strings.ContainsAny(s, "*?") {
		return fmt.Errorf("variable %s: patterns are not understood here (name each variable)", excerpt(s))
	}
	return nil
}

// checkPattern checks a pattern of variables' names: * and ? are special.
func checkPattern(s string) error {
	switch {
	case s == "":
		return errors.New("an empty variable name")
	case len(s) > 1024:
		return fmt.Errorf("variable %s is longer than 1024 bytes", excerpt(s))
	case strings.ContainsAny(s, "=\x00 \t\n"):
		return fmt.Errorf("variable %s: a name holds no \"=\", blank or NUL", excerpt(s))
	}
	return nil
}
