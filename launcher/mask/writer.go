package mask

import "io"

// mode is what the writer is in the middle of.
type mode uint8

const (
	inText  mode = iota
	inToken      // dropping up to the token's break
	inHost       // after a URL's password
	inBlock      // within a private key block
)

const (
	step    = 256      // how much is added to held text at a time
	maxOut  = 32 << 10 // of output gathered before it is written
	gather  = 2 << 10  // text at least this long is written without a copy
	lookout = 64       // bytes of the past that are kept for boundaries; over maxEscape
)

// Writer masks what is written to it. It is not safe for use by several
// goroutines at once.
type Writer struct {
	r   *Rules
	w   io.Writer
	err error

	mode      mode
	authority bool  // in the user part of a URL, where a colon starts a password
	userFrom  int64 // position in the stream where that part starts

	tail class // inToken: what is dropped
	left int   // inToken: how much of it at most; -1: all
	long bool  // inHost: the password's end is still to come

	block block

	held  []byte // text that is not decided, from the start of a candidate on
	shown int    // how much of it Release has shown
	asked bool   // Release has been called since the last Write
	past  [lookout]byte
	off   int64 // position in the stream of the text being looked at

	found            [64]uint32 // what the vector unit found in the text being run through
	lookFrom, lookTo int        // where in it

	jwtFrom, jwtTo int64 // positions between which all is known to fit a JWT's header

	out []byte
}

// Writer returns a filter that writes to w what may be shown of what is
// written to it. Text without a secret is passed on in the same call, as the
// caller's own slice when it is long.
func (r *Rules) Writer(w io.Writer) *Writer {
	return &Writer{r: r, w: w, left: -1}
}

// Write masks p. It returns len(p) and the error of the writer behind, which
// every later call returns too.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	w.asked = false
	for len(p) > 0 && w.err == nil {
		if len(w.held) == 0 {
			k := w.run(p, false)
			w.forget(p, k)
			w.held = append(w.held, p[k:]...)
			break
		}
		k := min(len(p), step)
		w.held = append(w.held, p[:k]...)
		p = p[k:]
		w.advance(false)
	}
	return n, w.flush()
}

// advance decides what it can of the held text.
func (w *Writer) advance(final bool) {
	k := w.run(w.held, final)
	w.forget(w.held, k)
	w.held = w.held[:copy(w.held, w.held[k:])]
	w.shown = max(0, w.shown-k)
}

// Held says whether text has begun to wait for more: it may be the start of a
// secret. A caller that sees nothing more to read for a moment calls Release,
// once: what that does not show waits for the next Write or for Close.
func (w *Writer) Held() bool { return len(w.held) > w.shown && !w.asked }

// Release shows as much of the held text as is no secret whatever comes next:
// a kind's public prefix, so that a prompt that ends in "sk" appears. What is
// shown stays part of the candidate: when the rest comes, the rest is masked
// ("sk-" and then "[masked: …]"). The secret part itself is never shown early,
// but for a quarter of what a kind needs at least (at most five characters,
// one or two of a person's value) and a port number's worth of digits after a
// URL's host, so that what is typed at a prompt appears as it is typed.
// Text after an unterminated private key that does not look like a key's line
// ends the block.
func (w *Writer) Release() error {
	if w.err != nil || !w.Held() {
		return w.err
	}
	w.asked = true
	if w.mode == inBlock && w.block.foreign(w.held, &w.r.class) {
		w.mode = inText
		w.advance(false)
	}
	if len(w.held) > 0 {
		if n := w.public(); n > w.shown {
			w.emit(w.held[w.shown:n])
			w.shown = n
		}
	}
	return w.flush()
}

// public returns how much of the held text may be shown.
func (w *Writer) public() int {
	switch w.mode {
	case inToken: // a colour sequence that is not complete
		return len(w.held)
	case inHost:
		return 1
	case inBlock:
		return 0
	}
	n := len(w.held)
	for i := 0; i < n; i++ {
		if i == 0 && w.authority && w.held[0] == ':' {
			n = min(n, w.password(w.held, 0, false).public)
			continue
		}
		if res := w.choose(w.held, i, false); res.verdict == need {
			n = min(n, i+res.public)
		}
	}
	return n
}

// Close writes what is held and ends the stream. It does not close the writer
// behind.
func (w *Writer) Close() error {
	if w.err == nil && len(w.held) > 0 {
		w.advance(true)
	}
	return w.flush()
}

