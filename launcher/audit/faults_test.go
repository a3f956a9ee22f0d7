package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEverySyncCounts: whichever of the syncs that a first line needs fails, the
// line is not written, so that what it speaks of does not start.
func TestEverySyncCounts(t *testing.T) {
	defer func() { dataSync, dirSync = syncData, (*os.File).Sync }()
	said := map[string]int{}
	for fails := 1; ; fails++ {
		file := filepath.Join(t.TempDir(), ".kgate", "audit.jsonl")
		n, failed := 0, ""
		counted := func(f *os.File, real func(*os.File) error) error {
			if n++; n == fails {
				failed = f.Name()
				return syscall.EIO
			}
			return real(f)
		}
		dataSync = func(f *os.File) error { return counted(f, syncData) }
		dirSync = func(f *os.File) error { return counted(f, (*os.File).Sync) }
		err := Open(file, Options{}).Append(launch("x"))
		dataSync, dirSync = syncData, (*os.File).Sync
		if failed == "" {
			if err != nil {
				t.Errorf("with no sync failing: %v", err)
			}
			break
		}
		said[filepath.Base(failed)]++
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), failed) || !strings.Contains(err.Error(), "the disk fails") {
			t.Errorf("sync %d, of %q, fails: error %v", fails, failed, err)
		}
		whole(t, file, 0)
		appendN(t, file, 1, Options{})
		whole(t, file, 1)
	}
	// The directory above, the anchor and its entry, the line and its entry.
	if said["audit.head"] != 1 || said["audit.jsonl"] != 1 || said[".kgate"] != 2 || len(said) != 4 {
		t.Errorf("synced: %v", said)
	}
}

// TestNameTakenWhileRotating: something that is put where the log was, between
// setting it aside and beginning the next file, is not written through.
func TestNameTakenWhileRotating(t *testing.T) {
	quick(t)
	defer func() { rename = os.Rename }()
	file := newLog(t, 3, Options{})
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	rename = func(from, to string) error {
		return errors.Join(os.Rename(from, to), os.WriteFile(elsewhere, nil, 0o600), os.Symlink(elsewhere, from))
	}
	err := Open(file, Options{MaxBytes: 1}).Append(launch("x"))
	if err == nil || !strings.Contains(err.Error(), "it is a symbolic link (remove the link)") || strings.Contains(err.Error(), "take the line back") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(elsewhere); err != nil || len(text) > 0 {
		t.Errorf("written elsewhere: %q, %v", text, err)
	}
	rename = os.Rename
	os.Remove(file)
	appendN(t, file, 1, Options{})
	whole(t, file, 4)
}

// readers are the ways to read a log; each ends with the error of what it is
// given.
func readers(file string, each func(Line) error) map[string]func() error {
	return map[string]func() error{
		"Read": func() error { return Read(file, each) },
		"Follow": func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			return Follow(ctx, file, Position{}, each)
		},
		"Last": func() error {
			_, _, err := Last(file, -1, func(l Line) bool { return each(l) == nil })
			return err
		},
		"Verify": func() error { _, err := Verify(file, false); return err },
	}
}

// TestReadersEnd: what is done with the lines ends the reading when it fails.
func TestReadersEnd(t *testing.T) {
	file := newLog(t, 3, Options{})
	enough := errors.New("enough")
	for _, name := range []string{"Read", "Follow"} {
		seen := 0
		err := readers(file, func(Line) error { seen++; return enough })[name]()
		if !errors.Is(err, enough) || seen != 1 {
			t.Errorf("%s: %v after %d lines", name, err, seen)
		}
	}
}

// TestReadersWaitForTheLock: a log is not read while a line is being written,
// and a writer that hangs with the lock stops the readers with an error.
func TestReadersWaitForTheLock(t *testing.T) {
	file := newLog(t, 1, Options{})
	held := holdLock(t, file)
	all := readers(file, func(Line) error { return nil })
	for name, read := range all {
		if err := read(); err == nil || !strings.Contains(err.Error(), "locked by another kgate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	held.Close()
	for name, read := range all {
		if err := read(); err != nil {
			t.Errorf("%s with the lock free: %v", name, err)
		}
	}
}

// TestReadersRefuse: what is not kgate's own file is not read as the log, by
// whatever reads it.
func TestReadersRefuse(t *testing.T) {
	for _, base := range []string{"audit.jsonl", "audit.head"} {
		file := newLog(t, 1, Options{})
		if err := os.Chmod(filepath.Join(filepath.Dir(file), base), 0o622); err != nil {
			t.Fatal(err)
		}
		for name, read := range readers(file, func(Line) error { return nil }) {
			if err := read(); err == nil || !strings.Contains(err.Error(), "can be written by others") {
				t.Errorf("%s with %s of mode 0622: %v", name, base, err)
			}
		}
	}
}

// TestUnreadable: a disk that gives an error in place of the log's bytes ends the
// reading with it, from either end of the file, and is not taken for the end.
func TestUnreadable(t *testing.T) {
	file := newLog(t, 3, Options{})
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := f.Stat()
	f.Close() // reading it fails from here on
	done := make(chan map[string]error, 1)
	go func() {
		_, fromFront := newReader(io.NewSectionReader(f, 0, info.Size()), file).next()
		_, fromEnd := (&backward{f: f, start: info.Size(), end: -1}).next()
		_, _, last := tail(f, info.Size())
		done <- map[string]error{"from the front": fromFront, "from the end": fromEnd, "the last line": last}
	}()
	select {
	case got := <-done:
		for how, err := range got {
			if !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s: %v", how, err)
			}
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it is read for ever")
	}
}

// TestTooLong: a file that is no log is not searched through to its beginning.
func TestTooLong(t *testing.T) {
	maxLine = 400 << 10
	defer func() { maxLine = 64 << 20 }()
	file := newLog(t, 1, Options{})
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(make([]byte, 2<<20)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := Open(file, Options{}).Append(launch("x")); err == nil || !strings.Contains(err.Error(), "holds no line of kgate's in its last 1 MiB (move it away)") {
		t.Errorf("append: %v", err)
	}
	if _, _, err := Last(file, 1, func(Line) bool { return true }); err == nil || !strings.Contains(err.Error(), "has a line of more than") {
		t.Errorf("last: %v", err)
	}
	if r := verify(t, file); r.Lines != 1 {
		t.Errorf("verify: %d lines", r.Lines)
	}
	longest := 0
	if err := Read(file, func(l Line) error { longest = max(longest, len(l.Raw)); return nil }); err != nil || longest != maxLine {
		t.Errorf("read: the longest line has %d bytes, %v", longest, err)
	}
}

// TestDecode refuses what is JSON and no line.
func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		`{"seq":1,"kind":"launch"}`:         "",
		`{"seq":1,"kind":null,"argv":null}`: "",
		`{"seq":1,"kind":5}`:                "is not a string",
		`{"seq":1,"kind":{}}`:               "is not a string",
		`{"seq":1,"kind":true}`:             "is not a string",
		`{"seq":1,"argv":["a",["b"]]}`:      "is not a string",
		`{"seq":1,"argv":"a"}`:              "decode",
		`{"seq":0,"kind":"launch"}`:         "not a line",
		`{}`:                                "not a line",
		`null`:                              "not a line",
		`{"seq":1`:                          "decode",
	} {
		_, err := Decode([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
