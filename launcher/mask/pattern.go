package mask

import (
	"encoding/base64"
	"strings"
)

// class is a set of character classes.
type class uint16

const (
	cUpper  class = 1 << iota // A-Z 0-9
	cLower                    // a-z 0-9
	cHex                      // 0-9 a-f
	cAlnum                    // A-Z a-z 0-9
	cWord                     // cAlnum _ -
	cDots                     // cWord .
	cBase64                   // cAlnum + / =
	cWide                     // cWord . ~ + / = $
	cUser                     // what may stand in the user part of a URL, but the colon
	cPass                     // what may stand in the password of a URL, but the at sign
	cLabel                    // A-Z 0-9 and space
)

func fillClasses(t *[256]class) {
	for i := range t {
		c := byte(i)
		digit := c >= '0' && c <= '9'
		upper := c >= 'A' && c <= 'Z'
		lower := c >= 'a' && c <= 'z'
		var k class
		if digit || upper {
			k |= cUpper | cLabel
		}
		if digit || lower {
			k |= cLower
		}
		if digit || c >= 'a' && c <= 'f' {
			k |= cHex
		}
		if digit || upper || lower {
			k |= cAlnum | cWord | cDots | cBase64 | cWide
		}
		switch c {
		case '_', '-':
			k |= cWord | cDots | cWide
		case '.':
			k |= cDots | cWide
		case '+', '/', '=':
			k |= cBase64 | cWide
		case '~', '$':
			k |= cWide
		case ' ':
			k |= cLabel
		}
		// RFC 3986 allows less than this in a user part, but people paste
		// passwords as they are; what ends one is what ends a URL in a text.
		if c > ' ' && c != 0x7f && !strings.ContainsRune("/?#\"'<>\\`", rune(c)) {
			if c != ':' && c != '@' {
				k |= cUser
			}
			if c != '@' {
				k |= cPass
			}
		}
		t[i] = k
	}
}

// form is how a pattern is compared with the text.
type form uint8

const (
	formPrefix form = iota // lit, then min bytes of body, then tail up to the break
	formJWT
	formPEM
	formURL
	formRaw     // a value as it is
	formPercent // a value with some bytes as %XX
	formBase64  // a piece of base64, which may be wrapped into lines
)

// pattern is one thing to look for.
type pattern struct {
	name   string
	lit    string
	form   form
	body   class
	tail   class
	min    int
	source string
	left   int  // for values: how many bytes of tail to drop at most
	second byte // the second byte where it can be no other (but ESC), or 0
}

// bounded says whether the pattern counts at the start of a word only.
func (p *pattern) bounded() bool { return p.form == formPrefix || p.form == formJWT }

// heads calls f with every string of three bytes that can start the pattern in
// a text. It may repeat itself.
func (p *pattern) heads(f func(string)) {
	if p.form == formURL {
		f("://")
		f(`:\/`)
		return
	}
	var walk func(k int, head string)
	walk = func(k int, head string) {
		if len(head) >= 3 || k == len(p.lit) {
			if len(head) >= 3 {
				f(head[:3])
			}
			return
		}
		c := p.lit[k]
		walk(k+1, head+string([]byte{c}))
		if k > 0 && p.form != formPEM {
			walk(len(p.lit), head+"\x1b[3") // longer heads are cut
		}
		switch p.form {
		case formRaw:
			if c == '\n' {
				walk(k+1, head+"\r\n")
			}
		case formBase64:
			if k > 0 {
				walk(k+1, head+"\n"+string([]byte{c}))
				walk(k+1, head+"\r\n"+string([]byte{c}))
			}
		case formPercent:
			const lower, upper = "0123456789abcdef", "0123456789ABCDEF"
			if c == ' ' {
				walk(k+1, head+"+")
			}
			if !alnum(c) {
				for _, hi := range []byte{lower[c>>4], upper[c>>4]} {
					for _, lo := range []byte{lower[c&15], upper[c&15]} {
						walk(k+1, head+string([]byte{'%', hi, lo}))
					}
				}
			}
		}
	}
	walk(0, "")
}

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
}

// valuePatterns returns the ways in which a value is recognised.
func valuePatterns(v Value) []*pattern {
	var out []*pattern
	seen := map[string]bool{}
	add := func(lit string, f form, partial bool) {
		key := string(rune('0'+f)) + lit
		if seen[key] {
			return
		}
		seen[key] = true
		p := &pattern{name: v.Name, lit: lit, form: f}
		if partial {
			// The next character carries bits of the value's end, and padding
			// may follow it.
			p.tail, p.left = cBase64, 3
		}
		out = append(out, p)
	}
	add(v.Secret, formRaw, false)
	add(jsonEscape(v.Secret, false), formRaw, false)
	add(jsonEscape(v.Secret, true), formRaw, false)
	for i := 0; i < len(v.Secret); i++ {
		if !alnum(v.Secret[i]) {
			add(v.Secret, formPercent, false)
			break
		}
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := 0; shift < 3; shift++ {
			text := enc.EncodeToString([]byte("\x00\x00"[:shift] + v.Secret))
			bits := (shift + len(v.Secret)) * 8
			from, to := (shift*8+5)/6, bits/6
			add(text[from:to], formBase64, bits%6 != 0)
		}
	}
	return out
}

// jsonEscape returns s as it stands within a JSON string. With html, the
// characters that many encoders write as \u00XX are written so.
func jsonEscape(s string, html bool) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || html && (c == '<' || c == '>' || c == '&'):
			const hex = "0123456789abcdef"
			b.WriteString(`\u00`)
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
