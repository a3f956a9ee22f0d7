package sbpl

import (
	"fmt"
	"strings"
)

// RefusedError says that Apple's compiler refuses the profile: sandbox-exec
// exits 65 and runs nothing.
type RefusedError struct {
	Line   int // 1-based
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("profile line %d: refused: %s", e.Line, e.Reason)
}

// NotUnderstoodError says that the profile uses something whose meaning this
// package does not know. Nothing follows about what the profile allows.
type NotUnderstoodError struct {
	Line   int // 1-based
	Reason string
}

func (e *NotUnderstoodError) Error() string {
	return fmt.Sprintf("profile line %d: not understood: %s", e.Line, e.Reason)
}

// kind of an expression as read.
type kind int

const (
	list kind = iota
	symbol
	text // "…"
	raw  // #"…", no escapes
)

// expr is one expression with the line it starts on.
type expr struct {
	kind kind
	text string
	list []expr
	line int
}

// head is the symbol a list starts with, "" when it does not start with one.
func (e expr) head() string {
	if e.kind == list && len(e.list) > 0 && e.list[0].kind == symbol {
		return e.list[0].text
	}
	return ""
}

// isString reports whether e is a string of either spelling.
func (e expr) isString() bool { return e.kind == text || e.kind == raw }

type reader struct {
	in   string
	pos  int
	line int
}

func read(profile string) ([]expr, error) {
	r := &reader{in: profile, line: 1}
	var all []expr
	for {
		if err := r.space(); err != nil {
			return nil, err
		}
		if r.pos == len(r.in) {
			return all, nil
		}
		e, err := r.expr()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
}

func (r *reader) refuse(format string, args ...any) error {
	return &RefusedError{r.line, fmt.Sprintf(format, args...)}
}

func (r *reader) unsure(format string, args ...any) error {
	return &NotUnderstoodError{r.line, fmt.Sprintf(format, args...)}
}

// space skips blanks and comments. A byte outside ASCII in a comment stopped a
// profile from compiling once (h5i-dev/h5i#387), so it is not taken for granted.
func (r *reader) space() error {
	for r.pos < len(r.in) {
		switch c := r.in[r.pos]; {
		case c == '\n':
			r.line++
			r.pos++
		case c == ' ' || c == '\t' || c == '\r':
			r.pos++
		case c == ';':
			for r.pos < len(r.in) && r.in[r.pos] != '\n' {
				if b := r.in[r.pos]; b >= 0x7f || b < 0x20 && b != '\t' {
					return r.unsure("byte %#x in a comment", b)
				}
				r.pos++
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *reader) expr() (expr, error) {
	start := r.line
	switch c := r.in[r.pos]; {
	case c == '(':
		r.pos++
		e := expr{kind: list, line: start}
		for {
			if err := r.space(); err != nil {
				return e, err
			}
			if r.pos == len(r.in) {
				return e, r.refuse("the parenthesis of line %d is not closed", start)
			}
			if r.in[r.pos] == ')' {
				r.pos++
				return e, nil
			}
			sub, err := r.expr()
			if err != nil {
				return e, err
			}
			e.list = append(e.list, sub)
		}
	case c == ')':
		return expr{}, r.refuse("a closing parenthesis too many")
	case c == '"':
		r.pos++
		return r.string(text)
	case strings.HasPrefix(r.in[r.pos:], `#"`):
		r.pos += 2
		return r.string(raw)
	default:
		return r.symbol()
	}
}

func (r *reader) string(k kind) (expr, error) {
	e := expr{kind: k, line: r.line}
	var b strings.Builder
	for r.pos < len(r.in) {
		c := r.in[r.pos]
		r.pos++
		switch {
		case c == '"':
			e.text = b.String()
			return e, nil
		case c < 0x20 || c == 0x7f:
			return e, r.unsure("control character %#x in a string", c)
		case c == '\\' && k == raw:
			// Whether a backslash protects a quote here is not known; before
			// anything else it stays, for the regular expression to read.
			if r.pos < len(r.in) && r.in[r.pos] == '"' {
				return e, r.unsure(`\" in a raw string`)
			}
			b.WriteByte(c)
		case c == '\\':
			if r.pos == len(r.in) {
				return e, r.refuse("the string of line %d is not closed", e.line)
			}
			n := r.in[r.pos]
			if n != '"' && n != '\\' {
				return e, r.unsure(`escape \%c in a string`, n)
			}
			b.WriteByte(n)
			r.pos++
		default:
			b.WriteByte(c)
		}
	}
	return e, r.refuse("the string of line %d is not closed", e.line)
}

func (r *reader) symbol() (expr, error) {
	start := r.pos
	for r.pos < len(r.in) && !strings.ContainsRune(" \t\r\n()\";", rune(r.in[r.pos])) {
		if c := r.in[r.pos]; c >= 0x7f || c < 0x20 || c == '\'' || c == '`' || c == ',' {
			return expr{}, r.unsure("byte %#x in a word", c)
		}
		r.pos++
	}
	return expr{kind: symbol, text: r.in[start:r.pos], line: r.line}, nil
}
