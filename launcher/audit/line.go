package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	hashLen   = 2 * sha256.Size
	hashKey   = `,"hash":"`
	suffixLen = len(hashKey) + hashLen + len(`"}`)
	headSize  = 20 + 1 + hashLen + 1
)

var noHash = strings.Repeat("0", hashLen)

// digest is the hash of a line, in hex.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// encode renders the line without its line end and fills e.Hash.
func encode(e *Entry) []byte {
	b := make([]byte, 0, 512)
	b = strconv.AppendUint(append(b, `{"seq":`...), e.Seq, 10)
	b = appendField(b, "prev", e.Prev)
	if e.Torn != "" {
		b = appendField(b, "torn", e.Torn)
	}
	if e.Anchor != "" {
		b = appendField(b, "anchor", e.Anchor)
	}
	b = append(b, `,"version":1,"time":"`...) // see docs/json.md
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendField(b, "kind", e.Kind)
	b = appendField(b, "id", e.ID)
	b = appendField(b, "dir", e.Dir)
	if e.Project != "" {
		b = appendField(b, "project", e.Project)
	}
	b = appendList(b, "argv", e.Argv)
	if len(e.Flags) > 0 {
		b = appendList(b, "flags", e.Flags)
	}
	if e.Reason != "" {
		b = appendField(b, "reason", e.Reason)
	}
	if e.Network != "" {
		b = appendField(b, "network", e.Network)
	}
	if e.Backend != "" {
		b = appendField(b, "backend", e.Backend)
	}
	if e.User != "" {
		b = appendField(b, "user", e.User)
	}
	b = strconv.AppendInt(append(b, `,"uid":`...), int64(e.UID), 10)
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(e.Pid), 10)
	e.Hash = digest(b)
	b = append(append(b, hashKey...), e.Hash...)
	return append(b, `"}`...)
}

func appendField(b []byte, key, value string) []byte {
	b = append(append(append(b, `,"`...), key...), `":`...)
	return appendString(b, value)
}

func appendList(b []byte, key string, words []string) []byte {
	b = append(append(append(b, `,"`...), key...), `":[`...)
	for i, w := range words {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, w)
	}
	return append(b, ']')
}

// appendString writes a JSON string in the package's spelling.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			b = append(b, c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = appendUnit(b, 0xdc00+rune(c))
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case unicode.IsPrint(r):
			b = append(b, s[i:i+n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			b = appendUnit(appendUnit(b, hi), lo)
		default:
			b = appendUnit(b, r)
		}
		i += n
	}
	return append(b, '"')
}

func appendUnit(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// link is a line's place in the chain.
type link struct {
	seq        uint64
	prev, hash string
	torn       string
	anchorLost bool
}

var (
	errNotLine = errors.New("it is not a line of this log")
	errEdited  = errors.New("its content does not fit its hash")
)

// parseLink reads a line's place, strictly as encode writes it, and checks the
// line against its own hash.
func parseLink(line []byte) (link, error) {
	var k link
	if len(line) < suffixLen || !bytes.HasSuffix(line, []byte(`"}`)) {
		return k, errNotLine
	}
	body, suffix := line[:len(line)-suffixLen], line[len(line)-suffixLen:]
	if !bytes.HasPrefix(suffix, []byte(hashKey)) {
		return k, errNotLine
	}
	k.hash = string(suffix[len(hashKey) : len(hashKey)+hashLen])
	rest, ok := bytes.CutPrefix(body, []byte(`{"seq":`))
	if !ok {
		return k, errNotLine
	}
	number, rest, ok := bytes.Cut(rest, []byte(`,"prev":"`))
	seq, err := strconv.ParseUint(string(number), 10, 63)
	if !ok || err != nil || seq == 0 || len(rest) < hashLen+1 {
		return k, errNotLine
	}
	k.seq, k.prev, rest = seq, string(rest[:hashLen]), rest[hashLen+1:]
	if digest(body) != k.hash {
		return k, errEdited
	}
	if after, ok := bytes.CutPrefix(rest, []byte(`,"torn":"`)); ok && len(after) > hashLen {
		k.torn, rest = string(after[:hashLen]), after[hashLen+1:]
	}
	k.anchorLost = bytes.HasPrefix(rest, []byte(`,"anchor":"missing"`))
	return k, nil
}

// Decode reads one line. It does not check the hash: that is Verify's.
func Decode(line []byte) (Entry, error) {
	var w struct {
		Seq                    uint64
		Prev, Torn, Anchor     string
		Hash                   string
		Time                   time.Time
		Kind, ID, Dir, Project text
		Argv, Flags            []text
		Reason, Network        text
		Backend, User          text
		UID, Pid               int
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return Entry{}, fmt.Errorf("decode: %w", err)
	}
	if w.Seq == 0 {
		return Entry{}, errNotLine
	}
	return Entry{
		Seq: w.Seq, Prev: w.Prev, Torn: w.Torn, Anchor: w.Anchor, Hash: w.Hash,
		Time: w.Time, Kind: string(w.Kind), ID: string(w.ID), Dir: string(w.Dir), Project: string(w.Project),
		Argv: plain(w.Argv), Flags: plain(w.Flags), Reason: string(w.Reason), Network: string(w.Network),
		Backend: string(w.Backend), User: string(w.User), UID: w.UID, Pid: w.Pid,
	}, nil
}

func plain(words []text) []string {
	if words == nil {
		return nil
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// text is a JSON string in which \udcXX stands for the byte XX.
type text string

// UnmarshalJSON undoes appendString; encoding/json would make U+FFFD of a lone
// surrogate and lose the byte.
func (t *text) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	if len(raw) < 2 || raw[0] != '"' {
		return fmt.Errorf("%.20q is not a string", raw)
	}
	raw = raw[1 : len(raw)-1]
	if !bytes.Contains(raw, []byte(`\`)) {
		*t = text(raw)
		return nil
	}
	b := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b = append(b, raw[i])
			continue
		}
		i++ // encoding/json has seen to it that an escape is whole
		if raw[i] != 'u' {
			b = append(b, unescape(raw[i]))
			continue
		}
		r := unit(raw[i+1:])
		i += 4
		switch {
		case utf16.IsSurrogate(r) && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' && utf16.DecodeRune(r, unit(raw[i+3:])) != unicode.ReplacementChar:
			b = utf8.AppendRune(b, utf16.DecodeRune(r, unit(raw[i+3:])))
			i += 6
		case r >= 0xdc80 && r <= 0xdcff:
			b = append(b, byte(r-0xdc00))
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	*t = text(b)
	return nil
}

func unescape(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

func unit(hex4 []byte) rune {
	v, err := strconv.ParseUint(string(hex4[:4]), 16, 32)
	if err != nil {
		return unicode.ReplacementChar
	}
	return rune(v)
}
