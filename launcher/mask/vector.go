package mask

import (
	"bytes"
	"math/bits"
	"slices"
)

// vector is the matcher's first look in a form that a vector unit applies to
// many bytes at once. A secret may start where, for some group of heads, each
// of three bytes is one of that group's, by the byte's low and its high half:
// lo and hi hold one bit for each group. This finds more than there is, and
// nothing less.
type vector struct {
	lo, hi [3][16]byte
	// What stands before a head that needs a word boundary: a byte in solid,
	// again by its halves, is a letter or digit that no escape ends with.
	solidLo, solidHi [16]byte
}

const (
	groups   = 8
	freeFrom = 6  // the groups from here on need no word boundary
	reach    = 6  // how far back the look goes
	width    = 32 // how many bytes it takes at a time
	ahead    = 3  // how far beyond them it, or what follows it, goes
)

// group is what a group of heads has: the halves of each byte.
type group struct {
	lo, hi [3]uint16
	used   bool
}

// chance is how much text of three bytes the group fits.
func (g *group) chance() int {
	n := 1
	for k := range 3 {
		n *= bits.OnesCount16(g.lo[k]) * bits.OnesCount16(g.hi[k])
	}
	return n
}

func (g group) with(h [3]byte) group {
	for k := range 3 {
		g.lo[k] |= 1 << (h[k] & 15)
		g.hi[k] |= 1 << (h[k] >> 4)
	}
	g.used = true
	return g
}

// fill puts the heads into groups, each where it adds least.
func (v *vector) fill(bounded, free [][3]byte) {
	var all [groups]group
	place := func(heads [][3]byte, from, to int) {
		slices.SortFunc(heads, func(a, b [3]byte) int { return bytes.Compare(a[:], b[:]) })
		for _, h := range slices.Compact(heads) {
			best, least := from, -1
			for k := from; k < to; k++ {
				before := 0
				if all[k].used {
					before = all[k].chance()
				}
				with := all[k].with(h)
				if more := with.chance() - before; least < 0 || more < least {
					best, least = k, more
				}
			}
			all[best] = all[best].with(h)
		}
	}
	place(bounded, 0, freeFrom)
	place(free, freeFrom, groups)
	for n := range all {
		for k := range 3 {
			for half := range 16 {
				v.lo[k][half] |= byte(all[n].lo[k]>>half&1) << n
				v.hi[k][half] |= byte(all[n].hi[k]>>half&1) << n
			}
		}
	}
	for c := range 0x80 {
		// m and K end a colour sequence.
		if alnum(byte(c)) && c != 'm' && c != 'K' {
			v.solidLo[c&15] |= 1 << (c >> 4)
			v.solidHi[c>>4] = 1 << (c >> 4)
		}
	}
}
