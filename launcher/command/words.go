package command

import (
	"strings"
	"unsafe"

	"mvdan.cc/sh/v3/syntax"
)

// plain reports whether a word holds nothing to look into: no substitution, and
// no expansion that may hold one or set a variable.
func plain(w *syntax.Word) bool { return plainParts(w.Parts) }

func plainParts(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			if !plainParts(p.Parts) {
				return false
			}
		case *syntax.ParamExp:
			if !p.Short && (p.Exp != nil || p.Repl != nil || p.Slice != nil || p.NestedParam != nil) || p.Index != nil {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// literal is the text of a word that needs no evaluation at all.
func literal(w *syntax.Word) (string, bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return p.Value, !strings.ContainsAny(p.Value, "\\*?[{~") || p.Value == "["
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	}
	return "", false
}

// quotedWord reports whether any part of a here-document's delimiter is quoted.
func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// lines are the possible command lines of words, at most maxVariants: a word
// that makes more of them counts as unknown.
func (w *walker) lines(args []*syntax.Word) [][]field {
	lines := [][]field{nil}
	for _, arg := range args {
		vs := w.expand(arg)
		if len(lines)*len(vs) > maxVariants {
			vs = [][]field{{unknown}}
		}
		if len(vs) == 1 {
			for l := range lines {
				lines[l] = append(lines[l], vs[0]...)
			}
			continue
		}
		next := make([][]field, 0, len(lines)*len(vs))
		for _, l := range lines {
			for _, v := range vs {
				next = append(next, append(l[:len(l):len(l)], v...))
			}
		}
		lines = next
	}
	return lines
}

// expand is the lists of fields that a word may become.
func (w *walker) expand(word *syntax.Word) [][]field {
	if name, ok := literal(word); ok {
		return [][]field{{known(name)}}
	}
	words, ok := braces(word)
	if !ok || w.i.made > maxMade {
		return [][]field{{unknown}}
	}
	all := [][]field{nil}
	for _, one := range words {
		states := w.parts([]build{{}}, one.Parts, false)
		if len(all)*len(states) > maxVariants {
			states = []build{{}}
			states[0].add(unknown)
		}
		var next [][]field
		for _, a := range all {
			for _, s := range states {
				s.close()
				next = append(next, append(a[:len(a):len(a)], s.done...))
			}
		}
		all = next
	}
	for _, fields := range all {
		w.i.makes(fields)
	}
	return all
}

// makes counts what an expansion has made, so that few bytes of text cannot be
// made to stand for more than is looked at.
func (i *inspector) makes(fields []field) {
	for _, f := range fields {
		i.made += int(unsafe.Sizeof(f)) + len(f.text) + len(f.pattern)
	}
}

// values are the texts that a word may have where it is one field whatever it
// holds: in assignments, redirections and here-strings.
func (w *walker) values(word *syntax.Word) []field {
	if word == nil {
		return []field{known("")}
	}
	if w.i.made > maxMade {
		return []field{unknown}
	}
	var out []field
	for _, s := range w.parts([]build{{}}, []syntax.WordPart{&syntax.DblQuoted{Parts: word.Parts}}, false) {
		out = append(out, s.last())
	}
	w.i.makes(out)
	return out
}

// scalar is the one value of a word, or unknown.
func (w *walker) scalar(word *syntax.Word) field {
	if vs := w.values(word); len(vs) == 1 {
		return vs[0]
	}
	return unknown
}

// document is the text of a here-document.
func (w *walker) document(word *syntax.Word) string {
	var b strings.Builder
	for _, p := range word.Parts {
		if b.Len() > maxText {
			return hole
		}
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(unescape(lit.Value, "$`\\\n"))
			continue
		}
		states := w.part([]build{{}}, p, true)
		if len(states) == 1 {
			b.Write(states[0].text)
		} else {
			b.WriteString(hole)
		}
	}
	return b.String()
}

func (w *walker) parts(states []build, parts []syntax.WordPart, quoted bool) []build {
	for n, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok && !quoted {
			w.lit(states, lit.Value, n == 0)
			continue
		}
		states = w.part(states, p, quoted)
	}
	return states
}

