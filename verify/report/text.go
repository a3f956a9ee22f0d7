package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// markup is HTML that this package's own source holds. Only constants become
// one without being converted, so what comes from anywhere else is escaped.
type markup string

// page writes HTML and remembers the first error.
type page struct{ w *bufio.Writer }

func newPage(w io.Writer) *page { return &page{bufio.NewWriter(w)} }

// raw writes markup as it is.
func (p *page) raw(parts ...markup) {
	for _, m := range parts {
		p.w.WriteString(string(m)) // bufio keeps the error for Flush
	}
}

// text writes what may hold anything, as text or as an attribute's value.
func (p *page) text(s string) { p.w.WriteString(escape(visible(s))) }

// textf is text with a format.
func (p *page) textf(format string, args ...any) { p.text(fmt.Sprintf(format, args...)) }

// element writes one element that holds text alone.
func (p *page) element(open markup, s string, end markup) {
	p.raw(open)
	p.text(s)
	p.raw(end)
}

// escape writes what HTML has a meaning for, in text or within quotes, as
// references to characters. (Package html does the same, and is work at the start
// of every kgate, report or not.)
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch s[i] {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '"':
			b.WriteString("&#34;")
		case '\'':
			b.WriteString("&#39;")
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// visible shows each byte that has no shape of its own, or changes that of its
// neighbours (terminals' escapes, bidirectional controls, what is not UTF-8), as
// an escape of Go's. Line breaks and tabs stay.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n', r == '\t', strconv.IsPrint(r):
			b.WriteString(s[i : i+n])
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += n
	}
	return b.String()
}

// clip shortens a text to about n bytes and says how much it left out.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return fmt.Sprintf("%s … (%d more bytes)", strings.ToValidUTF8(s[:n], ""), len(s)-n)
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
