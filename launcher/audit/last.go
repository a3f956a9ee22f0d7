package audit

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
)

// Last returns the last n lines (n < 0: all) that keep accepts, oldest first,
// reading the log from its end, and the position after its last line, from which
// Follow goes on.
func Last(file string, n int, keep func(Line) bool) ([]Line, Position, error) {
	s, err := look(file)
	if err != nil {
		return nil, Position{}, fmt.Errorf("read the audit log: %w", err)
	}
	defer s.close()
	var lines []Line
	pos := Position{}
	for i := len(s.parts) - 1; i >= 0; i-- {
		p := s.parts[i]
		b := &backward{f: p.f, start: p.size, end: -1}
		for n < 0 || len(lines) < n || pos.info == nil {
			line, err := b.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, Position{}, fmt.Errorf("read the audit log: %w", err)
			}
			if pos.info == nil {
				pos.offset = p.size
				if !line.Whole {
					pos.offset -= int64(len(line.Raw))
				}
				if pos.info, err = p.f.Stat(); err != nil {
					return nil, Position{}, explain("look at", p.f.Name(), err)
				}
			}
			if !line.Whole {
				continue
			}
			line.decode()
			if (n < 0 || len(lines) < n) && keep(line) {
				lines = append(lines, line)
			}
		}
	}
	slices.Reverse(lines)
	return lines, pos, nil
}

// backward reads the lines of one file from its end.
type backward struct {
	f     *os.File
	start int64  // of buf in the file
	buf   []byte // what has been read and not returned
	end   int    // of the lines in buf not yet returned; -1 before the first
}

func (b *backward) next() (Line, error) {
	if b.end < 0 {
		b.end = 0
		// An unfinished line, or the nothing after the last line end.
		line, err := b.take(false)
		if err != nil || len(line.Raw) > 0 {
			return line, err
		}
	}
	if b.start == 0 && b.end <= 0 {
		return Line{}, io.EOF
	}
	b.end-- // the line end
	return b.take(true)
}

// take returns what lies between the line end before b.end and b.end.
func (b *backward) take(whole bool) (Line, error) {
	for {
		begin := bytes.LastIndexByte(b.buf[:b.end], '\n')
		if begin < 0 && b.start > 0 {
			if err := b.grow(); err != nil {
				return Line{}, err
			}
			continue
		}
		line := Line{File: b.f.Name(), Raw: b.buf[begin+1 : b.end], Whole: whole}
		b.end = begin + 1
		return line, nil
	}
}

// grow puts what lies before b.buf in the file in front of it.
func (b *backward) grow() error {
	n := min(b.start, max(64<<10, int64(b.end)))
	if b.end > maxLine {
		return fmt.Errorf("%q has a line of more than %d MiB: it is not kgate's", b.f.Name(), maxLine>>20)
	}
	buf := make([]byte, int(n)+b.end)
	if _, err := b.f.ReadAt(buf[:n], b.start-n); err != nil && err != io.EOF {
		return explain("read", b.f.Name(), err)
	}
	copy(buf[n:], b.buf[:b.end])
	b.buf, b.start, b.end = buf, b.start-n, len(buf)
	return nil
}
