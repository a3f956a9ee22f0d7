package mask

import (
	"encoding/binary"
	"math/bits"
)

// next returns the index in b[i:limit] of the next byte that a secret may start
// at, or limit.
func (w *Writer) next(b []byte, i, limit int) int {
	if fast {
		var found bool
		if i, found = w.nextFast(b, i, limit); found {
			return i
		}
	}
	return w.nextPair(b, i, limit)
}

// nextFast is next for as much of b[i:limit] as the vector unit takes. It
// returns where the rest begins, or where a secret may start.
func (w *Writer) nextFast(b []byte, i, limit int) (int, bool) {
	for end := min(limit, reach, len(b)); i < end; i++ {
		if w.candidate(b, i) {
			return i, true
		}
	}
	for i < limit {
		if i < w.lookFrom || i >= w.lookTo {
			n := min(len(b)-ahead-i, len(w.found)*width) &^ (width - 1)
			if n <= 0 {
				break
			}
			w.lookFrom, w.lookTo = i, i+n
			lookAVX2(&w.r.look, &b[i], n, &w.found[0])
		}
		k := (i - w.lookFrom) / width
		at := w.lookFrom + k*width
		found := w.found[k] & (^uint32(0) << (i - at))
		for last := (w.lookTo-w.lookFrom)/width - 1; found == 0 && k < last; {
			k++
			found = w.found[k&(len(w.found)-1)]
		}
		at = w.lookFrom + k*width
		i = at + width
		for found != 0 {
			c := at + bits.TrailingZeros32(found)
			found &= found - 1
			if n := binary.LittleEndian.Uint32(b[c:]) << 8 * hashFactor >> 18; w.r.headBits[n>>6]>>(n&63)&1 == 0 {
				continue
			}
			if c >= limit {
				return limit, false
			}
			if b[c] == '-' && w.r.dashes {
				if k := dashes(b, c); k >= i {
					i = k
					break
				} else if k > c {
					found &= ^uint32(0) << (k - at)
					continue
				}
			}
			if w.r.colons && b[c] == ':' && b[c+1] == '/' && b[c+2] == '/' && !mayHavePassword(&w.r.class, b, c+3) {
				continue // logs are full of addresses
			}
			if w.candidate(b, c) {
				return c, true
			}
		}
	}
	return min(i, limit), false
}

// nextPair looks at every second pair of bytes: whatever the parity of its
// place, one of the two pairs in a pattern's first three bytes is seen.
func (w *Writer) nextPair(b []byte, i, limit int) int {
	pairs := &w.r.pairs
	j := i
	for fast := min(limit, len(b)-2); j+8 <= fast; j += 8 {
		v := binary.LittleEndian.Uint64(b[j:])
		m0, m1 := pairs[uint16(v)], pairs[uint16(v>>16)]
		m2, m3 := pairs[uint16(v>>32)], pairs[uint16(v>>48)]
		if m0|m1|m2|m3 == 0 {
			continue
		}
		for m := uint(m0 | m1<<2 | m2<<4 | m3<<6); m != 0; m &= m - 1 {
			// An even bit is a second pair, one byte after its head's start.
			c := j - 1 + bits.TrailingZeros(m)
			if c < i {
				continue
			}
			if n := binary.LittleEndian.Uint32(b[c:]) << 8 * hashFactor >> 18; w.r.headBits[n>>6]>>(n&63)&1 == 0 {
				continue
			}
			if w.r.colons && b[c] == ':' && b[c+1] == '/' && b[c+2] == '/' && !mayHavePassword(&w.r.class, b, c+3) {
				continue // logs are full of addresses
			}
			if w.candidate(b, c) {
				return c
			}
		}
	}
	// What is left is short, and near the end of the text the pair that would
	// show a candidate may not be there yet.
	for ; j < limit; j++ {
		if j > i && w.candidate(b, j-1) {
			return j - 1
		}
	}
	if limit > i && w.candidate(b, limit-1) {
		return limit - 1
	}
	return limit
}

// dashes returns the first index from i on, where a dash is, at which a private
// key may start, or where the dashes end: a key starts with five of them and a
// letter B. Rules of dashes are long.
func dashes(b []byte, i int) int {
	j := i + 1
	for j < len(b) && b[j] == '-' {
		j++
	}
	if j < len(b) && b[j] != 'B' {
		return j
	}
	return max(i, j-5)
}

// candidate says whether a secret may start at b[i], by its first bytes and
// what stands before it.
func (w *Writer) candidate(b []byte, i int) bool {
	c := b[i]
	if i+2 < len(b) {
		n := hash(c, b[i+1], b[i+2])
		if w.r.headBits[n>>6]>>(n&63)&1 == 0 {
			return false
		}
		if c == '-' && w.r.dashes && i+5 < len(b) && b[i+5] != 'B' {
			return false // a rule of dashes
		}
		return w.r.free[n>>6]>>(n&63)&1 != 0 || w.boundary(b, i)
	}
	if len(w.r.byFirst[c]) == 0 {
		return false
	}
	return w.r.anywhere[c] || w.boundary(b, i)
}
