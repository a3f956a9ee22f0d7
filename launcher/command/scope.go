package command

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what one shell text defines. Variables are not followed statement
// by statement: a variable may have any value that the text gives it anywhere,
// which holds for loops, functions and branches alike.
type scope struct {
	root    *scope // itself, or what it is a copy of
	parent  *scope
	vars    map[string]*variable
	funcs   map[string]*function
	aliases map[string]*syntax.Word
	params  []field // $0, $1, …; nil: those of the parent
	sets    [][]*syntax.Word
	shifted bool
	dirs    []string // where cd leads
	defer_  bool     // the parameters are known where the function is called
	inFunc  bool     // while collecting
}

type variable struct {
	given []given
	busy  bool // being evaluated

	values [][]field // as seen from seen
	seen   *scope
}

// given is one assignment.
type given struct {
	kind   givenKind
	value  *syntax.Word
	array  *syntax.ArrayExpr
	fixed  field
	inFunc bool
}

type givenKind int

const (
	setTo     givenKind = iota // name=value
	addTo                      // name+=value
	eachOf                     // each field of value in turn: a for loop
	afterSign                  // value is the text name=value
	setFixed                   // fixed
)

type function struct {
	body   *syntax.Stmt
	params bool      // uses its parameters
	other  *function // of the same name
}

func newScope(parent *scope, params []field) *scope {
	s := &scope{parent: parent, params: params}
	s.root = s
	return s
}

// with is a scope below s in which name has a value.
func (s *scope) with(name string, value field) *scope {
	n := newScope(s, nil)
	n.give(name, given{kind: setFixed, fixed: value})
	return n
}

// deferred is s as it is in a function that has not been called.
func (s *scope) deferred() *scope {
	n := *s
	n.defer_, n.sets, n.shifted = true, nil, false
	n.params = []field{{text: later}}
	return &n
}

// called is s as it is in a function that is called with words.
func (s *scope) called(words []field) *scope {
	n := *s
	n.defer_ = false
	n.params = words
	return &n
}

func (s *scope) give(name string, g given) {
	if s.vars == nil {
		s.vars = map[string]*variable{}
	}
	v := s.vars[name]
	if v == nil {
		v = &variable{}
		s.vars[name] = v
	}
	g.inFunc = s.inFunc
	v.given = append(v.given, g)
}

func (s *scope) function(name string) *function {
	for ; s != nil; s = s.parent {
		if f := s.funcs[name]; f != nil {
			return f
		}
	}
	return nil
}

func (s *scope) alias(name string) *syntax.Word {
	for ; s != nil; s = s.parent {
		if a, ok := s.aliases[name]; ok {
			return a
		}
	}
	return nil
}

// find is the variable and the scope that gives it its values.
func (s *scope) find(name string) (*variable, *scope) {
	for ; s != nil; s = s.parent {
		if v := s.vars[name]; v != nil {
			return v, s
		}
	}
	return nil, nil
}

// owner is the scope whose positional parameters are in force.
func (s *scope) owner() *scope {
	for s.params == nil && s.parent != nil {
		s = s.parent
	}
	return s
}

// collect notes what the statements define.
func (s *scope) collect(list []*syntax.Stmt) {
	for _, st := range list {
		syntax.Walk(st, s.visit)
	}
}

func (s *scope) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Word:
		return !plain(n)
	case *syntax.BinaryCmd:
		// Without recursion on the left side, where chains grow.
		for {
			syntax.Walk(n.Y, s.visit)
			left, ok := n.X.Cmd.(*syntax.BinaryCmd)
			if !ok {
				syntax.Walk(n.X, s.visit)
				return false
			}
			for _, r := range n.X.Redirs {
				syntax.Walk(r, s.visit)
			}
			n = left
		}
	case *syntax.Assign:
		s.assigned(n)
	case *syntax.CallExpr:
		s.builtin(n.Args)
	case *syntax.ForClause:
		if it, ok := n.Loop.(*syntax.WordIter); ok && it.Name != nil {
			if !it.InPos.IsValid() || n.Select {
				s.give(it.Name.Value, given{kind: setFixed, fixed: unknown})
			}
			for _, w := range it.Items {
				s.give(it.Name.Value, given{kind: eachOf, value: w})
			}
		}
	case *syntax.ParamExp:
		if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			s.give(n.Param.Value, given{value: n.Exp.Word})
		}
	case *syntax.FuncDecl:
		s.declared(n)
		was := s.inFunc
		s.inFunc = true
		syntax.Walk(n.Body, s.visit)
		s.inFunc = was
		return false
	}
	return true
}

