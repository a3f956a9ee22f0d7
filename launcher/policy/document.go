package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"gopkg.in/yaml.v3"
)

// document is what one policy file says, checked but not merged.
type document struct {
	network *Mode
	ipv6    *Flag
	mtu     *Number
	nested  *Flag

	hosts    []Host
	paths    []Path
	denyRead []Path
	denyExec []Word

	dropHosts []Host
	dropPaths []Path
	dropRead  []Path
	dropExec  []Word

	maskPrefixes []Word
	maskEnv      []Word
	envPass      []Word
	envDrop      []Word

	journald *Flag
	syslog   *Word
}

// reader checks one file. Every method either fills its document or returns a
// *FileError.
type reader struct {
	file string
	kind Kind
	home string
	base string // what relative paths count from
	doc  document
}

// parse reads the text of a policy file. The text is untrusted: whatever it
// holds, the outcome is a document or one error.
func parse(data []byte, file string, kind Kind, home, base string) (doc *document, err error) {
	root, err := parseNode(data, file)
	if err != nil {
		return nil, err
	}
	r := &reader{file: file, kind: kind, home: home, base: base}
	if root == nil {
		return &r.doc, nil
	}
	if err := r.mapping(root, "", r.top); err != nil {
		return nil, err
	}
	return &r.doc, nil
}

