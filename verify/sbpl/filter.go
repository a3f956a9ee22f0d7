package sbpl

import (
	"fmt"
	"strconv"
	"strings"
)

// truth is what a filter says of a question.
type truth int

const (
	no truth = iota
	maybe
	yes
)

func known(b bool) truth {
	if b {
		return yes
	}
	return no
}

// filter is one condition of a rule.
type filter interface{ match(q *Query) truth }

type anyOf []filter

func (fs anyOf) match(q *Query) truth {
	best := no
	for _, f := range fs {
		best = max(best, f.match(q))
	}
	return best
}

type allOf []filter

func (fs allOf) match(q *Query) truth {
	worst := yes
	for _, f := range fs {
		worst = min(worst, f.match(q))
	}
	return worst
}

type not struct{ filter }

func (f not) match(q *Query) truth { return yes - f.filter.match(q) }

// pathIs compares paths. How it treats another spelling of the same name is in
// [sameName]; whether subpath covers a plain file at its own anchor is open
// (kirodotdev/KiroCrew#7743), that it covers a directory is not.
type pathIs struct {
	how  string // "literal", "subpath", "prefix", "path-ancestors"
	path string
}

func (f pathIs) match(q *Query) truth {
	if q.Path == "" {
		return no
	}
	switch f.how {
	case "literal":
		return sameName(f.path, q.Path)
	case "prefix":
		if strings.HasPrefix(q.Path, f.path) {
			return yes
		}
		if len(q.Path) >= len(f.path) && sameName(f.path, q.Path[:len(f.path)]) != no {
			return maybe
		}
		return no
	case "path-ancestors":
		if f.path == q.Path {
			return maybe
		}
		return covers(q.Path, f.path)
	}
	if m := sameName(f.path, q.Path); m != no {
		if m == yes && q.Type != Directory && f.path != "/" {
			return maybe
		}
		return m
	}
	return covers(f.path, q.Path)
}

// covers reports whether path lies below root.
func covers(root, path string) truth {
	if root == "/" {
		return known(strings.HasPrefix(path, "/"))
	}
	if len(path) > len(root) && path[len(root)] == '/' && path[:len(root)] == root {
		return yes
	}
	if ascii(root) && ascii(path) {
		if len(path) > len(root) && path[len(root)] == '/' && strings.EqualFold(path[:len(root)], root) {
			return maybe
		}
		return no
	}
	depth := strings.Count(root, "/")
	parts := strings.Split(path, "/")
	if len(parts) <= depth+1 {
		return no
	}
	if sameName(root, strings.Join(parts[:depth+1], "/")) != no {
		return maybe
	}
	return no
}

// typeIs is vnode-type.
type typeIs struct{ want Type }

func (f typeIs) match(q *Query) truth {
	if q.Type == UnknownType {
		return maybe
	}
	return known(q.Type == f.want)
}

// nameIs compares the name of a service, of a control or of an IPC object.
type nameIs struct {
	name   string
	prefix bool
}

func (f nameIs) match(q *Query) truth {
	if f.prefix {
		return known(q.Name != "" && strings.HasPrefix(q.Name, f.name))
	}
	return known(q.Name == f.name)
}

// targetIs is (target self) and its like, for signals and process information.
type targetIs struct{ who string }

func (f targetIs) match(q *Query) truth {
	switch {
	case q.Target == "":
		return maybe
	case q.Target == f.who:
		return yes
	case q.Target == "self" && f.who == "same-sandbox":
		return yes
	}
	return no
}

// holds is an extension: a token that the kernel gives one process for one
// object, such as the slave of a pseudo-terminal it has made.
type holds struct{ name string }

func (f holds) match(q *Query) truth {
	for _, e := range q.Extensions {
		if e == f.name {
			return yes
		}
	}
	return no
}

// address is (remote ip "*:443") and its like.
type address struct {
	side  string // "local" or "remote"
	proto string // "ip", "tcp", "udp"
	host  string // "*" or "localhost"
	port  string // "*" or a number
}

func (f address) match(q *Query) truth {
	n := q.Net
	if n == nil || q.Path != "" {
		return no
	}
	if n.Side != f.side {
		return maybe // which side an operation looks at is not known for all
	}
	if f.proto != "ip" && f.proto != n.Proto {
		return no
	}
	if f.port != "*" && f.port != strconv.Itoa(int(n.Port)) {
		return no
	}
	if f.host == "localhost" && !n.Own {
		return no
	}
	return yes
}

// unixSocket is (remote unix-socket …).
type unixSocket struct{ path filter }

func (f unixSocket) match(q *Query) truth {
	if q.Path == "" {
		return no
	}
	if f.path == nil {
		return yes
	}
	return f.path.match(q)
}

