package mask

// block is the state within a private key block. Everything is dropped up to
// the END line. A block whose END never comes must not swallow what a program,
// or a whole terminal session, prints after it, so each line that cannot be
// part of one ends the block and is shown.
//
// A line belongs to the block when it holds a run of at least keyRun characters
// of base64 (whatever else stands before it: line numbers, a log's prefix), is
// blank, is the one short line of base64 that ends the data, or is a header of
// the old formats before the data. The text \n counts as a blank, for keys in
// JSON.
//
// Before a line ends the block, its END is looked for: whatever stands between
// the two, as a key in short lines does, is the block's.
type block struct {
	body  bool // this line belongs to the block: drop it to its end
	data  bool // a line of the data has been seen: no headers any more
	short int  // short lines since the last long one
}

const (
	keyRun   = 24
	maxLine  = 256 // how much of a line is held while it is not decided
	keyBegin = "-----BEGIN "
	keyEnd   = "-----END "
	maxShort = 1
	endAhead = 1 << 10 // how far ahead END is looked for
)

// line is what is known of one line.
type line struct {
	end     int  // index of its end, or of where it was cut
	whole   bool // it ends there
	run     int  // index after the first long run, or 0
	blank   bool
	foreign bool // it has bytes that a line of a key does not have
	marker  int  // index after an END marker, or 0
	wait    bool // the text ends within what may be an END marker
}

// scan looks at the line that starts at b[i].
func scan(b []byte, i int, t *[256]class) line {
	l := line{blank: true}
	run := 0
	j := i
	for ; j < len(b); j++ {
		c := b[j]
		if c == '\n' || c == '\r' && j+1 < len(b) && b[j+1] == '\n' {
			l.end, l.whole = j, true
			return l
		}
		if j-i >= maxLine {
			l.end, l.whole = j, true
			return l
		}
		if c == '-' {
			n, v := marker(t, b[j:], keyEnd)
			if v == yes {
				l.end, l.marker = j, j+n
				return l
			}
			if v == need {
				l.end, l.wait = j, true
				return l
			}
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r':
			run = 0
		case t[c]&cBase64 != 0:
			l.blank = false
			if run++; run >= keyRun {
				l.end, l.run = j, j+1
				return l
			}
		case c == '\\' || c == '"' || c == '\'' || c == ',':
			l.blank = false
			run = 0
		default:
			l.blank, l.foreign = false, true
			run = 0
		}
	}
	l.end = j
	return l
}

// lineStart returns the index after the line terminator at b[i], if there is
// one.
func lineStart(b []byte, i int) int {
	if i < len(b) && b[i] == '\r' {
		i++
	}
	if i < len(b) && b[i] == '\n' {
		i++
	}
	return i
}

// foreign says whether the held text starts with a line that does not belong to
// the block, as a prompt does, or is whole and waits only for an END.
func (k *block) foreign(b []byte, t *[256]class) bool {
	if k.body {
		return false
	}
	l := scan(b, lineStart(b, 0), t)
	return (l.foreign || l.whole) && l.marker == 0 && !l.wait && l.run == 0
}

// ended looks for the block's END in what follows b[from], up to the next
// BEGIN, and returns the index after it.
func ended(b []byte, from int, t *[256]class, final bool) (int, verdict) {
	for j := from; j < min(len(b), from+endAhead); j++ {
		if b[j] != '-' {
			continue
		}
		n, v := marker(t, b[j:], keyEnd)
		if v == yes {
			return j + n, yes
		}
		_, o := marker(t, b[j:], keyBegin)
		if (v == need || o == need) && !final {
			return 0, need
		}
		if o == yes {
			return 0, no
		}
	}
	if len(b) < from+endAhead && !final {
		return 0, need
	}
	return 0, no
}

// header says whether b is a header line: Proc-Type: 4,ENCRYPTED.
func header(b []byte) bool {
	for i, c := range b {
		switch {
		case c == ':':
			return i > 1 && i+1 < len(b) && b[i+1] == ' '
		case i == 0 && (c < 'A' || c > 'Z'):
			return false
		case !alnum(c) && c != '-':
			return false
		}
	}
	return false
}

// runBlock goes on within a block. Unless a line of the data is being dropped,
// b[i] is the terminator before the line to be decided.
func (w *Writer) runBlock(b []byte, i int, final bool) (int, bool) {
	k := &w.block
	if k.body {
		for ; i < len(b); i++ {
			switch b[i] {
			case '-':
				n, v := marker(&w.r.class, b[i:], keyEnd)
				if v == yes {
					w.mode = inText
					return i + n, false
				}
				if v == need && !final {
					return i, true
				}
			case '\r', '\n':
				k.body = false
				return i, false
			}
		}
		return i, false
	}
	from := lineStart(b, i)
	l := scan(b, from, &w.r.class)
	switch {
	case l.marker > 0:
		w.mode = inText
		return l.marker, false
	case l.run > 0:
		k.body, k.data, k.short = true, true, 0
		return l.run, false
	case !l.whole && !final:
		return i, true
	case l.wait: // and final
		return len(b), false
	case l.blank && l.whole:
		return l.end, false
	case l.blank:
		w.text(b, i, from) // the end of the text: keep its last line break
		return len(b), false
	case l.foreign && !k.data && header(b[from:l.end]):
		return l.end, false
	case l.foreign || k.short >= maxShort:
		n, v := ended(b, from, &w.r.class, final)
		if v == need {
			return i, true
		}
		w.mode = inText
		if v == yes {
			return n, false
		}
		return i, false
	}
	k.short++
	return l.end, false
}