func (w *walker) part(states []build, p syntax.WordPart, quoted bool) []build {
	one := func(f field) []build { return each(states, [][]field{{f}}) }
	switch p := p.(type) {
	case *syntax.Lit:
		if quoted {
			return one(known(unescape(p.Value, "$`\"\\\n")))
		}
		w.lit(states, p.Value, false)
		return states
	case *syntax.SglQuoted:
		if p.Dollar {
			return one(known(dollarQuoted(p.Value)))
		}
		return one(known(p.Value))
	case *syntax.DblQuoted:
		if !fieldsOnly(p) {
			states = one(known(""))
		}
		return w.parts(states, p.Parts, true)
	case *syntax.ParamExp:
		vs := w.param(p)
		if quoted && !listed(p) {
			vs = joined(vs)
		}
		if quoted {
			return each(states, vs)
		}
		return split(states, w.cut(vs))
	case *syntax.CmdSubst:
		f := w.printed(p.Stmts)
		if quoted {
			f.many = false
			return one(f)
		}
		return split(states, w.cut([][]field{{f}}))
	case *syntax.ProcSubst:
		in := w.output(p.Stmts)
		f := unknown
		f.proc = &in
		return one(f)
	}
	return one(unknown)
}

// fieldsOnly is "$@" and its like, which may be no field at all.
func fieldsOnly(p *syntax.DblQuoted) bool {
	if len(p.Parts) != 1 {
		return false
	}
	e, ok := p.Parts[0].(*syntax.ParamExp)
	return ok && listed(e)
}

// listed reports whether an expansion gives a field for each element.
func listed(e *syntax.ParamExp) bool {
	if e.Param == nil {
		return false
	}
	if e.Param.Value == "@" {
		return true
	}
	index, ok := e.Index.(*syntax.Word)
	return ok && index.Lit() == "@"
}

// cut takes back what is known of values where the text sets IFS: they may be
// split elsewhere than at blanks.
func (w *walker) cut(vs [][]field) [][]field {
	if v, _ := w.c.scope.find("IFS"); v == nil {
		return vs
	}
	for _, v := range vs {
		for _, f := range v {
			if strings.Trim(f.text, " \t\n_-./abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
				return [][]field{{unknown}}
			}
		}
	}
	return vs
}

func hasGlob(s string) bool {
	if strings.ContainsAny(s, "*?") {
		return true
	}
	at := strings.IndexByte(s, '[')
	return at >= 0 && strings.IndexByte(s[at+1:], ']') > 0
}

// lit appends an unquoted literal: backslashes, a leading tilde, patterns.
func (w *walker) lit(states []build, s string, first bool) {
	if first && (s == "~" || strings.HasPrefix(s, "~/")) {
		if home, ok := w.i.variable("HOME"); ok {
			w.each(states, known(home))
			s = s[1:]
		}
	}
	if s == "" {
		return
	}
	if !strings.ContainsAny(s, "\\*?[") {
		w.each(states, known(s))
		return
	}
	var text, pattern strings.Builder
	glob := hasGlob(s)
	for n := 0; n < len(s); n++ {
		c := s[n]
		escaped := c == '\\' && n+1 < len(s)
		if escaped {
			n++
			c = s[n]
			if c == '\n' {
				continue
			}
		}
		text.WriteByte(c)
		if escaped && strings.IndexByte(`*?[\`, c) >= 0 {
			pattern.WriteByte('\\')
		}
		pattern.WriteByte(c)
	}
	f := known(text.String())
	if glob && s != "[" {
		f.glob, f.pattern = true, pattern.String()
	}
	w.each(states, f)
}

func (w *walker) each(states []build, f field) {
	for n := range states {
		states[n].add(f)
	}
}

// unescape takes the backslash off where it stands before one of the bytes.
func unescape(s, before string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for n := 0; n < len(s); n++ {
		if s[n] == '\\' && n+1 < len(s) && strings.IndexByte(before, s[n+1]) >= 0 {
			n++
			if s[n] == '\n' {
				continue
			}
		}
		b.WriteByte(s[n])
	}
	return b.String()
}

func baseName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }
