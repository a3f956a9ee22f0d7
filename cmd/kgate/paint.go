package main

import (
	"io"
	"os"

	"github.com/kgate-dev/kgate/backends"
)

// paint colours words, or leaves them as they are.
type paint bool

// The colours, as a terminal's own palette has them.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
)

// paintFor says whether w takes colours: a terminal that knows them, unless the
// person wants none (NO_COLOR with any text in it; see no-color.org).
func paintFor(w io.Writer) paint {
	return paint(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w))
}

// in returns the word in a colour. It is padded before, so that columns stay.
func (p paint) in(colour, word string) string {
	if !p || colour == "" {
		return word
	}
	return "\x1b[" + colour + "m" + word + "\x1b[0m"
}

// ofStatus is the colour of a row of doctor.
func ofStatus(s backends.Status) string {
	switch s {
	case backends.Ready:
		return green
	case backends.Degraded:
		return yellow
	case backends.Blocked:
		return red
	}
	return ""
}
