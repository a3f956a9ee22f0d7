package mask

// verdict is what is known of a pattern at a position.
type verdict uint8

const (
	no   verdict = iota
	need         // the text so far fits, more is needed to tell
	yes
)

// The bounds of what is held while more is needed.
const (
	maxEscape   = 32   // of a colour sequence
	maxEscapes  = 4    // colour sequences one after the other
	maxHeader   = 8192 // of a JWT's header
	maxLabel    = 40   // of a PEM label
	maxPassword = 256  // of a URL's password; beyond, it is masked unseen
	maxHost     = 300  // of what follows a password's at sign
)

// escape looks at a colour sequence that starts at b[i], which is ESC. It
// returns its length when it is complete.
func escape(b []byte, i int) (int, verdict) {
	for j := i + 1; j < len(b); j++ {
		c := b[j]
		switch {
		case j == i+1:
			if c != '[' {
				return 0, no
			}
		case c >= '0' && c <= '9' || c == ';' || c == ':':
			if j-i > maxEscape {
				return 0, no
			}
		case c == 'm' || c == 'K':
			return j - i + 1, yes
		default:
			return 0, no
		}
	}
	return 0, need
}

// skip returns the index of the first byte at or after i that is not part of a
// colour sequence. need: the text ends before one.
func skip(b []byte, i int) (int, verdict) {
	for k := 0; k < maxEscapes && i < len(b) && b[i] == 0x1b; k++ {
		n, v := escape(b, i)
		if v == need {
			return i, need
		}
		if v == no {
			return i, yes
		}
		i += n
	}
	if i == len(b) {
		return i, need
	}
	return i, yes
}

// result is what a pattern, or all of them together, say of one position.
type result struct {
	verdict
	n      int // bytes of text that belong to it, when yes
	public int // bytes of text that may be shown although the verdict is open
	p      *pattern
	tail   class
	left   int // bytes of tail to drop; -1: all
}

// eval compares p with the text at b[i]. The word boundary has been checked.
func (w *Writer) eval(p *pattern, b []byte, i int) result {
	switch p.form {
	case formURL:
		return evalURL(b, i)
	case formPEM:
		return w.evalPEM(p, b, i)
	case formRaw, formPercent, formBase64:
		return w.evalValue(p, b, i)
	}
	j := i
	for k := 0; k < len(p.lit); k++ {
		var v verdict
		if j, v = skip(b, j); v == need {
			return result{verdict: need, public: j - i}
		}
		if b[j] != p.lit[k] {
			return result{}
		}
		j++
	}
	if p.form == formJWT {
		return w.evalJWT(p, b, i, j)
	}
	// A quarter of the least body, and at most five characters, may be shown
	// while more is awaited: what is typed at a prompt appears as it is typed.
	show := min(p.min/4, 5)
	public := j - i
	for k := 0; k < p.min; k++ {
		var v verdict
		if j, v = skip(b, j); v == need {
			return result{verdict: need, public: public}
		}
		if w.r.class[b[j]]&p.body == 0 {
			return result{}
		}
		j++
		if k < show {
			public = j - i
		}
	}
	return result{verdict: yes, n: j - i, public: public, p: p, tail: p.tail, left: -1}
}

// evalJWT goes on after the letters eyJ at b[i:j]: a header, a dot, and a
// payload that also starts like a JSON object (RFC 7519, RFC 7515 section 7.1).
func (w *Writer) evalJWT(p *pattern, b []byte, i, j int) result {
	open := result{verdict: need, public: j - i}
	// A run of a header's characters that an earlier look has been through is
	// not looked at again: many candidates in one run, or many small writes,
	// would make it quadratic.
	at := w.off + int64(j)
	if at >= w.jwtFrom && at < w.jwtTo && int(w.jwtTo-w.off) <= len(b) {
		j = int(w.jwtTo - w.off)
	} else {
		w.jwtFrom = at
	}
	for {
		var v verdict
		if j, v = skip(b, j); v == need {
			w.jwtTo = w.off + int64(j)
			return open
		}
		if w.r.class[b[j]]&cWord == 0 || j-i > maxHeader {
			break
		}
		j++
	}
	w.jwtTo = w.off + int64(j)
	if j-i > maxHeader {
		return result{}
	}
	if b[j] != '.' || j-i < p.min {
		return result{}
	}
	for k := 0; k < len(".eyJ")+4; k++ {
		var v verdict
		if j, v = skip(b, j); v == need {
			return open
		}
		if k < len(".eyJ") && b[j] != ".eyJ"[k] || k >= len(".eyJ") && w.r.class[b[j]]&cWord == 0 {
			return result{}
		}
		j++
	}
	return result{verdict: yes, n: j - i, public: open.public, p: p, tail: p.tail, left: -1}
}

// evalPEM recognises the line that begins a private key (RFC 7468; RFC 9580
// section 6.2 for OpenPGP).
func (w *Writer) evalPEM(p *pattern, b []byte, i int) result {
	n, v := marker(&w.r.class, b[i:], p.lit)
	if v != yes {
		return result{verdict: v, public: len(b) - i}
	}
	label := b[i+len(p.lit) : i+n-len("-----")]
	for _, end := range []string{"PRIVATE KEY", "PRIVATE KEY BLOCK"} {
		if len(label) >= len(end) && string(label[len(label)-len(end):]) == end {
			return result{verdict: yes, n: n, public: n, p: p}
		}
	}
	return result{}
}

// marker recognises start, a label and five dashes, and returns their length.
func marker(t *[256]class, b []byte, start string) (int, verdict) {
	for k := 0; k < len(start); k++ {
		if k == len(b) {
			return 0, need
		}
		if b[k] != start[k] {
			return 0, no
		}
	}
	j := len(start)
	for ; j < len(b) && t[b[j]]&cLabel != 0; j++ {
		if j-len(start) > maxLabel {
			return 0, no
		}
	}
	for k := 0; k < len("-----"); k, j = k+1, j+1 {
		if j == len(b) {
			return 0, need
		}
		if b[j] != '-' {
			return 0, no
		}
	}
	return j, yes
}

// evalValue compares a value of the person's with the text.
func (w *Writer) evalValue(p *pattern, b []byte, i int) result {
	public := 1
	if len(p.lit) >= 16 {
		public = 2
	}
	j := i
	for k := 0; k < len(p.lit); k++ {
		var v verdict
		if j, v = skip(b, j); v == need {
			return result{verdict: need, public: min(public, j-i)}
		}
		c := p.lit[k]
		switch {
		case p.form == formPercent && b[j] == '%':
			if j+3 > len(b) {
				return result{verdict: need, public: min(public, j-i)}
			}
			if unhex(b[j+1])<<4|unhex(b[j+2]) != int(c) {
				return result{}
			}
			j += 2
		case p.form == formPercent && c == ' ' && b[j] == '+':
		case p.form == formRaw && c == '\n' && b[j] == '\r',
			p.form == formBase64 && k > 0 && (b[j] == '\r' || b[j] == '\n'):
			// A terminal prints a line feed as two characters, and encoders
			// wrap their lines.
			if b[j] == '\r' {
				j++
			}
			if j == len(b) {
				return result{verdict: need, public: min(public, j-i)}
			}
			if b[j] != '\n' {
				return result{}
			}
			if p.form == formBase64 {
				j++
				if j == len(b) {
					return result{verdict: need, public: min(public, j-i)}
				}
				if b[j] != c {
					return result{}
				}
			}
		case b[j] != c:
			return result{}
		}
		j++
	}
	return result{verdict: yes, n: j - i, public: public, p: p, tail: p.tail, left: p.left}
}

// unhex returns the value of a hexadecimal digit, or a number that no byte has.
func unhex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return 1 << 12
}

// choose asks every pattern about b[i]: the one with the longest literal
// names the secret, and what is replaced is the longest of them all.
func (w *Writer) choose(b []byte, i int, final bool) result {
	var best result
	bounded, known := false, false
	open, public := false, len(b)-i
	second := byte(0x1b)
	if i+1 < len(b) {
		second = b[i+1]
	}
	for _, p := range w.r.byFirst[b[i]] {
		switch {
		case p.second != 0 && p.second != second && second != 0x1b:
			continue
		case p.bounded():
			if !known {
				bounded, known = w.boundary(b, i), true
			}
			if !bounded {
				continue
			}
		case p.form == formURL:
			if !alnum(w.before(b, i, 1)) {
				continue
			}
		}
		res := w.eval(p, b, i)
		switch res.verdict {
		case need:
			if !final {
				open = true
				public = min(public, res.public)
			}
		case yes:
			if p.form == formPEM || p.form == formURL {
				// Nothing that starts in the same place reaches further.
				return res
			}
			public = min(public, res.public)
			if best.verdict == no {
				best = res
				break
			}
			best.n = max(best.n, res.n)
			if res.left < 0 && best.left >= 0 {
				best.tail, best.left = res.tail, res.left
			}
		}
	}
	if open {
		return result{verdict: need, public: public}
	}
	return best
}

// before returns the k-th byte before b[i] in the stream, 0 at its start.
func (w *Writer) before(b []byte, i, k int) byte {
	if i >= k {
		return b[i-k]
	}
	return w.past[(len(w.past)+i-k)%len(w.past)]
}

// boundary says whether a word can start at b[i]: no letter or digit stands
// before it, unless that one belongs to an escape: a colour sequence, \n within
// a JSON string, %3D within a URL.
func (w *Writer) boundary(b []byte, i int) bool {
	c := w.before(b, i, 1)
	if !alnum(c) {
		return true
	}
	switch c {
	case 'n', 't', 'r', 'b', 'f':
		if w.before(b, i, 2) == '\\' {
			return true
		}
	case 'm', 'K':
		for k := 2; k < maxEscape; k++ {
			d := w.before(b, i, k)
			if d == '[' {
				return true
			}
			if (d < '0' || d > '9') && d != ';' && d != ':' {
				break
			}
		}
	}
	if unhex(c) < 16 {
		if w.before(b, i, 3) == '%' && unhex(w.before(b, i, 2)) < 16 {
			return true
		}
		if w.before(b, i, 6) == '\\' && w.before(b, i, 5) == 'u' {
			return true
		}
		if w.before(b, i, 4) == '\\' && w.before(b, i, 3) == 'x' {
			return true
		}
	}
	return false
}
