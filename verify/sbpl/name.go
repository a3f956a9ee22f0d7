package sbpl

import (
	"strings"
	"unicode/utf8"
)

// sameName compares a path of a profile with a path as the kernel has it: yes
// for the same bytes, maybe for what a Mac's usual file system takes for the
// same name (another case, another Unicode normal form), no for the rest.
// Whether Seatbelt's literal and subpath fold the names is disputed
// (constellation-works/orbit#494), hence maybe.
func sameName(a, b string) truth {
	if a == b {
		return yes
	}
	if ascii(a) && ascii(b) {
		if len(a) == len(b) && strings.EqualFold(a, b) {
			return maybe
		}
		return no
	}
	if strings.Count(a, "/") != strings.Count(b, "/") {
		return no
	}
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range as {
		if !alike(as[i], bs[i]) {
			return no
		}
	}
	return maybe
}

// alike compares two names of one directory. Where both have more than ASCII,
// only what stands between such runs and the letters they may combine with has
// to agree: that finds every pair of normal forms, and some pairs more. A name
// in ASCII is the same as one that is not only through the few characters that
// fold to ASCII letters, or that old file systems ignore.
func alike(a, b string) bool {
	if a == b {
		return true
	}
	a, b = toASCII.Replace(a), toASCII.Replace(b)
	switch pa, pb := ascii(a), ascii(b); {
	case pa && pb:
		return strings.EqualFold(a, b)
	case pa || pb:
		return false
	}
	return within(a, b) && within(b, a)
}

var toASCII = strings.NewReplacer(
	"\u212a", "k", "\u017f", "s", "\u00df", "ss", "\u1e9e", "ss",
	"\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st",
	"\u200b", "", "\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u2060", "", "\ufeff", "",
)

func ascii(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// within reports whether name could be a spelling of the name model, taking
// anything for the runs of model that are not ASCII or may combine with them.
func within(model, name string) bool {
	var parts []string
	var cur []byte
	open := false
	for i := 0; i < len(model); i++ {
		if model[i] < utf8.RuneSelf {
			if open {
				parts, cur, open = append(parts, string(cur)), nil, false
			}
			cur = append(cur, model[i])
			continue
		}
		if !open && len(cur) > 0 {
			cur = cur[:len(cur)-1]
		}
		open = true
	}
	if !open && len(parts) == 0 {
		return strings.EqualFold(model, name) // nothing but ASCII: no hole
	}
	parts = append(parts, string(cur))
	if open {
		parts = append(parts, "")
	}
	lower := strings.ToLower(name)
	for i, p := range parts {
		p = strings.ToLower(p)
		switch {
		case i == 0:
			if !strings.HasPrefix(lower, p) {
				return false
			}
			lower = lower[len(p):]
		case i == len(parts)-1:
			return strings.HasSuffix(lower, p)
		default:
			j := strings.Index(lower, p)
			if j < 0 {
				return false
			}
			lower = lower[j+len(p):]
		}
	}
	return true
}
