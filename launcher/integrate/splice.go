package integrate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Splice is a change of one stretch of a text: Old, at At, becomes New.
type Splice struct {
	At  int    `json:"at"`
	Old string `json:"old"`
	New string `json:"new"`
}

func (s Splice) apply(data []byte) []byte {
	out := make([]byte, 0, len(data)+len(s.New))
	out = append(out, data[:s.At]...)
	out = append(out, s.New...)
	return append(out, data[s.At+len(s.Old):]...)
}

// undo takes the change out of a text that others have changed as well.
func (s Splice) undo(data []byte) ([]byte, error) {
	if s.New == "" || bytes.Count(data, []byte(s.New)) != 1 {
		return nil, errors.New("what was put in cannot be told from the rest any more")
	}
	return bytes.Replace(data, []byte(s.New), []byte(s.Old), 1), nil
}

// Diff shows an edit line by line, with a little of what is around.
func (e Edit) Diff() string {
	a, b := lines(e.Before), lines(e.After)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out strings.Builder
	name := func(data []byte) string {
		if data == nil {
			return "/dev/null"
		}
		return e.File
	}
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", name(e.Before), name(e.After))
	from, to := max(0, head-3), min(3, tail)
	fmt.Fprintf(&out, "@@ -%s +%s @@\n", stretch(from, len(a)-tail+to, len(a)), stretch(from, len(b)-tail+to, len(b)))
	show := func(mark string, list []string) {
		for _, l := range list {
			out.WriteString(mark + l)
			if !strings.HasSuffix(l, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	show(" ", a[from:head])
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	show(" ", a[len(a)-tail:len(a)-tail+to])
	return out.String()
}

// stretch is a range of lines as diff writes it.
func stretch(from, to, all int) string {
	if all == 0 {
		return "0,0"
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(data []byte) []string {
	list := strings.SplitAfter(string(data), "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}
