package command

import "strings"

type tokenKind int

const (
	wordToken tokenKind = iota
	stringToken
	tickToken // `…`, %x{…}, qx{…}: text that is run
	markToken
)

type token struct {
	kind tokenKind
	text string
}

const maxTokens = 20_000

// lex cuts code into words, strings and marks. Blanks go, line ends become ";".
func lex(s string, l language) []token {
	var out []token
	for n := 0; n < len(s) && len(out) < maxTokens; {
		c := s[n]
		switch {
		case c == '\n':
			out = append(out, token{markToken, ";"})
			n++
		case c == ' ' || c == '\t' || c == '\r':
			n++
		case c == '#' && l.hash && (n == 0 || s[n-1] == ' ' || s[n-1] == '\n' || s[n-1] == ';'),
			c == '/' && !l.hash && strings.HasPrefix(s[n:], "//") && (n == 0 || s[n-1] != ':'):
			end := strings.IndexByte(s[n:], '\n')
			if end < 0 {
				return out
			}
			n += end
		case strings.IndexByte(l.quote, c) >= 0:
			text, used := quoted(s[n:])
			kind := stringToken
			if c == '`' && l.ticks {
				kind = tickToken
			}
			out = append(out, token{kind, text})
			n += used
		case wordByte(c):
			end := n
			for end < len(s) && wordByte(s[end]) {
				end++
			}
			word := s[n:end]
			n = end
			if t, used, ok := delimited(word, s[n:], l); ok {
				out = append(out, t)
				n += used
				continue
			}
			if n < len(s) && strings.IndexByte(l.quote, s[n]) >= 0 && l.code == "c" && len(word) <= 2 && strings.Trim(strings.ToLower(word), "rbfu") == "" {
				continue // a prefix of a Python string
			}
			out = append(out, token{wordToken, word})
		case c == '%' && l.ticks && n+2 < len(s) && s[n+1] == 'x' && !wordByte(s[n+2]):
			text, used := bracketed(s[n+2:])
			out = append(out, token{tickToken, text})
			n += 2 + used
		default:
			out = append(out, token{markToken, s[n : n+1]})
			n++
		}
	}
	return out
}

// delimited is Perl's q, qq, qx and qw, with any delimiter.
func delimited(word, rest string, l language) (token, int, bool) {
	if !l.ticks || rest == "" {
		return token{}, 0, false
	}
	switch word {
	case "q", "qq", "qx", "qw":
	default:
		return token{}, 0, false
	}
	skipped := len(rest) - len(strings.TrimLeft(rest, " "))
	rest = rest[skipped:]
	if rest == "" || wordByte(rest[0]) || strings.IndexByte(" ,;=)", rest[0]) >= 0 {
		return token{}, 0, false
	}
	text, used := bracketed(rest)
	kind := stringToken
	if word == "qx" {
		kind = tickToken
	}
	return token{kind, text}, skipped + used, true
}

func bracketed(s string) (text string, used int) {
	open, end := s[0], s[0]
	switch open {
	case '(':
		end = ')'
	case '[':
		end = ']'
	case '{':
		end = '}'
	case '<':
		end = '>'
	}
	depth := 0
	for n := 0; n < len(s); n++ {
		switch {
		case s[n] == '\\':
			n++
		case s[n] == end && (open == end && n > 0 || open != end && depth == 1):
			return s[1:n], n + 1
		case s[n] == open:
			depth++
		}
	}
	return s[1:], len(s)
}

// quoted reads a string with its escapes; three quotes are Python's.
func quoted(s string) (text string, used int) {
	q := s[:1]
	if strings.HasPrefix(s, q+q+q) {
		q = s[:3]
	}
	body := s[len(q):]
	for n := 0; n < len(body); n++ {
		if body[n] == '\\' {
			n++
			continue
		}
		if strings.HasPrefix(body[n:], q) {
			return dollarQuoted(body[:n]), len(q) + n + len(q)
		}
	}
	return dollarQuoted(body), len(s)
}

func wordByte(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// arguments reads the arguments of a call, lists within it taken apart. A part
// that is no string is a hole; strings that are joined are one.
func arguments(tokens []token) []field {
	var out []field
	cur, open, joins := field{sure: true}, false, false
	end := func() {
		if open {
			out = append(out, cur)
		}
		cur, open, joins = field{sure: true}, false, false
	}
	depth, parens := 0, false
	for n, t := range tokens {
		if len(out) > maxFields {
			break
		}
		if n == 0 && t.text == "(" && t.kind == markToken {
			parens, depth = true, 1
			continue
		}
		switch t.kind {
		case stringToken:
			if open && cur.text != "" && !joins && cur.sure {
				joins = true // adjacent strings are one
			}
			cur.text, open = cur.text+t.text, true
		case markToken:
			switch t.text {
			case "(", "[", "{":
				if t.text == "(" && open { // a call: what it returns is not known
					cur.text, cur.sure = cur.text+hole, false
				} else if t.text != "(" && !cur.sure {
					cur, open = field{sure: true}, false
				}
				depth++
			case ")", "]", "}":
				end()
				if depth--; depth < 0 || parens && depth == 0 {
					return out
				}
			case ",":
				end()
			case ";":
				if depth == 0 || !parens {
					end()
					return out
				}
			case "=", ":": // name=value, {key: value}
				cur, open = field{sure: true}, false
			case "+", ".":
				joins = true
			case "|", "&", "?":
				if !parens {
					end()
					return out
				}
			}
		default:
			if n == 0 && !parens && depth == 0 && !open && len(t.text) > 0 && t.text[0] != '$' && t.text[0] != '@' {
				// do shell script, system foo: a bare word is not known either
				cur.text, cur.sure, open = hole, false, true
				continue
			}
			cur.text, cur.sure, open = cur.text+hole, false, true
		}
	}
	end()
	return out
}
