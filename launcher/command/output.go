package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// printed is what a command substitution becomes.
func (w *walker) printed(list []*syntax.Stmt) field {
	in := w.output(list)
	if !in.given || !in.known && in.text == "" {
		return unknown
	}
	text := strings.TrimRight(in.text, "\n")
	return field{text: text, sure: in.known && !holed(text)}
}

// output is what statements print, as far as the text says.
func (w *walker) output(list []*syntax.Stmt) input {
	all := input{given: true, known: true}
	for n, s := range list {
		if n > 64 {
			return input{given: true}
		}
		one := w.printedBy(s, w.c.in)
		if one.path != "" && len(list) == 1 {
			return one
		}
		if !one.known {
			if len(list) > 1 {
				return input{given: true}
			}
			return one
		}
		all.text += one.text
	}
	if len(all.text) > maxText {
		return input{given: true}
	}
	return all
}

func (w *walker) printedBy(s *syntax.Stmt, in input) input {
	dont := input{given: true}
	w.i.steps++
	if s == nil || s.Cmd == nil || s.Negated || s.Background || w.i.steps > maxSteps {
		return dont
	}
	for _, r := range s.Redirs {
		fed, ok := w.redirected(r)
		switch {
		case ok:
			in = fed
		case r.N != nil && r.N.Value == "2" && r.Op != syntax.DplOut:
		default:
			return dont
		}
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return input{given: true, known: true}
		}
		lines := w.lines(c.Args)
		if len(lines) != 1 || len(lines[0]) == 0 || !lines[0][0].sure || len(c.Assigns) > 0 {
			return dont
		}
		if w.c.scope.function(lines[0][0].text) != nil {
			return dont
		}
		return printsOf(lines[0], in)
	case *syntax.Block:
		return w.output(c.Stmts)
	case *syntax.Subshell:
		return w.output(c.Stmts)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			return w.output([]*syntax.Stmt{c.X, c.Y})
		case syntax.Pipe:
			return w.printedBy(c.Y, w.printedBy(c.X, in))
		}
	}
	return dont
}

// printsOf is the output of the few commands whose output their words tell.
func printsOf(words []field, in input) input {
	dont := input{given: true}
	args := words[1:]
	switch baseName(words[0].text) {
	case ":", "true", "cd", "set", "shopt", "export", "unset", "umask":
		return input{given: true, known: true}
	case "echo":
		return echoed(args)
	case "printf":
		return formatted(args)
	case "cat":
		switch {
		case len(args) == 0, len(args) == 1 && args[0].text == "-":
			return in
		case len(args) == 1 && args[0].proc != nil:
			return *args[0].proc
		case len(args) == 1 && args[0].sure && !args[0].option():
			return input{given: true, path: args[0].text}
		}
	case "tee":
		return in
	case "which", "whence":
		return found(args)
	case "command", "type":
		if len(args) > 1 && (args[0].text == "-v" || args[0].text == "-p" || args[0].text == "-P") {
			return found(args[1:])
		}
	case "pyenv", "rbenv", "nodenv", "asdf", "mise":
		if len(args) == 2 && args[0].text == "which" {
			return found(args[1:])
		}
	case "xcrun":
		if len(args) == 2 && (args[0].text == "-f" || args[0].text == "--find") {
			return found(args[1:])
		}
	}
	return dont
}

// found is a path whose last element is the name that was looked for.
func found(args []field) input {
	name := ""
	for _, a := range args {
		if a.option() {
			continue
		}
		if !a.sure || name != "" {
			return input{given: true}
		}
		name = a.text
	}
	if name == "" {
		return input{given: true}
	}
	return input{given: true, text: hole + "/" + baseName(name)}
}

func echoed(args []field) input {
	newline, decode := "\n", false
	for len(args) > 0 && args[0].option() && strings.Trim(args[0].text[1:], "neE") == "" {
		if strings.Contains(args[0].text, "n") {
			newline = ""
		}
		decode = decode || strings.Contains(args[0].text, "e")
		args = args[1:]
	}
	text := texts(args)
	if decode {
		text = dollarQuoted(text)
	}
	return input{given: true, known: true, text: text + newline}
}

// formatted is printf(1) with strings alone.
func formatted(args []field) input {
	dont := input{given: true}
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].text == "-v" {
		return dont
	}
	format := args[0].text
	args = args[1:]
	var b strings.Builder
	for round := 0; round == 0 || len(args) > 0; round++ {
		before := len(args)
		for n := 0; n < len(format); n++ {
			if b.Len() > maxText {
				return dont
			}
			switch {
			case format[n] == '\\' && n+1 < len(format):
				end := n + 2
				for end < len(format) && end < n+5 && (isHex(format[end]) && format[n+1] == 'x' || format[end] >= '0' && format[end] <= '7' && format[n+1] >= '0' && format[n+1] <= '7') {
					end++
				}
				b.WriteString(dollarQuoted(format[n:end]))
				n = end - 1
			case format[n] != '%' || n+1 == len(format):
				b.WriteByte(format[n])
			case format[n+1] == '%':
				b.WriteByte('%')
				n++
			case format[n+1] == 's' || format[n+1] == 'b' || format[n+1] == 'd':
				if len(args) > 0 {
					text := args[0].text
					if format[n+1] == 'b' {
						text = dollarQuoted(text)
					}
					b.WriteString(text)
					args = args[1:]
				}
				n++
			default:
				return dont
			}
		}
		if len(args) == before {
			break
		}
	}
	return input{given: true, known: true, text: b.String()}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
