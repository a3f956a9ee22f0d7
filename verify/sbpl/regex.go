package sbpl

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// pattern is a regular expression over the path.
type pattern struct {
	search, whole *regexp.Regexp
}

func (f pattern) match(q *Query) truth {
	if q.Path == "" {
		return no
	}
	if q.NoRegex {
		return maybe
	}
	// Whether an expression that is not anchored has to match the whole path is
	// not known, so both readings have to agree.
	s, w := f.search.MatchString(q.Path), f.whole.MatchString(q.Path)
	if s != w {
		return maybe
	}
	return known(s)
}

var patterns sync.Map // source → pattern

// parseRegex reads the part of the compiler's regular expressions that is known:
// literals (outside ASCII too: bytes or characters, they match themselves), ., sets, groups, |, *, +, ?, ^ at the start and $ at the end. There
// is no inline flag: (?i) ends in "unexpected ^ operator in middle of
// expression" (constellation-works/orbit#495).
func parseRegex(line int, source string) (filter, error) {
	if p, ok := patterns.Load(source); ok {
		return p.(pattern), nil
	}
	if err := checkRegex(line, source); err != nil {
		return nil, err
	}
	search, err := regexp.Compile("(?s)" + source)
	if err != nil {
		return nil, &RefusedError{line, err.Error()}
	}
	whole, err := regexp.Compile("(?s)^(?:" + source + ")$")
	if err != nil {
		return nil, &RefusedError{line, err.Error()}
	}
	p := pattern{search, whole}
	patterns.Store(source, p)
	return p, nil
}

func checkRegex(line int, s string) error {
	unsure := func(what string) error {
		return &NotUnderstoodError{line, fmt.Sprintf("%s in the regular expression %q", what, s)}
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '^' && i > 0:
			return &RefusedError{line, "unexpected ^ operator in middle of expression"}
		case c == '$' && i < len(s)-1:
			return unsure("$ before the end")
		case c == '(' && i+1 < len(s) && s[i+1] == '?':
			return &RefusedError{line, "unexpected ? operator in expression"}
		case c == '{' || c == '}':
			return unsure("a brace")
		case (c == '*' || c == '+' || c == '?') && i+1 < len(s) && strings.IndexByte("*+?", s[i+1]) >= 0:
			return unsure("two repetitions in a row")
		case c == 0x7f || c < 0x20:
			return unsure(fmt.Sprintf("byte %#x", c))
		case c >= 0x80 && i+1 < len(s) && strings.IndexByte("*+?", s[i+1]) >= 0:
			return unsure("a repetition of what may be a byte or a character")
		case c == '\\':
			i++
			if i == len(s) || !strings.ContainsRune(`.\/-+*?()[]{}^$|`, rune(s[i])) {
				return unsure("an escape")
			}
		case c == '[':
			end := i + 1
			if end < len(s) && s[end] == '^' {
				end++
			}
			first := end
			for end < len(s) && (s[end] != ']' || end == first) {
				if b := s[end]; b == '\\' || b == '[' || b >= 0x7f || b < 0x20 {
					return unsure("a set")
				}
				end++
			}
			if end == len(s) {
				return &RefusedError{line, "a set that is not closed"}
			}
			i = end
		}
	}
	return nil
}