// parseNode returns the root node of the only document in data, nil when the
// file says nothing.
func parseNode(data []byte, file string) (root *yaml.Node, err error) {
	if err := checkText(file, data); err != nil {
		return nil, err
	}
	defer func() {
		// The parser has panicked on hostile input before; a launch must not.
		if p := recover(); p != nil {
			root, err = nil, yamlError(file, data, fmt.Errorf("%v", p))
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var n, second yaml.Node
	if err := dec.Decode(&n); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, yamlError(file, data, err)
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, &FileError{File: file, Line: second.Line, What: "holds a second YAML document", Mend: "keep one"}
	case !errors.Is(err, io.EOF):
		return nil, yamlError(file, data, err)
	}
	root = n.Content[0]
	if err := plainNodes(file, root, 0); err != nil {
		return nil, err
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	return root, nil
}

// plainNodes refuses what a policy never needs and what makes the meaning of a
// file hard to see: anchors, without which there are no aliases (which can grow
// without bound), and tags.
func plainNodes(file string, n *yaml.Node, depth int) error {
	bad := func(what, mend string) error {
		return &FileError{File: file, Line: n.Line, What: what, Mend: mend}
	}
	switch {
	case n.Anchor != "":
		return bad("anchor "+excerpt("&"+n.Anchor)+" is not understood", "write the value out where it is needed")
	case n.Style&yaml.TaggedStyle != 0:
		return bad("tag "+excerpt(n.Tag)+" is not understood", `in a text that starts with "!" use quotes`)
	case depth > 8:
		return bad("is nested too deeply", "no key of a policy is")
	}
	for _, c := range n.Content {
		if err := plainNodes(file, c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) origin(n *yaml.Node, key string) Origin {
	return Origin{Kind: r.kind, File: r.file, Line: n.Line, Key: key}
}

func (r *reader) bad(n *yaml.Node, key, what, mend string) error {
	return at(r.origin(n, key), what, mend)
}

// mapping walks a mapping's keys in order. A key without a value ("paths:"
// with everything below it commented out) says nothing.
func (r *reader) mapping(n *yaml.Node, prefix string, each func(keyNode, value *yaml.Node, key string) error) error {
	if n.Kind != yaml.MappingNode {
		return r.bad(n, prefix, "want keys and values, found "+describe(n), "")
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag != "!!str" {
			return r.bad(k, prefix, "a key must be a word, found "+describe(k), "")
		}
		key := keyName(k.Value)
		if prefix != "" {
			key = prefix + "." + key
		}
		if first, ok := seen[k.Value]; ok {
			return r.bad(k, key, fmt.Sprintf("given twice, first in line %d", first), "keep one")
		}
		seen[k.Value] = k.Line
		if err := each(k, v, key); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) top(k, v *yaml.Node, key string) error {
	switch key {
	case "version":
		if v.Kind != yaml.ScalarNode || v.Tag != "!!int" || v.Value != "1" {
			return r.bad(v, key, "want 1, found "+describe(v), "this kgate knows version 1 only")
		}
		return nil
	case "network":
		return r.network(v, key)
	case "ipv6":
		f, err := r.boolean(v, key)
		if err == nil && f.Value && r.kind == FromProject {
			return r.wider(v, key)
		}
		r.doc.ipv6 = f
		return err
	case "mtu":
		if r.kind == FromProject {
			return r.wider(k, key)
		}
		n, err := r.number(v, key, MinMTU, MaxMTU)
		r.doc.mtu = n
		return err
	case "allow":
		return r.section(k, v, key, r.allow)
	case "deny":
		return r.section(k, v, key, r.deny)
	case "drop":
		return r.section(k, v, key, r.drop)
	case "mask":
		return r.section(k, v, key, r.mask)
	case "env":
		return r.section(k, v, key, r.env)
	case "log":
		if r.kind == FromProject {
			return r.wider(k, key)
		}
		return r.section(k, v, key, r.log)
	}
	return r.unknown(k, key, "version, network, ipv6, mtu, allow, deny, drop, mask, env, log")
}

func (r *reader) section(k, v *yaml.Node, key string, each func(k, v *yaml.Node, key string) error) error {
	if isNull(v) {
		if key == "allow" && r.kind == FromProject {
			return r.wider(k, key)
		}
		return nil
	}
	if v.Kind == yaml.MappingNode && len(v.Content) == 0 && key == "allow" && r.kind == FromProject {
		return r.wider(k, key)
	}
	return r.mapping(v, key, each)
}

func (r *reader) allow(k, v *yaml.Node, key string) error {
	switch key {
	case "allow.hosts", "allow.paths", "allow.nested":
	default:
		return r.unknown(k, key, "hosts, paths, nested")
	}
	if r.kind == FromProject {
		return r.wider(k, key)
	}
	var err error
	switch key {
	case "allow.hosts":
		r.doc.hosts, err = r.hosts(v, key)
	case "allow.paths":
		r.doc.paths, err = r.paths(v, key, true)
	case "allow.nested":
		r.doc.nested, err = r.boolean(v, key)
	}
	return err
}

func (r *reader) deny(k, v *yaml.Node, key string) (err error) {
	switch key {
	case "deny.read":
		r.doc.denyRead, err = r.paths(v, key, false)
	case "deny.exec":
		r.doc.denyExec, err = r.programs(v, key)
	default:
		return r.unknown(k, key, "read, exec")
	}
	return err
}

// drop takes entries off the layers before: in a project's file off the lists
// of what is allowed, in a person's file also off the default denials.
func (r *reader) drop(k, v *yaml.Node, key string) (err error) {
	switch key {
	case "drop.hosts":
		r.doc.dropHosts, err = r.hosts(v, key)
	case "drop.paths":
		r.doc.dropPaths, err = r.paths(v, key, false)
	case "drop.read", "drop.exec":
		if r.kind == FromProject {
			return r.wider(k, key)
		}
		if key == "drop.read" {
			r.doc.dropRead, err = r.paths(v, key, false)
		} else {
			r.doc.dropExec, err = r.programs(v, key)
		}
	default:
		return r.unknown(k, key, "hosts, paths; in ~/.kgate/config.yaml also read, exec")
	}
	return err
}

func (r *reader) mask(k, v *yaml.Node, key string) (err error) {
	switch key {
	case "mask.prefixes":
		r.doc.maskPrefixes, err = r.words(v, key, checkPrefix)
	case "mask.env":
		r.doc.maskEnv, err = r.words(v, key, checkVariable)
	default:
		return r.unknown(k, key, "prefixes, env")
	}
	return err
}

func (r *reader) env(k, v *yaml.Node, key string) (err error) {
	switch key {
	case "env.pass":
		if r.kind == FromProject {
			return r.wider(k, key)
		}
		r.doc.envPass, err = r.words(v, key, checkPattern)
	case "env.drop":
		r.doc.envDrop, err = r.words(v, key, checkPattern)
	default:
		return r.unknown(k, key, "pass, drop")
	}
	return err
}

// log is where copies of the audit log's lines go, beside the file.
func (r *reader) log(k, v *yaml.Node, key string) (err error) {
	switch key {
	case "log.journald":
		r.doc.journald, err = r.boolean(v, key)
	case "log.syslog":
		var text string
		if text, err = r.text(v, key); err != nil {
			return err
		}
		if _, _, err := SyslogAddress(text); err != nil {
			return r.bad(v, key, err.Error(), "write local, or udp://HOST:PORT, tcp://HOST:PORT, unixgram:///PATH")
		}
		r.doc.syslog = &Word{Text: text, From: r.origin(v, key)}
	default:
		return r.unknown(k, key, "journald, syslog")
	}
	return err
}

// SyslogAddress splits log.syslog into a network and an address as package net
// names them: both are "" for "local", the machine's own daemon.
func SyslogAddress(s string) (network, address string, err error) {
	if s == "local" {
		return "", "", nil
	}
	network, address, ok := strings.Cut(s, "://")
	switch {
	case !ok || address == "":
	case network == "udp" || network == "tcp":
		if host, port, err := net.SplitHostPort(address); err == nil && host != "" && port != "" {
			return network, address, nil
		}
	case (network == "unix" || network == "unixgram") && strings.HasPrefix(address, "/"):
		return network, address, nil
	}
	return "", "", fmt.Errorf("%q is not a collector's address", s)
}

func (r *reader) wider(n *yaml.Node, key string) error {
	return r.bad(n, key, "a project's file may only narrow", "put it in ~/.kgate/config.yaml, or use a flag for one launch")
}

func (r *reader) unknown(k *yaml.Node, key, known string) error {
	return r.bad(k, key, "unknown key", "known here: "+known)
}
