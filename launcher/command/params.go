package command

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param is the lists of fields that a parameter expansion may become.
func (w *walker) param(p *syntax.ParamExp) [][]field {
	dont := [][]field{{unknown}}
	if p.Param == nil || p.Excl || p.Length || p.Width || p.Slice != nil || p.Repl != nil || p.Names != 0 ||
		p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.IsSet {
		return dont
	}
	vs, set := w.lookup(p.Param.Value)
	switch {
	case p.Index != nil:
		vs = indexed(vs, p.Index)
	case p.Param.Value == "@" || p.Param.Value == "*":
	default:
		vs = first(vs)
	}
	if p.Exp == nil {
		if !set {
			return dont
		}
		return vs
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !set {
			vs = nil
		}
		return append(vs[:len(vs):len(vs)], w.other(p.Exp.Word)...)
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return append(w.other(p.Exp.Word), nil)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		if set {
			return vs
		}
	}
	return dont
}

// other is the word of ${name:-word} and its like.
func (w *walker) other(word *syntax.Word) [][]field {
	if word == nil {
		return [][]field{nil}
	}
	var out [][]field
	for _, f := range w.values(word) {
		out = append(out, []field{f})
	}
	return out
}

func first(vs [][]field) [][]field {
	out := make([][]field, 0, len(vs))
	for _, v := range vs {
		out = append(out, v[:min(1, len(v))])
	}
	return out
}

func joined(vs [][]field) [][]field {
	out := make([][]field, 0, len(vs))
	for _, v := range vs {
		f := field{sure: true, text: texts(v)}
		for _, one := range v {
			f.sure = f.sure && one.sure
		}
		out = append(out, []field{f})
	}
	return out
}

func indexed(vs [][]field, index syntax.ArithmExpr) [][]field {
	word, ok := index.(*syntax.Word)
	if !ok {
		return [][]field{{unknown}}
	}
	text := word.Lit()
	if text == "@" || text == "*" {
		return vs
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return [][]field{{unknown}}
	}
	var out [][]field
	for _, v := range vs {
		out = append(out, nth(v, n))
	}
	return out
}

// nth is the element at n, none where there is none, and unknown where one
// before it may be many.
func nth(list []field, n int) []field {
	if n < len(list) {
		return list[n : n+1]
	}
	if slices.ContainsFunc(list, func(f field) bool { return f.many }) {
		return []field{unknown}
	}
	return nil
}

// lookup is the values of a variable or parameter; set is false when nothing
// that is known gives it one.
func (w *walker) lookup(name string) (vs [][]field, set bool) {
	dont := [][]field{{unknown}}
	switch name {
	case holeName:
		return dont, true
	case laterName:
		return [][]field{{{text: later}}}, true
	case "?", "#", "$", "!", "-", "_":
		return dont, true
	}
	if positional(name) {
		return w.positional(name)
	}
	v, owner := w.c.scope.find(name)
	env, inEnv := w.i.variable(name)
	if v == nil {
		if inEnv {
			return [][]field{{known(env)}}, true
		}
		return dont, false
	}
	if v.busy { // x=${x}rl: what it becomes depends on the order
		return dont, true
	}
	if v.seen == w.c.scope {
		return v.values, true
	}
	if w.i.steps++; w.i.steps > maxSteps {
		return dont, true
	}
	v.busy = true
	if inEnv {
		vs = append(vs, []field{known(env)})
	}
	vs = w.given(v, owner, vs)
	v.busy, v.values, v.seen = false, vs[:len(vs):len(vs)], w.c.scope
	return v.values, true
}

func (w *walker) given(v *variable, owner *scope, vs [][]field) [][]field {
	base := *w
	if w.c.scope.root != owner.root {
		base.c.scope = owner
	}
	var whole []field // the array with all that is added to it, in text order
	var sum []byte    // the same of a text
	sure, added := true, false
	for _, g := range v.given {
		inner := base
		if g.inFunc && !w.inFunction() {
			// What a function's parameters were is not known outside it.
			inner.c.scope = inner.c.scope.deferred()
			inner.c.scope.params = []field{unknown}
		}
		if len(vs) > maxVariants {
			return [][]field{{unknown}}
		}
		switch {
		case g.kind == setFixed:
			vs = append(vs, []field{g.fixed})
		case g.kind == eachOf:
			for _, list := range inner.expand(g.value) {
				for _, f := range list {
					vs = append(vs, []field{f})
				}
			}
		case g.array != nil:
			var list []field
			for _, e := range g.array.Elems {
				if e.Value == nil {
					continue
				}
				if es := inner.expand(e.Value); len(es) == 1 {
					list = few(append(list, es[0]...))
				} else {
					list = few(append(list, unknown))
				}
			}
			if g.kind == addTo {
				if added = true; len(whole) <= maxFields {
					whole = few(append(whole, list...))
				}
				continue
			}
			whole = append(whole[:0:0], list...)
			vs = append(vs, list)
		default:
			for _, f := range inner.values(g.value) {
				if g.kind == afterSign {
					_, f.text, _ = strings.Cut(f.text, "=")
				}
				if g.kind == addTo {
					added = true
					if len(sum)+len(f.text) > maxText {
						sum, f = sum[:0], unknown
					}
					sum, sure = append(sum, f.text...), sure && f.sure
					continue
				}
				sum, sure = append(sum[:0], f.text...), f.sure
				vs = append(vs, []field{f})
			}
		}
	}
	if added {
		if len(whole) > 0 {
			vs = append(vs, whole)
		} else {
			vs = append(vs, []field{{text: string(sum), sure: sure}})
		}
	}
	return vs
}

// few is fields, at most maxFields of them and one hole for all that follow.
func few(list []field) []field {
	if len(list) > maxFields {
		list = append(list[:maxFields:maxFields], unknown)
	}
	return list
}

func (w *walker) inFunction() bool { return w.c.scope.defer_ || w.calls > 0 }

// positional is $0, $1, …, $@ and $*.
func (w *walker) positional(name string) ([][]field, bool) {
	s := w.c.scope.owner()
	if s.defer_ {
		return [][]field{s.params[:1]}, true
	}
	alternatives := [][]field{nil}
	if len(s.params) > 0 {
		alternatives[0] = s.params[1:]
	}
	if name == "0" {
		if len(s.params) > 0 {
			return [][]field{s.params[:1]}, true
		}
		return [][]field{{unknown}}, true
	}
	inner := *w
	plain := *s
	plain.sets = nil
	inner.c.scope = &plain
	if len(s.sets) > maxVariants {
		return [][]field{{unknown}}, true
	}
	for _, set := range s.sets {
		alternatives = append(alternatives, inner.lines(set)...)
	}
	if s.shifted {
		for _, a := range alternatives[:len(alternatives):len(alternatives)] {
			for n := 1; n <= len(a) && n <= 8; n++ {
				alternatives = append(alternatives, a[n:])
			}
		}
	}
	if len(alternatives) > maxVariants {
		return [][]field{{unknown}}, true
	}
	if name == "@" || name == "*" {
		return alternatives, true
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 {
		return [][]field{{unknown}}, true
	}
	out := make([][]field, 0, len(alternatives))
	for _, a := range alternatives {
		out = append(out, nth(a, n-1))
	}
	return out, true
}
