package audit

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// Position is a place between two lines of a log; the zero Position is before
// the first.
type Position struct {
	info   os.FileInfo // of the file, which keeps its identity when it is set aside
	offset int64
}

// poll is how often Follow looks for new lines.
var poll = 200 * time.Millisecond

// Follow calls f with each line after the position, and then with each new line,
// through rotations, until the context ends (it returns nil then) or f fails. An
// unfinished line is not a line until its end is written. A log that does not
// exist is waited for.
func Follow(ctx context.Context, file string, from Position, f func(Line) error) error {
	w := &follower{file: file, emit: f, info: from.info, offset: from.offset}
	defer w.close()
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if err := w.step(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

type follower struct {
	file   string
	emit   func(Line) error
	f      *os.File
	info   os.FileInfo
	offset int64
}

func (w *follower) close() {
	if w.f != nil {
		w.f.Close()
	}
}

// step reads everything there is, through as many files as there are.
func (w *follower) step() error {
	for {
		if w.f != nil {
			// Looked at before reading: what is set aside gets no more lines, so
			// that one more read sees its end.
			now, err := os.Lstat(w.file)
			current := err == nil && os.SameFile(now, w.info)
			if err := w.drain(); err != nil || current {
				return err
			}
		}
		more, err := w.advance()
		if err != nil || !more {
			return err
		}
	}
}

// drain passes on the whole lines after the offset.
func (w *follower) drain() error {
	info, err := w.f.Stat()
	if err != nil {
		return explain("look at", w.f.Name(), err)
	}
	// A line whose sync failed is taken back: the file may be shorter now.
	w.offset = min(w.offset, info.Size())
	if w.offset == info.Size() {
		return nil
	}
	r := newReader(io.NewSectionReader(w.f, w.offset, info.Size()-w.offset), w.f.Name())
	for {
		line, err := r.next()
		if err == io.EOF || (err == nil && !line.Whole) {
			return nil
		}
		if err != nil {
			return err
		}
		w.offset += int64(len(line.Raw)) + 1
		line.Number = 0
		line.decode()
		if err := w.emit(line); err != nil {
			return err
		}
	}
}

// advance goes to the file after the present one, and says whether there is one.
func (w *follower) advance() (bool, error) {
	s, err := look(w.file)
	if err != nil {
		return false, fmt.Errorf("follow the audit log: %w", err)
	}
	defer s.close()
	next, found := 0, false
	infos := make([]os.FileInfo, len(s.parts))
	for i, p := range s.parts {
		if infos[i], err = p.f.Stat(); err != nil {
			return false, explain("look at", p.f.Name(), err)
		}
		if w.info != nil && os.SameFile(infos[i], w.info) {
			next, found = i, true
		}
	}
	offset := int64(0)
	switch {
	case found && w.f != nil:
		next++
	case found: // where Follow begins
		offset = w.offset
	case w.info != nil: // it is gone: what stands at the name is new
		next = max(0, len(s.parts)-1)
	}
	if next >= len(s.parts) {
		return false, nil
	}
	w.close()
	w.f, w.info, w.offset = s.parts[next].f, infos[next], offset
	s.parts[next].f = nil
	return true, nil
}
