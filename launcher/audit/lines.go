package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"
)

// Line is one line as it stands in a file.
type Line struct {
	File   string
	Number int    // 1-based; 0 when the file was read from its end
	Raw    []byte // without the line end
	Whole  bool   // a line end follows
	Entry  Entry
	Err    error // why Raw is not an entry; Entry is zero then
}

func (l *Line) decode() {
	l.Entry, l.Err = Decode(l.Raw)
	if l.Err == nil && !l.Whole {
		l.Entry, l.Err = Entry{}, errors.New("the line is not finished")
	}
}

// snapshot is the log's files as they were at one moment between two writers.
type snapshot struct {
	parts []part
	head  link
	// headErr says why head is not known.
	headErr error
}

type part struct {
	f    *os.File
	size int64
}

func (s *snapshot) close() {
	for _, p := range s.parts {
		if p.f != nil {
			p.f.Close()
		}
	}
}

// look takes a snapshot, under the shared lock where there is one to take.
// A log that does not exist has no parts.
func look(file string) (*snapshot, error) {
	s := &snapshot{}
	head, _, err := openOwn(headFile(file), os.O_RDONLY)
	switch {
	case errors.Is(err, os.ErrNotExist):
		s.headErr = errors.New("it does not exist")
	case err != nil:
		return nil, err
	default:
		defer head.Close()
		if err := lock(head, syscall.LOCK_SH); err != nil {
			return nil, err
		}
		s.head, s.headErr = readHead(head)
	}
	type ordered struct {
		part
		first uint64
	}
	var parts []ordered
	for _, name := range append(rotated(file), file) {
		f, info, err := openOwn(name, os.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, p := range parts {
				p.f.Close()
			}
			return nil, err
		}
		parts = append(parts, ordered{part{f, info.Size()}, firstSeq(f, info.Size())})
	}
	// By what is in them, so that files that another tool has renumbered are
	// still read in order; one without a valid first line stays where it is.
	for i := range parts {
		if parts[i].first == 0 && i > 0 {
			parts[i].first = parts[i-1].first
		}
	}
	slices.SortStableFunc(parts, func(a, b ordered) int {
		if a.first < b.first {
			return -1
		} else if a.first > b.first {
			return 1
		}
		return 0
	})
	for _, p := range parts {
		s.parts = append(s.parts, p.part)
	}
	return s, nil
}

func firstSeq(f *os.File, size int64) uint64 {
	r := newReader(io.NewSectionReader(f, 0, size), f.Name())
	for range 16 {
		line, err := r.next()
		if err != nil {
			return 0
		}
		if k, err := parseLink(line.Raw); err == nil {
			return k.seq
		}
	}
	return 0
}

// reader reads the lines of one file up to a size.
type reader struct {
	file   string
	b      *bufio.Reader
	number int
}

func newReader(src io.Reader, name string) *reader {
	return &reader{file: name, b: bufio.NewReaderSize(src, 64<<10)}
}

// next returns the next line or io.EOF. A line longer than maxLine is cut to it.
func (r *reader) next() (Line, error) {
	var raw []byte
	for {
		chunk, err := r.b.ReadSlice('\n')
		raw = append(raw, chunk[:min(len(chunk), max(0, maxLine-len(raw)))]...)
		if n := len(chunk); n > 0 && chunk[n-1] == '\n' && len(raw) > 0 && raw[len(raw)-1] != '\n' {
			raw = append(raw, '\n')
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(raw) == 0:
			return Line{}, io.EOF
		case err != nil && err != io.EOF:
			return Line{}, explain("read", r.file, err)
		}
		r.number++
		line := Line{File: r.file, Number: r.number, Raw: raw}
		if n := len(raw); raw[n-1] == '\n' {
			line.Raw, line.Whole = raw[:n-1], true
		}
		return line, nil
	}
}

// Read calls f with each line of the log, oldest first, over all its files, as
// they were when Read began. It ends with f's error when that is not nil. A log
// that does not exist has no lines.
func Read(file string, f func(Line) error) error {
	s, err := look(file)
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	defer s.close()
	for _, p := range s.parts {
		r := newReader(io.NewSectionReader(p.f, 0, p.size), p.f.Name())
		for {
			line, err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			line.decode()
			if err := f(line); err != nil {
				return err
			}
		}
	}
	return nil
}
