// Package audit is the record of what was launched and what was refused: one
// JSON object a line, each carrying the hash of the line before it, written and
// synced before the process that it speaks of exists.
//
// A line is
//
//	{"seq":N,"prev":"HASH","version":1,"time":…,"kind":…,…,"hash":"HASH"}
//
// where hash is the SHA-256 of all the line's bytes up to `,"hash":` and prev is
// the hash of line N-1 (64 zeros for line 1). Beside the log lies audit.head,
// which holds the sequence and the hash of the last line and serves as the lock:
// what is cut from the log's end is missed there. Whoever may write both files
// can write a new chain; what a collector received (Options.Copies) cannot be
// changed so.
//
// Strings are UTF-8. A byte that is not part of valid UTF-8 is written as the
// lone surrogate \udcXX, XX being the byte (Python's "surrogateescape", PEP 383),
// so that names of any bytes survive; characters that do not print are written
// as \uXXXX, so that showing the file cannot drive a terminal.
package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// The kinds of line that a launch writes.
const (
	Launch = "launch" // the command was allowed to exist
	Block  = "block"  // it was not, for Reason
)

// Entry is one line of the log. Append fills Time, ID, UID and Pid where they are
// zero; Seq, Prev, Torn, Anchor and Hash are the chain's and only read.
type Entry struct {
	Seq    uint64 // 1 for the first line of a log
	Prev   string // Hash of the line before, in hex
	Torn   string // SHA-256 of an unfinished line that this one closed, or ""
	Anchor string // "missing" when audit.head was, although the log had lines
	Hash   string

	Time    time.Time
	Kind    string
	ID      string // the same on all lines of one launch
	Dir     string // working directory
	Project string
	Argv    []string
	Flags   []string // one-shot exceptions, as typed: "--allow-path /data:rw"
	Reason  string   // why it was refused
	Network string   // effective mode
	Backend string
	User    string
	UID     int
	Pid     int // kgate's own
}

// Options of a log. The zero value is an unmasked log without copies.
type Options struct {
	// Mask replaces secrets; it is applied to each argument and flag, to the
	// reason and to both directories before anything is written.
	Mask func(string) string
	// Copies get each line after it has been written and synced here.
	Copies []Sink
	// CopyWait bounds what all copies together may add to Append;
	// 0 is DefaultCopyWait. A copy that is not taken by then goes on beside
	// the launch and is lost if kgate ends first.
	CopyWait time.Duration
	// MaxBytes is the size above which a file is set aside as FILE.N, N counting
	// up from 1, and a new one begun; 0 is DefaultMaxBytes. Nothing is deleted.
	MaxBytes int64
	// Warn is told of copies that failed; nil ignores them.
	Warn func(error)
}

// What the zero Options stand for.
const (
	DefaultMaxBytes = 64 << 20
	DefaultCopyWait = 5 * time.Millisecond
)

// File returns the log of the person whose home directory this is.
func File(home string) string { return filepath.Join(home, ".kgate", "audit.jsonl") }

// NewID returns a random name for one launch: 16 hex digits, not a secret.
func NewID() string { return fmt.Sprintf("%016x", rand.Uint64()) }

// Log is an append-only log. It holds nothing open between calls.
type Log struct {
	file string
	opts Options
}

// Open names the log; it touches no file.
func Open(file string, o Options) *Log {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.CopyWait <= 0 {
		o.CopyWait = DefaultCopyWait
	}
	return &Log{file: file, opts: o}
}

// Append writes one line and returns when it is on the disk. After an error the
// line is not in the log (or the error says that it may be), and whatever it
// speaks of must not start. Any number of processes may append at once.
func (l *Log) Append(e Entry) error {
	l.fill(&e)
	line, err := l.append(&e)
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	l.copy(e, line)
	return nil
}

func (l *Log) fill(e *Entry) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC()
	if e.ID == "" {
		e.ID = NewID()
	}
	e.UID = os.Getuid()
	e.Pid = os.Getpid()
	mask := l.opts.Mask
	if mask == nil {
		return
	}
	e.Dir, e.Project, e.Reason = mask(e.Dir), mask(e.Project), mask(e.Reason)
	e.Argv, e.Flags = masked(e.Argv, mask), masked(e.Flags, mask)
}

func masked(words []string, mask func(string) string) []string {
	if words == nil {
		return nil
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = mask(w)
	}
	return out
}

func (l *Log) append(e *Entry) ([]byte, error) {
	s, err := openStore(l.file)
	if err != nil {
		return nil, err
	}
	defer s.close()
	t, err := s.tip()
	if err != nil {
		return nil, err
	}
	e.Seq, e.Prev = t.seq+1, t.hash
	if len(t.torn) > 0 {
		e.Torn = digest(t.torn)
	}
	if t.anchorLost {
		e.Anchor = "missing"
	}
	line := encode(e)
	if err := s.rotate(l.opts.MaxBytes, int64(len(line))+1, len(t.torn) > 0); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, len(line)+2)
	if len(t.torn) > 0 {
		buf = append(buf, '\n')
	}
	buf = append(append(buf, line...), '\n')
	err = s.write(buf)
	if err == nil {
		err = s.anchor(e.Seq, e.Hash)
	}
	if err != nil {
		if cut := s.log.Truncate(s.size); cut != nil {
			err = errors.Join(err, fmt.Errorf("take the line back: %w (kgate log verify shows what is left of it)", cut))
		}
		return nil, err
	}
	return line, nil
}

// Test hooks: the calls that a full or a broken disk makes fail, and the one
// after which the name of the log is free.
var (
	write    = (*os.File).Write
	dataSync = syncData
	dirSync  = (*os.File).Sync
	rename   = os.Rename
)

// write appends buf in one write and syncs it.
func (s *store) write(buf []byte) error {
	if _, err := write(s.log, buf); err != nil {
		return explain("append to", s.file, err)
	}
	if err := dataSync(s.log); err != nil {
		return explain("sync", s.file, err)
	}
	if s.created {
		return syncDir(filepath.Dir(s.file))
	}
	return nil
}

// anchor records the last line's place and hash in audit.head. It is rewritten
// in place and not synced: after a power loss it may be behind the log, which is
// told apart from being ahead of it.
func (s *store) anchor(seq uint64, hash string) error {
	if _, err := s.head.WriteAt(headRecord(seq, hash), 0); err != nil {
		return explain("write", s.head.Name(), err)
	}
	if s.headNew {
		if err := dataSync(s.head); err != nil {
			return explain("sync", s.head.Name(), err)
		}
		if err := syncDir(filepath.Dir(s.file)); err != nil {
			return err
		}
		s.headNew = false
	}
	return nil
}

func headRecord(seq uint64, hash string) []byte {
	text := strconv.FormatUint(seq, 10)
	b := make([]byte, 0, headSize)
	for range headSize - 2 - len(hash) - len(text) {
		b = append(b, '0')
	}
	b = append(b, text...)
	b = append(b, ' ')
	b = append(b, hash...)
	return append(b, '\n')
}
