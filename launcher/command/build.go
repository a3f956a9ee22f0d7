package command

import "strings"

// build is a list of fields in the making. The last one's text is kept apart,
// because a word may have very many parts.
type build struct {
	done          []field
	cur           field
	text, pattern []byte
	open          bool
}

func (b *build) add(f field) {
	if !b.open {
		b.open, b.cur = true, field{sure: true}
	}
	if f.glob && !b.cur.glob {
		b.pattern, b.cur.glob = []byte(escapeGlob(string(b.text))), true
	}
	if b.cur.glob {
		if f.glob {
			b.pattern = append(b.pattern, f.pattern...)
		} else {
			b.pattern = append(b.pattern, escapeGlob(f.text)...)
		}
	}
	if len(b.text)+len(f.text) > maxText {
		b.text, f = b.text[:0:0], unknown
	}
	b.text = append(b.text, f.text...)
	b.cur.sure = b.cur.sure && f.sure
	b.cur.many = b.cur.many || f.many
	if f.proc != nil {
		b.cur.proc = f.proc
	}
}

// last is the field that is open.
func (b *build) last() field {
	f := b.cur
	f.text, f.pattern = string(b.text), string(b.pattern)
	return f
}

func (b *build) close() {
	if b.open && len(b.done) <= maxFields {
		b.done = few(append(b.done, b.last()))
	}
	*b = build{done: b.done}
}

// branch is a copy that can go on by itself.
func (b build) branch() build {
	b.done = b.done[:len(b.done):len(b.done)]
	b.text = b.text[:len(b.text):len(b.text)]
	b.pattern = b.pattern[:len(b.pattern):len(b.pattern)]
	return b
}

func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[\`) {
		return s
	}
	var b strings.Builder
	for n := 0; n < len(s); n++ {
		if strings.IndexByte(`*?[\`, s[n]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[n])
	}
	return b.String()
}

// each appends alternatives to each state, or a hole when that would be too many.
func each(states []build, vs [][]field) []build {
	if len(vs) == 1 && len(vs[0]) == 1 {
		for n := range states {
			states[n].add(vs[0][0])
		}
		return states
	}
	if len(states)*len(vs) > maxVariants {
		vs = [][]field{{unknown}}
	}
	next := make([]build, 0, len(states)*len(vs))
	for _, s := range states {
		for _, v := range vs {
			b := s.branch()
			for n, f := range v {
				if n > 0 {
					b.close()
				}
				b.add(f)
			}
			next = append(next, b)
		}
	}
	return next
}

// split appends values that the shell splits at blanks.
func split(states []build, vs [][]field) []build {
	if len(states)*len(vs) > maxVariants {
		vs = [][]field{{unknown}}
	}
	next := make([]build, 0, len(states)*max(1, len(vs)))
	for _, s := range states {
		for _, v := range vs {
			b := s.branch()
			for n, f := range v {
				if n > 0 {
					b.close()
				}
				b.split(f)
			}
			next = append(next, b)
		}
	}
	return next
}

func (b *build) split(f field) {
	text := f.text
	for text != "" {
		at := strings.IndexAny(text, " \t\n")
		piece := text
		if at >= 0 {
			piece, text = text[:at], text[at+1:]
		} else {
			text = ""
		}
		if piece != "" {
			p := field{text: piece, sure: f.sure || !holed(piece), proc: f.proc}
			p.many = !p.sure
			if p.sure && hasGlob(piece) {
				p.glob, p.pattern = true, piece
			}
			b.add(p)
		}
		if at >= 0 {
			b.close()
		}
	}
}
