// Package mask replaces secrets in what a command prints. It is a filter on a
// stream: constant memory, no delay for text that cannot be the start of a
// secret, and nothing about where writes or flushes fall changes what it does.
//
// A known prefix at the start of a word begins a token. Once enough characters
// follow for it to be one (a bare AKIA is not), the token is replaced with
// "[masked: KIND]" and everything up to the token's break is dropped, however
// long it is. Private key blocks are dropped from BEGIN to END, passwords in
// URLs from the colon to the at sign, and the person's own values wherever
// they stand, also in base64, URL encoding and JSON's escapes.
//
// What it does not do, so that nobody relies on it:
//   - A secret of no known shape, not listed by the person, passes.
//   - A secret transformed in another way (hex, gzip, reversed, one character
//     a line) passes. A program that wants to get a secret past this filter
//     can; what keeps secrets from a program is the box, not this.
//   - Colour sequences (CSI … m and CSI … K) within a token are seen through.
//     Any other escape sequence, such as a cursor movement, ends the token.
//   - A line break, a NUL or a backspace within a token ends it, so UTF-16 passes,
//     and so does a token that somebody broke before it was long enough to be one.
//   - Where two of the person's values overlap, the first is replaced, and what
//     only the second has stays visible.
//   - Of a base64 form up to four bits at the front of a value stay visible
//     when the value does not start at a multiple of three bytes.
//   - A JWT whose header is longer than 8 KiB without a dot is not recognised.
package mask

import (
	"fmt"
	"io"
	"sort"
	"strings"
)

// Value is a secret that the person named: every occurrence of Secret is
// replaced with "[masked: Name]".
type Value struct {
	Name   string
	Secret string
}

// minValue is the least length in bytes of a value: a shorter one would mask
// half of what a program prints.
const minValue = 4

// minPrefix is the least length in bytes of a person's prefix.
const minPrefix = 3

// Rules is the compiled matcher. It is read-only and may serve any number of
// writers at once.
type Rules struct {
	byFirst  [256][]*pattern // by first byte, longest literal first
	anywhere [256]bool       // some pattern with that first byte needs no word boundary
	pairs    [1 << 16]byte   // 2 for the first pair of bytes of each head, 1 for the second
	headBits [256]uint64     // one bit for the hash of each head
	free     [256]uint64     // the same, of those that need no word boundary
	dashes   bool            // only a private key starts with a dash
	colons   bool            // only a URL's authority starts with a colon
	class    [256]class
	builtin  [len(kinds)]pattern

	heads, freeHeads [][3]byte // what look is made of
	look             vector
}

// Compile makes the matcher of the built-in kinds, the person's prefixes and
// the person's values. Empty values are skipped; a value under four bytes or a
// prefix under three is an error, as is a prefix with a space or a control
// character in it.
func Compile(prefixes []string, values []Value) (*Rules, error) {
	r := &Rules{}
	fillClasses(&r.class)
	r.builtin = kinds
	for i := range r.builtin {
		r.add(&r.builtin[i])
	}
	for _, p := range prefixes {
		if len(p) < minPrefix {
			return nil, fmt.Errorf("mask prefix %q: needs at least %d characters", p, minPrefix)
		}
		for i := 0; i < len(p); i++ {
			if p[i] <= ' ' || p[i] == 0x7f {
				return nil, fmt.Errorf("mask prefix %q: has a space or a control character", p)
			}
		}
		r.add(&pattern{name: p, lit: p, form: formPrefix, body: cWide, tail: cWide, min: 1})
	}
	for _, v := range values {
		if v.Secret == "" {
			continue
		}
		if len(v.Secret) < minValue {
			return nil, fmt.Errorf("mask value of %q: has %d bytes, under %d it would mask ordinary text", v.Name, len(v.Secret), minValue)
		}
		for _, p := range valuePatterns(v) {
			r.add(p)
		}
	}
	r.look.fill(r.heads, r.freeHeads)
	r.dashes = len(r.byFirst['-']) == 1
	r.colons = len(r.byFirst[':']) == 1
	for i := range r.byFirst {
		l := r.byFirst[i]
		sort.SliceStable(l, func(a, b int) bool { return len(l[a].lit) > len(l[b].lit) })
	}
	return r, nil
}

// add enters p under every way in which its first three bytes can be printed.
func (r *Rules) add(p *pattern) {
	var seen [256]bool
	first := true
	p.heads(func(h string) {
		if !seen[h[0]] {
			seen[h[0]] = true
			r.byFirst[h[0]] = append(r.byFirst[h[0]], p)
			if !p.bounded() {
				r.anywhere[h[0]] = true
			}
		}
		switch {
		case first:
			p.second, first = h[1], false
		case p.second != h[1] && h[1] != 0x1b:
			p.second = 0
		}
		r.pairs[uint16(h[0])|uint16(h[1])<<8] |= 2
		r.pairs[uint16(h[1])|uint16(h[2])<<8] |= 1
		n := hash(h[0], h[1], h[2])
		r.headBits[n>>6] |= 1 << (n & 63)
		if !p.bounded() {
			r.free[n>>6] |= 1 << (n & 63)
		}
		if h[1] == 0x1b || h[2] == 0x1b {
			return // the fast look takes every escape for the middle of a head
		}
		if head := [3]byte{h[0], h[1], h[2]}; p.bounded() {
			r.heads = append(r.heads, head)
		} else {
			r.freeHeads = append(r.freeHeads, head)
		}
	})
}

// hash maps three bytes to 14 bits.
func hash(a, b, c byte) uint32 {
	return (uint32(a)<<8 | uint32(b)<<16 | uint32(c)<<24) * hashFactor >> 18
}

const hashFactor = 0x9e3779b1

// String returns s with its secrets replaced.
func (r *Rules) String(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	w := r.Writer(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// Kind is one built-in kind, for documents and for explain.
type Kind struct {
	Name   string // as shown in "[masked: Name]"
	Prefix string // what starts it
	Source string // where its issuer, or its standard, describes it
}

// Kinds returns the built-in kinds in a fixed order.
func Kinds() []Kind {
	out := make([]Kind, len(kinds))
	for i, k := range kinds {
		out[i] = Kind{k.name, k.lit, k.source}
	}
	return out
}
