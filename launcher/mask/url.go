package mask

// evalURL recognises the "://" that comes before a URL's authority, and the
// "\/" spelling of JSON. The scheme before it has been checked.
func evalURL(b []byte, i int) result {
	j := i + 1
	for k := 0; k < 2; k++ {
		if j < len(b) && b[j] == '\\' {
			j++
		}
		if j >= len(b) {
			return result{verdict: need, public: j - i}
		}
		if b[j] != '/' {
			return result{}
		}
		j++
	}
	return result{verdict: yes, n: j - i, public: j - i}
}

// mayHavePassword says whether the authority of a URL that starts at b[i] may
// have a password in it. Most are seen to end without an at sign.
func mayHavePassword(t *[256]class, b []byte, i int) bool {
	for j := i; j < len(b) && j-i < maxPassword; j++ {
		if t[b[j]]&cPass == 0 {
			return b[j] == '@'
		}
	}
	return true
}

// password looks at the colon at b[i] that follows a URL's user: a password
// follows if an at sign comes before the end of the authority. The length in
// the result counts from the colon.
func (w *Writer) password(b []byte, i int, final bool) result {
	public := 1
	digits := true
	for j := i + 1; j < len(b); j++ {
		switch c := b[j]; {
		case c == '@' && j > i+1, j-i > maxPassword:
			return result{verdict: yes, n: j - i}
		case w.r.class[c]&cPass == 0:
			return result{}
		case digits && c >= '0' && c <= '9' && j-i <= 5:
			public++ // a port, as it is typed
		default:
			digits = false
		}
	}
	if final {
		return result{}
	}
	return result{verdict: need, public: public}
}

// runHost goes on after a password, at its at sign, or within it when it was
// too long to hold. A further at sign before the end of the authority shows
// that the password went on to there.
func (w *Writer) runHost(b []byte, i int, final bool) (int, bool) {
	for j := i; j < len(b); j++ {
		c := b[j]
		switch {
		case c == '@':
			i, w.long = j, false
		case w.r.class[c]&cPass == 0:
			if !w.long {
				w.text(b, i, j)
			}
			w.mode = inText
			return j, false
		case !w.long && j-i > maxHost:
			w.long = true
		}
	}
	switch {
	case w.long:
		return len(b), false
	case final:
		w.text(b, i, len(b))
		return len(b), false
	}
	return i, true
}