func parseFilter(e expr) (filter, error) {
	refuse := func(format string, args ...any) (filter, error) {
		return nil, &RefusedError{e.line, fmt.Sprintf(format, args...)}
	}
	unsure := func(format string, args ...any) (filter, error) {
		return nil, &NotUnderstoodError{e.line, fmt.Sprintf(format, args...)}
	}
	name, args := e.head(), e.list
	if len(args) > 0 {
		args = args[1:]
	}
	// A string that is computed, as in (literal (param "HOME")), compiles.
	switch name {
	case "require-any", "require-all", "require-not", "remote", "local":
	default:
		for _, a := range args {
			if a.kind == list {
				return unsure("%s of a computed value", name)
			}
		}
	}
	one := func() (string, bool) {
		if len(args) == 1 && args[0].isString() {
			return args[0].text, true
		}
		return "", false
	}
	switch name {
	case "require-any", "require-all", "require-not":
		var all []filter
		for _, a := range args {
			f, err := parseFilter(a)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
		switch {
		case len(all) == 0, name == "require-not" && len(all) > 1:
			return refuse("%s with %d filters", name, len(all))
		case name == "require-any":
			return anyOf(all), nil
		case name == "require-all":
			return allOf(all), nil
		}
		return not{all[0]}, nil
	case "literal", "path", "path-literal", "subpath", "path-subpath", "prefix", "path-prefix", "path-ancestors":
		p, ok := one()
		if !ok {
			return refuse("%s takes one string", name)
		}
		if !strings.HasPrefix(p, "/") {
			return unsure("%s of a path that is not absolute: %q", name, p)
		}
		how := strings.TrimPrefix(name, "path-")
		switch name {
		case "path":
			how = "literal"
		case "path-ancestors":
			how = name
		}
		if how != "prefix" && p != "/" && (strings.HasSuffix(p, "/") || strings.Contains(p, "//")) {
			return unsure("%s of a path that is not clean: %q", name, p)
		}
		return pathIs{how, p}, nil
	case "regex", "path-regex":
		p, ok := one()
		if !ok {
			return refuse("%s takes one string", name)
		}
		return parseRegex(e.line, p)
	case "vnode-type":
		if len(args) != 1 || args[0].kind != symbol || types[args[0].text] == UnknownType {
			return refuse("vnode-type %s", e.source())
		}
		return typeIs{types[args[0].text]}, nil
	case "global-name", "xpc-service-name", "sysctl-name", "ipc-posix-name", "mac-policy-name",
		"global-name-prefix", "sysctl-name-prefix", "ipc-posix-name-prefix":
		n, ok := one()
		if !ok {
			return refuse("%s takes one string", name)
		}
		return nameIs{n, strings.HasSuffix(name, "-prefix")}, nil
	case "mac-syscall-number", "fsctl-command", "socket-domain", "socket-protocol":
		if len(args) != 1 || args[0].kind != symbol {
			return refuse("%s takes one word", name)
		}
		return word{name, args[0].text}, nil
	case "target":
		if len(args) != 1 || args[0].kind != symbol {
			return refuse("target takes one word")
		}
		return targetIs{args[0].text}, nil
	case "extension":
		n, ok := one()
		if !ok {
			return refuse("extension takes one string")
		}
		return holds{n}, nil
	case "remote", "local":
		return parseAddress(e, args)
	case "":
		return refuse("a filter without a name")
	}
	return refuse("unbound variable: %s", name)
}

// word is a filter that compares a number or a named constant.
type word struct{ name, value string }

func (f word) match(q *Query) truth { return known(q.Words[f.name] == f.value) }

func parseAddress(e expr, args []expr) (filter, error) {
	refuse := func(format string, a ...any) (filter, error) {
		return nil, &RefusedError{e.line, fmt.Sprintf(format, a...)}
	}
	if len(args) == 0 || args[0].kind != symbol {
		return refuse("%s takes a kind of address", e.head())
	}
	switch args[0].text {
	case "unix", "unix-socket":
		switch len(args) {
		case 1:
			return unixSocket{}, nil
		case 2:
			f, err := parseFilter(args[1])
			return unixSocket{f}, err
		}
		return refuse("%s takes one filter", args[0].text)
	case "ip", "tcp", "udp":
	default:
		return refuse("unbound variable: %s", args[0].text)
	}
	a := address{side: e.head(), proto: args[0].text, host: "*", port: "*"}
	switch {
	case len(args) == 1:
		return a, nil
	case len(args) > 2 || !args[1].isString():
		return refuse("%s takes one string", args[0].text)
	}
	// Measured: a name, an address, a range of addresses or of ports is refused
	// with exit 65 (microsoft/mxc#946).
	i := strings.LastIndexByte(args[1].text, ':')
	if i < 0 {
		return refuse("no port in network address %q", args[1].text)
	}
	a.host, a.port = args[1].text[:i], args[1].text[i+1:]
	if a.host != "*" && a.host != "localhost" {
		return refuse("host must be * or localhost in network address")
	}
	if a.port != "*" {
		n, err := strconv.ParseUint(a.port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != a.port {
			return refuse("port must be * or a number in network address %q", args[1].text)
		}
	}
	return a, nil
}
