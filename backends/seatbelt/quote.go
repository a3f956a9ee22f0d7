package seatbelt

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// unspeakable says why a path cannot be written into a profile, "" when it can.
// The profile language escapes " and \ and nothing else that is known for sure,
// so a path with a control character is refused rather than guessed at. Names
// on a Mac are UTF-8; other bytes come from a policy that means no file there.
func unspeakable(path string) string {
	if !utf8.ValidString(path) {
		return "is not UTF-8, as every name on a Mac is"
	}
	for _, r := range path {
		if r < 0x20 || r == 0x7f {
			return fmt.Sprintf("holds the control character %U, for which the profile language has no safe spelling", r)
		}
	}
	if path != "/" && (!strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//")) {
		return "is not an absolute clean path"
	}
	return ""
}

// quote spells a string of the profile language.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
	return b.String()
}

// anyCase is the body of a regular expression for every spelling of a path that
// a Mac's usual file system takes for the same file: another case of a letter,
// another Unicode normal form. It is only used to deny, so it may match more
// than that: a byte the dialect treats specially becomes ".", and a run of
// characters outside ASCII, with the letter before it that may be one of them
// when composed, becomes anything but a slash. The dialect has no (?i)
// (constellation-works/orbit#495), and nothing here needs an escape.
func anyCase(path string) string {
	var out []string
	hole := false
	for _, r := range path {
		switch {
		case r >= utf8.RuneSelf:
			if hole {
				continue
			}
			if n := len(out); n > 0 && out[n-1] != "/" {
				out = out[:n-1]
			}
			if n := len(out); n == 0 || out[n-1] != "[^/]*" {
				out = append(out, "[^/]*")
			}
			hole = true
			continue
		case r >= 'a' && r <= 'z':
			out = append(out, fmt.Sprintf("[%c%c]", r-'a'+'A', r))
		case r >= 'A' && r <= 'Z':
			out = append(out, fmt.Sprintf("[%c%c]", r, r-'A'+'a'))
		case strings.ContainsRune(`"\[]^`, r):
			out = append(out, ".")
		case strings.ContainsRune(".*+?(){}|$", r):
			out = append(out, "["+string(r)+"]")
		default:
			out = append(out, string(r))
		}
		hole = false
	}
	return strings.Join(out, "")
}

func regex(expr string) string { return `(regex #"` + expr + `")` }

func literal(path string) string { return "(literal " + quote(path) + ")" }
func subpath(path string) string { return "(subpath " + quote(path) + ")" }

// all is the filter for a path and all below it, to allow. A subpath may not
// cover a plain file at its own anchor (kirodotdev/KiroCrew#7743).
func all(path string) string {
	if path == "/" {
		return subpath(path)
	}
	return literal(path) + " " + subpath(path)
}

// every is the filter for a path and all below it in every spelling, to deny.
func every(path string) string {
	if path == "/" {
		return subpath(path)
	}
	return all(path) + " " + regex("^"+anyCase(path)+"(/.*)?$")
}

// only is the filter for a path itself in every spelling, to deny.
func only(path string) string {
	return literal(path) + " " + regex("^"+anyCase(path)+"$")
}

// within reports whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// mayBeWithin is within for names that a file system may take for the same: it
// errs on the side of true.
func mayBeWithin(path, root string) bool {
	if root == "/" {
		return true
	}
	ps, rs := strings.Split(path, "/"), strings.Split(root, "/")
	if len(ps) < len(rs) {
		return false
	}
	for i, r := range rs {
		if !strings.EqualFold(ps[i], r) && ascii(ps[i]) && ascii(r) {
			return false
		}
	}
	return true
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