func (s *scope) assigned(a *syntax.Assign) {
	switch {
	case a.Name != nil && a.Naked:
	case a.Name != nil && a.Index != nil:
		s.give(a.Name.Value, given{kind: setFixed, fixed: unknown})
	case a.Name != nil:
		g := given{value: a.Value, array: a.Array}
		if a.Append {
			g.kind = addTo
		}
		s.give(a.Name.Value, g)
	case a.Value != nil: // export "x=curl"
		if k, _, ok := strings.Cut(firstLit(a.Value.Parts[0]), "="); ok && syntax.ValidName(k) {
			s.give(k, given{kind: afterSign, value: a.Value})
		}
	}
}

func firstLit(p syntax.WordPart) string {
	switch p := p.(type) {
	case *syntax.Lit:
		return p.Value
	case *syntax.SglQuoted:
		return p.Value
	case *syntax.DblQuoted:
		if len(p.Parts) > 0 {
			return firstLit(p.Parts[0])
		}
	}
	return ""
}

// builtin notes what builtins define: their arguments are names.
func (s *scope) builtin(args []*syntax.Word) {
	if len(args) == 0 {
		return
	}
	name, ok := literal(args[0])
	if !ok {
		return
	}
	switch name {
	case "command", "builtin":
		s.builtin(args[1:])
	case "read", "mapfile", "readarray", "getopts":
		for _, a := range args[1:] {
			if v, ok := literal(a); ok && syntax.ValidName(v) {
				s.give(v, given{kind: setFixed, fixed: unknown})
			}
		}
	case "printf":
		if len(args) > 2 {
			if f, _ := literal(args[1]); f == "-v" {
				if v, ok := literal(args[2]); ok {
					s.give(v, given{kind: setFixed, fixed: unknown})
				}
			}
		}
	case "cd", "pushd":
		if dir, ok := literal(args[len(args)-1]); ok && len(args) > 1 && dir != "-" {
			s.dirs = append(s.dirs, dir)
		}
	case "shift":
		s.shifted = true
	case "set":
		s.set(args[1:])
	case "alias":
		for _, a := range args[1:] {
			k, _, ok := strings.Cut(firstLit(a.Parts[0]), "=")
			if ok && k != "" {
				if s.aliases == nil {
					s.aliases = map[string]*syntax.Word{}
				}
				s.aliases[k] = a
			}
		}
	}
}

func (s *scope) set(args []*syntax.Word) {
	for n, a := range args {
		f, ok := literal(a)
		switch {
		case ok && f == "--":
			s.sets = append(s.sets, args[n+1:])
			return
		case ok && f == "-o", ok && f == "+o":
			if n+2 < len(args) {
				s.set(args[n+2:])
			}
			return
		case !ok || !strings.HasPrefix(f, "-") && !strings.HasPrefix(f, "+"):
			s.sets = append(s.sets, args[n:])
			return
		}
	}
}

func (s *scope) declared(f *syntax.FuncDecl) {
	if s.funcs == nil {
		s.funcs = map[string]*function{}
	}
	names := f.Names
	if f.Name != nil {
		names = append(names, f.Name)
	}
	fn := &function{body: f.Body, params: usesParams(f.Body)}
	for _, n := range names {
		one := *fn
		one.other = s.funcs[n.Value]
		s.funcs[n.Value] = &one
	}
}

func usesParams(body *syntax.Stmt) bool {
	found := false
	syntax.Walk(body, func(n syntax.Node) bool {
		if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
			found = found || positional(p.Param.Value)
		}
		return !found
	})
	return found
}

func positional(name string) bool {
	if name == "@" || name == "*" {
		return true
	}
	_, err := strconv.ParseUint(name, 10, 16)
	return err == nil
}
