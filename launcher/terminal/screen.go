package terminal

import (
	"bytes"
	"slices"
	"strconv"
)

// screen notes which private modes of the person's terminal a command has
// switched on, so that they can be switched off when it is killed: the
// alternate screen, a hidden cursor, mouse reports, bracketed paste (ECMA-48
// 8.3.125 and 8.3.106; the modes are xterm's, "XTerm Control Sequences").
type screen struct {
	state  uint8 // how far into ESC [ ? the text is
	number int
	params []int
	on     []int // in the order in which they were switched on
	keypad bool
}

// noted are the modes that leave a terminal unusable. 25 is the cursor, which
// is on by itself.
var noted = [...]int{1, 9, 25, 47, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1047, 1049, 2004}

const (
	plain uint8 = iota
	escape
	bracket
	private
)

// see reads a piece of output.
func (s *screen) see(b []byte) {
	for len(b) > 0 {
		if s.state == plain {
			i := bytes.IndexByte(b, 0x1b)
			if i < 0 {
				return
			}
			b = b[i+1:]
			s.state = escape
			continue
		}
		c := b[0]
		b = b[1:]
		switch {
		case c == 0x1b:
			s.state = escape
		case s.state == escape && c == '[':
			s.state = bracket
		case s.state == escape:
			switch c {
			case '=':
				s.keypad = true
			case '>':
				s.keypad = false
			case 'c': // full reset
				s.on, s.keypad = s.on[:0], false
			}
			s.state = plain
		case s.state == bracket && c == '?':
			s.state, s.number, s.params = private, 0, s.params[:0]
		case s.state == private && c >= '0' && c <= '9' && s.number < 1<<16:
			s.number = s.number*10 + int(c-'0')
		case s.state == private && c == ';' && len(s.params) < 16:
			s.params = append(s.params, s.number)
			s.number = 0
		case s.state == private && (c == 'h' || c == 'l'):
			for _, n := range append(s.params, s.number) {
				s.set(n, (c == 'h') != (n == 25))
			}
			s.state = plain
		default:
			s.state = plain
		}
	}
}

// set notes that mode n differs, or no longer differs, from how a terminal is.
func (s *screen) set(n int, differs bool) {
	i := slices.Index(s.on, n)
	switch {
	case differs && i < 0 && slices.Contains(noted[:], n):
		s.on = append(s.on, n)
	case !differs && i >= 0:
		s.on = slices.Delete(s.on, i, i+1)
	}
}

// undo returns what switches the noted modes back, the last first.
func (s *screen) undo() string {
	var out string
	for _, n := range slices.Backward(s.on) {
		if n == 25 {
			out += "\x1b[?25h"
		} else {
			out += "\x1b[?" + strconv.Itoa(n) + "l"
		}
	}
	if s.keypad {
		out += "\x1b>"
	}
	if out != "" {
		out += "\x1b[m"
	}
	return out
}
