package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"github.com/kgate-dev/kgate/launcher/audit"
)

// Widths of the table: the directory's column, and where a command is cut.
const (
	dirWidth     = 28
	commandWidth = 200
)

// tableRow is one line for people, in local time.
func tableRow(e audit.Entry, home string, color paint) string {
	words := make([]string, len(e.Argv))
	for i, w := range e.Argv {
		words[i] = quoteWord(w)
	}
	kind := fmt.Sprintf("%-6s", visible(e.Kind))
	if e.Kind == audit.Block {
		kind = color.in(red, kind)
	}
	row := fmt.Sprintf("%s  %s  %s  %s", e.Time.Local().Format(time.DateTime), kind,
		pad(shortDir(e.Dir, home)), cutAt(strings.Join(words, " "), commandWidth))
	if e.Reason != "" {
		row += "  (" + cutAt(visible(e.Reason), 2*commandWidth) + ")"
	}
	return row + "\n"
}

// shortDir is the directory with the home as ~, cut in front where it is long:
// its end tells more.
func shortDir(dir, home string) string {
	if rest, ok := strings.CutPrefix(dir, home); ok && (rest == "" || rest[0] == '/') {
		dir = "~" + rest
	}
	runes := []rune(visible(dir))
	if len(runes) > dirWidth {
		return "…" + string(runes[len(runes)-dirWidth+1:])
	}
	return string(runes)
}

func pad(s string) string {
	return s + strings.Repeat(" ", max(0, dirWidth-utf8.RuneCountInString(s)))
}

func cutAt(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// quoteWord spells an argument so that it can be pasted into bash and holds no
// character that drives a terminal.
func quoteWord(w string) string {
	if q, err := syntax.Quote(w, syntax.LangBash); err == nil {
		return q
	}
	return strconv.Quote(w)
}

// visible escapes what does not print.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		i += n
	}
	return b.String()
}
