package command

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// dollarQuoted decodes the inside of $'…'; see QUOTING in bash(1).
func dollarQuoted(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for n := 0; n < len(s); n++ {
		if s[n] != '\\' || n+1 == len(s) {
			b.WriteByte(s[n])
			continue
		}
		n++
		switch c := s[n]; c {
		case 'c':
			if n+1 < len(s) {
				n++
				b.WriteByte(s[n] & 0x1f)
			}
		case 'x':
			n += number(&b, s[n+1:], 16, 2, false)
		case 'u':
			n += number(&b, s[n+1:], 16, 4, true)
		case 'U':
			n += number(&b, s[n+1:], 16, 8, true)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n += number(&b, s[n:], 8, 3, false) - 1
		default:
			b.WriteByte(control(c))
		}
	}
	return b.String()
}

func control(c byte) byte {
	switch c {
	case 'a':
		return 7
	case 'b':
		return 8
	case 'e', 'E':
		return 27
	case 'f':
		return 12
	case 'n':
		return 10
	case 'r':
		return 13
	case 't':
		return 9
	case 'v':
		return 11
	}
	return c
}

// number writes the character with the number at the start of s and returns
// how many bytes that took.
func number(b *strings.Builder, s string, base, most int, char bool) int {
	n := 0
	for n < len(s) && n < most {
		if _, err := strconv.ParseUint(s[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(s[:n], base, 32)
	switch {
	case err != nil:
	case !char:
		b.WriteByte(byte(v))
	case v <= utf8.MaxRune:
		b.WriteRune(rune(v))
	}
	return n
}

// splitFields cuts a known text at blanks as a simple command line, with
// quotes: what env -S and options that hold a command line do. Expansions are
// holes.
func splitFields(text string) []field {
	var out []field
	var b strings.Builder
	open := false
	var quote byte
	for n := 0; n < len(text); n++ {
		c := text[n]
		switch {
		case c == '\\' && quote != '\'' && n+1 < len(text):
			n++
			b.WriteByte(text[n])
			open = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, open = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if open {
				out = append(out, field{text: b.String(), sure: !holed(b.String())})
			}
			b.Reset()
			open = false
		default:
			b.WriteByte(c)
			open = true
		}
	}
	if open {
		out = append(out, field{text: b.String(), sure: !holed(b.String())})
	}
	return out
}

// maxBraces bounds the work of splitting one word at its braces.
const maxBraces = 100

// braces is the words that brace expansion makes of a word, at most maxFields
// of them; false when there is too much to expand.
func braces(word *syntax.Word) ([]*syntax.Word, bool) {
	open := 0
	for _, p := range word.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			open += strings.Count(lit.Value, "{")
		}
	}
	if open == 0 {
		return []*syntax.Word{word}, true
	}
	if open > maxBraces || len(word.Parts) > 4*maxBraces {
		return nil, false
	}
	copied := *word
	if !syntax.SplitBraces(&copied) {
		return []*syntax.Word{word}, true
	}
	steps := 0
	lists := braceParts(copied.Parts, 0, &steps)
	if lists == nil {
		return nil, false
	}
	words := make([]*syntax.Word, 0, len(lists))
	for _, parts := range lists {
		if len(parts) == 0 {
			continue
		}
		words = append(words, &syntax.Word{Parts: parts})
	}
	return words, true
}

// braceParts returns nil when the lists would be too many or too deep.
func braceParts(parts []syntax.WordPart, depth int, steps *int) [][]syntax.WordPart {
	if depth > 20 {
		return nil
	}
	lists := [][]syntax.WordPart{nil}
	for _, p := range parts {
		exp, ok := p.(*syntax.BraceExp)
		if !ok {
			for n := range lists {
				lists[n] = append(lists[n][:len(lists[n]):len(lists[n])], p)
			}
			continue
		}
		var options [][]syntax.WordPart
		if exp.Sequence {
			options = sequence(exp)
		} else {
			for _, e := range exp.Elems {
				inner := braceParts(e.Parts, depth+1, steps)
				if inner == nil {
					return nil
				}
				options = append(options, inner...)
			}
		}
		*steps += len(lists) * len(options)
		if len(lists)*len(options) > maxFields || *steps > 16*maxFields || len(options) == 0 {
			return nil
		}
		next := make([][]syntax.WordPart, 0, len(lists)*len(options))
		for _, l := range lists {
			for _, o := range options {
				next = append(next, append(l[:len(l):len(l)], o...))
			}
		}
		lists = next
	}
	return lists
}

// sequence is {x..y} or {x..y..step}.
func sequence(exp *syntax.BraceExp) [][]syntax.WordPart {
	from, to := exp.Elems[0].Lit(), exp.Elems[1].Lit()
	letters := false
	a, errA := strconv.ParseInt(from, 10, 32)
	b, errB := strconv.ParseInt(to, 10, 32)
	if errA != nil || errB != nil {
		if len(from) != 1 || len(to) != 1 {
			return nil
		}
		a, b, letters = int64(from[0]), int64(to[0]), true
	}
	step := int64(1)
	if len(exp.Elems) > 2 {
		step, _ = strconv.ParseInt(exp.Elems[2].Lit(), 10, 32)
		step = max(step, -step, 1)
	}
	if b < a {
		step = -step
	}
	var out [][]syntax.WordPart
	for v := a; (step > 0 && v <= b) || (step < 0 && v >= b); v += step {
		if len(out) > maxFields {
			return nil
		}
		text := string(rune(v))
		if !letters {
			text = strconv.FormatInt(v, 10)
		}
		out = append(out, []syntax.WordPart{&syntax.SglQuoted{Value: text}})
	}
	return out
}
