package seatbelt

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
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
// characters outside ASCII becomes any such run, with a letter before it that
// may be the base of a mark. Characters that have neither case nor parts stay
// themselves, or a name in Chinese would stand for every other one. The dialect
// has no (?i) (constellation-works/orbit#495), and nothing here needs an escape.
func anyCase(path string) string {
	const run = "([A-Za-z]?[^ -~]+)"
	var out []string
	last := func() string {
		if len(out) == 0 {
			return ""
		}
		return out[len(out)-1]
	}
	base := false // the last part is a letter of ASCII
	for _, r := range path {
		letter := false
		switch {
		case r >= utf8.RuneSelf && fixed(r):
			out = append(out, string(r))
		case r >= utf8.RuneSelf:
			if base && unicode.Is(unicode.M, r) {
				out = out[:len(out)-1]
			}
			if last() != run {
				out = append(out, run)
			}
		case r >= 'a' && r <= 'z':
			out, letter = append(out, fmt.Sprintf("[%c%c]", r-'a'+'A', r)), true
		case r >= 'A' && r <= 'Z':
			out, letter = append(out, fmt.Sprintf("[%c%c]", r, r-'A'+'a')), true
		case strings.ContainsRune(`"\[]^`, r):
			out = append(out, ".")
		case strings.ContainsRune(".*+?(){}|$", r):
			out = append(out, "["+string(r)+"]")
		default:
			out = append(out, string(r))
		}
		base = letter
	}
	return strings.Join(out, "")
}

// fixed reports whether a character has one spelling: Chinese characters (but
// for those that Unicode has twice) and pictures.
func fixed(r rune) bool {
	if r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f {
		return false
	}
	return unicode.Is(unicode.Han, r) || unicode.Is(unicode.So, r)
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

// mayBeWithin is within for names that a file system may take for the same.
func mayBeWithin(path, root string) bool {
	if root == "/" {
		return true
	}
	if ascii(path) && ascii(root) {
		return len(path) >= len(root) && strings.EqualFold(path[:len(root)], root) && (len(path) == len(root) || path[len(root)] == '/')
	}
	ps, rs := strings.Split(path, "/"), strings.Split(root, "/")
	if len(ps) < len(rs) {
		return false
	}
	for i, r := range rs {
		if !mayBeSame(ps[i], r) {
			return false
		}
	}
	return true
}

// mayBeSame reports whether two names of one directory may be one file's: in
// another case or another Unicode normal form, or through a character that folds
// to letters of ASCII.
func mayBeSame(a, b string) bool {
	if a == b {
		return true
	}
	a, b = folded.Replace(a), folded.Replace(b)
	if ascii(a) || ascii(b) {
		return strings.EqualFold(a, b)
	}
	return spells(a, b) && spells(b, a)
}

// folded maps the characters outside ASCII whose case folding is in ASCII.
var folded = strings.NewReplacer("\u212a", "k", "\u017f", "s", "\u00df", "ss", "\u1e9e", "ss", "\ufb00", "ff", "\ufb01", "fi",
	"\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st")

// spells reports whether the expression for one name matches another.
func spells(model, name string) bool {
	ok, err := regexp.MatchString("^"+anyCase(model)+"$", name)
	return ok || err != nil
}

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
