package command

import "strings"

// hole stands in a field's text for a part that only running decides. In shell
// text it reads as a variable that has no value, so that text with holes can
// be parsed as it is.
const (
	holeName = "_kgate_unknown_"
	hole     = "${" + holeName + "}"
)

// later is the hole of a function's parameters where the function is defined:
// what they are is looked at where it is called.
const (
	laterName = "_kgate_later_"
	later     = "${" + laterName + "}"
)

// field is one word as the command gets it.
type field struct {
	text    string // with holes where it is not known
	pattern string // the same as a pattern, when glob
	sure    bool   // without holes
	many    bool   // may be several words, or none
	glob    bool   // holds unquoted pattern characters
	proc    *input // the word is a process substitution that reads as this
}

func known(s string) field { return field{text: s, sure: true} }

var unknown = field{text: hole, many: true}

// tail is the part behind the last hole.
func (f field) tail() string {
	if f.sure {
		return f.text
	}
	t := f.text
	for _, h := range []string{hole, later} {
		if at := strings.LastIndex(t, h); at >= 0 {
			t = t[at+len(h):]
		}
	}
	return t
}

// deferred reports whether all that is not known is known where the function
// is called.
func (f field) deferred() bool {
	return !f.sure && strings.Contains(f.text, later) && !strings.Contains(f.text, hole)
}

// holed reports whether text has a part that is not known.
func holed(text string) bool {
	return strings.Contains(text, hole) || strings.Contains(text, later)
}

// base is the last path element, false when it is not decided: a word is known
// by its end if a slash stands between that and what is not known.
func (f field) base() (string, bool) {
	t := f.tail()
	at := strings.LastIndexByte(t, '/')
	if at < 0 && !f.sure {
		return "", false
	}
	return t[at+1:], true
}

// option reports whether the word is surely an option.
func (f field) option() bool { return len(f.text) > 1 && f.text[0] == '-' }

// input is what a command reads from its standard input, or a file.
type input struct {
	given bool   // something on the command line feeds it
	known bool   // text is all of it
	text  string // may hold holes
	path  string // a file that is read instead
}

// texts is the words with a blank between them, or a hole where that would be
// longer than any text that is looked at: a few words may stand for gigabytes.
func texts(words []field) string {
	size := len(words)
	for _, w := range words {
		size += len(w.text)
	}
	if size > maxText {
		return hole
	}
	var b strings.Builder
	for n, w := range words {
		if n > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return b.String()
}