// forget notes that the first n bytes of b are behind.
func (w *Writer) forget(b []byte, n int) {
	w.off += int64(n)
	if n >= lookout {
		copy(w.past[:], b[n-lookout:n])
		return
	}
	copy(w.past[:], w.past[n:])
	copy(w.past[lookout-n:], b[:n])
}

// emit passes text on.
func (w *Writer) emit(b []byte) {
	if len(b) >= gather {
		w.flush()
		if w.err == nil {
			_, w.err = w.w.Write(b)
		}
		return
	}
	w.out = append(w.out, b...)
	if len(w.out) >= maxOut {
		w.flush()
	}
}

// text passes on b[i:j], less what has been shown of it.
func (w *Writer) text(b []byte, i, j int) {
	if i = max(i, w.shown); i < j {
		w.emit(b[i:j])
	}
}

func (w *Writer) flush() error {
	if len(w.out) > 0 && w.err == nil {
		_, w.err = w.w.Write(w.out)
	}
	w.out = w.out[:0]
	return w.err
}

// mask writes the replacement of b[i:j], and the colour sequences within it.
func (w *Writer) mask(name string, b []byte, i, j int) {
	w.out = append(w.out, "[masked: "...)
	w.out = append(w.out, name...)
	w.out = append(w.out, ']')
	for ; i < j; i++ {
		if b[i] == 0x1b {
			if n, v := escape(b, i); v == yes {
				w.text(b, i, i+n)
				i += n - 1
			}
		}
	}
}

// run decides b from its start and returns how many bytes of it are decided;
// the rest waits for more. With final, nothing more comes.
func (w *Writer) run(b []byte, final bool) int {
	i := 0
	w.lookTo = 0
	for i < len(b) {
		var wait bool
		switch w.mode {
		case inText:
			i, wait = w.runText(b, i, final)
		case inToken:
			i, wait = w.runToken(b, i, final)
		case inHost:
			i, wait = w.runHost(b, i, final)
		case inBlock:
			i, wait = w.runBlock(b, i, final)
		}
		if wait {
			break
		}
	}
	return i
}

// runText passes text on up to the next secret.
func (w *Writer) runText(b []byte, start int, final bool) (int, bool) {
	i := start
	for {
		limit := len(b)
		if w.authority {
			for limit = max(i, int(w.userFrom-w.off)); limit < len(b) && w.r.class[b[limit]]&cUser != 0; limit++ {
			}
		}
		i = w.next(b, i, limit)
		if i == limit {
			if i == len(b) {
				w.text(b, start, i)
				return i, false
			}
			// The end of a URL's user part.
			var res result
			if b[i] == ':' {
				res = w.password(b, i, final)
			}
			switch res.verdict {
			case need:
				w.text(b, start, i)
				return i, true
			case yes:
				w.text(b, start, i+1)
				w.mask("url-password", b, i+1, i+res.n)
				w.authority = false
				w.mode, w.long = inHost, res.n > maxPassword
				return i + res.n, false
			}
			w.authority = false
			continue
		}
		res := w.choose(b, i, final)
		switch res.verdict {
		case need:
			w.text(b, start, i)
			return i, true
		case no:
			i++
		case yes:
			if res.p == nil {
				if mayHavePassword(&w.r.class, b, i+res.n) {
					w.authority, w.userFrom = true, w.off+int64(i+res.n)
				}
				i++
				continue
			}
			w.text(b, start, i)
			w.mask(res.p.name, b, i, i+res.n)
			w.authority = w.authority && mayHavePassword(&w.r.class, b[:i+res.n], i)
			switch {
			case res.p.form == formPEM:
				w.mode, w.block = inBlock, block{}
			case res.tail != 0:
				w.mode, w.tail, w.left = inToken, res.tail, res.left
			}
			return i + res.n, false
		}
	}
}

// runToken drops the rest of a token. Colour sequences pass.
func (w *Writer) runToken(b []byte, i int, final bool) (int, bool) {
	for i < len(b) {
		if k := w.r.class[b[i]]; k&w.tail != 0 && w.left != 0 {
			if k&cPass == 0 {
				w.authority = false
			}
			i++
			if w.left > 0 {
				w.left--
			}
			continue
		}
		if b[i] == 0x1b && w.left < 0 {
			n, v := escape(b, i)
			if v == need && !final {
				return i, true
			}
			if v == yes {
				w.text(b, i, i+n)
				w.authority = false
				i += n
				continue
			}
		}
		w.mode = inText
		break
	}
	return i, false
}
