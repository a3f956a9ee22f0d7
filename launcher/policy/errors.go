package policy

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// FileError is one mistake in a policy file or in a one-shot flag. Its text is
// "FILE:LINE: KEY: what (mend)", with the parts left out that do not apply.
type FileError struct {
	File string // "" for a flag
	Line int    // 1-based; 0 when the mistake has no line
	Key  string // the dotted key, or the flag's name
	What string
	Mend string // what to do about it; "" when What says it
}

func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.File != "" && e.Line > 0 {
		b.WriteString(":" + strconv.Itoa(e.Line))
	}
	if e.File != "" {
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	b.WriteString(e.What)
	if e.Mend != "" {
		b.WriteString(" (" + e.Mend + ")")
	}
	return b.String()
}

// at turns the origin of a value into the start of an error about it.
func at(o Origin, what, mend string) *FileError {
	return &FileError{File: o.File, Line: o.Line, Key: o.Key, What: what, Mend: mend}
}

// RefusedError says that the working directory must not be the scope of a
// launch. run exits 126 with it.
type RefusedError struct {
	Dir    string // as it was given
	Reason string
	Mend   string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("working directory %q %s (%s)", e.Dir, e.Reason, e.Mend)
}

// excerpt quotes text from a file for an error: short, on one line, and with
// nothing in it that a terminal would obey.
func excerpt(s string) string {
	const most = 40
	if len(s) > most {
		cut := most
		for cut > 0 && s[cut]&0xc0 == 0x80 {
			cut--
		}
		s = s[:cut] + "..."
	}
	return strconv.Quote(s)
}

// keyName renders a key of a file for an error: bare when it is an ordinary
// word, else as an excerpt.
func keyName(s string) string {
	for _, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' {
			return excerpt(s)
		}
	}
	if s == "" || len(s) > 40 {
		return excerpt(s)
	}
	return s
}
