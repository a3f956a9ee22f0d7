package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRefused: whatever stands where the log should be, Append neither waits nor
// writes elsewhere, and says which file and what to do.
func TestRefused(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	mkfifo := func(name string) error { return syscall.Mkfifo(name, 0o600) }
	symlink := func(name string) error {
		if err := os.WriteFile(elsewhere, nil, 0o600); err != nil {
			return err
		}
		return os.Symlink(elsewhere, name)
	}
	mkdir := func(name string) error { return os.Mkdir(name, 0o700) }
	shared := func(name string) error {
		return errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, 0o622))
	}
	linked := func(name string) error {
		return errors.Join(os.WriteFile(name, nil, 0o600), os.Link(name, name+".other"))
	}
	for _, test := range []struct {
		name string
		make func(name string) error
		want string
	}{
		{"directory", mkdir, "move it away"},
		{"fifo", mkfifo, "not a regular file (move it away)"},
		{"symlink", symlink, "it is a symbolic link (remove the link)"},
		{"device", func(name string) error { return os.Symlink("/dev/null", name) }, "it is a symbolic link"},
		{"writable by others", shared, "can be written by others (chmod go-w"},
		{"hard link", linked, "has another name"},
	} {
		for _, base := range []string{"audit.jsonl", "audit.head"} {
			t.Run(test.name+"/"+base, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "audit.jsonl")
				name := filepath.Join(filepath.Dir(file), base)
				if err := test.make(name); err != nil {
					t.Fatal(err)
				}
				before := names(t, filepath.Dir(file))
				ready := Open(file, Options{}).Ready()
				if now := names(t, filepath.Dir(file)); now != before {
					t.Errorf("Ready left %s of %s", now, before)
				}
				done := make(chan error, 1)
				go func() { done <- Open(file, Options{}).Append(launch("x")) }()
				select {
				case err := <-done:
					if fmt.Sprint(ready) != fmt.Sprint(err) {
						t.Errorf("Ready says %v, Append %v", ready, err)
					}
					if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
						t.Errorf("error %v, want %q and the file's name", err, test.want)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("Append waits")
				}
				if text, _ := os.ReadFile(elsewhere); len(text) > 0 {
					t.Errorf("written elsewhere: %q", text)
				}
			})
		}
	}
}

// names lists a directory.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(entries)
}

// TestReady: where a line can be appended Ready has nothing to say, and makes
// nothing; where a directory may not be written it says what Append does.
func TestReady(t *testing.T) {
	top := t.TempDir()
	file := filepath.Join(top, "home", ".kgate", "audit.jsonl")
	ready := func() error { return Open(file, Options{}).Ready() }
	if err := ready(); err != nil || names(t, top) != "[]" {
		t.Errorf("nothing is there: %v, left %s", err, names(t, top))
	}
	appendN(t, file, 1, Options{})
	if err := ready(); err != nil {
		t.Errorf("a log is there: %v", err)
	}
	if os.Geteuid() == 0 {
		t.Log("modes do not bind root: the rest is for ordinary users")
		return
	}
	for _, name := range []string{file, headFile(file)} {
		if err := errors.Join(os.Remove(name), os.Chmod(filepath.Dir(file), 0o500)); err != nil {
			t.Fatal(err)
		}
		err, appended := ready(), Open(file, Options{}).Append(launch("x"))
		os.Chmod(filepath.Dir(file), 0o700)
		if err == nil || appended == nil || !strings.Contains(err.Error(), "permission denied (make it and its directory yours") {
			t.Errorf("without %s: Ready says %v, Append %v", name, err, appended)
		}
		appendN(t, file, 1, Options{})
	}
	file = filepath.Join(top, "other", "deep", ".kgate", "audit.jsonl")
	os.Chmod(top, 0o500)
	err, appended := ready(), Open(file, Options{}).Append(launch("x"))
	os.Chmod(top, 0o700)
	if err == nil || fmt.Sprint(err) != fmt.Sprint(appended) {
		t.Errorf("a home that may not be written: Ready says %v, Append %v", err, appended)
	}
}

func TestRefusedDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".kgate")
	file := filepath.Join(dir, "audit.jsonl")
	same := func(what string, err error) {
		t.Helper()
		if ready := Open(file, Options{}).Ready(); fmt.Sprint(ready) != fmt.Sprint(err) {
			t.Errorf("%s: Ready says %v", what, ready)
		}
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Open(file, Options{}).Append(launch("x")); err == nil || !strings.Contains(err.Error(), "is not a directory (move it away)") {
		t.Errorf("a file for a directory: %v", err)
	} else {
		same("a file for a directory", err)
	}
	os.Remove(dir)
	os.Mkdir(dir, 0o700)
	os.Chmod(dir, 0o770)
	if err := Open(file, Options{}).Append(launch("x")); err == nil || !strings.Contains(err.Error(), "can be written by others") {
		t.Errorf("a directory that others may write: %v", err)
	} else {
		same("a directory that others may write", err)
	}
	os.Chmod(dir, 0o700)
	appendN(t, file, 1, Options{})
	geteuid = func() int { return os.Geteuid() + 1 }
	defer func() { geteuid = os.Geteuid }()
	if err := Open(file, Options{}).Append(launch("x")); err == nil || !strings.Contains(err.Error(), "belongs to uid") {
		t.Errorf("another's directory: %v", err)
	} else {
		same("another's directory", err)
	}
	geteuid = os.Geteuid
	whole(t, file, 1)
}

// holdLock holds the log's lock and makes the others wait for it only shortly.
func holdLock(t *testing.T, file string) *os.File {
	t.Helper()
	held, err := lockHead(headFile(file))
	if err != nil {
		t.Fatal(err)
	}
	lockWait = 50 * time.Millisecond
	t.Cleanup(func() { lockWait = 30 * time.Second })
	return held
}

// TestLockHeld: a writer that hangs with the lock stops the others with an
// error, not for ever.
func TestLockHeld(t *testing.T) {
	file := newLog(t, 1, Options{})
	held := holdLock(t, file)
	if err := Open(file, Options{}).Append(launch("x")); err == nil || !strings.Contains(err.Error(), "locked by another kgate") {
		t.Errorf("error %v", err)
	}
	lockWait = 30 * time.Second
	time.AfterFunc(50*time.Millisecond, func() { held.Close() })
	appendN(t, file, 1, Options{})
	whole(t, file, 2)
}

func TestRotation(t *testing.T) {
	quick(t)
	o := Options{MaxBytes: 2000}
	file := newLog(t, 50, o)
	whole(t, file, 50)
	files := rotated(file)
	if len(files) < 8 {
		t.Fatalf("%d files were set aside, want at least 8", len(files))
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Size() > o.MaxBytes || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	for i, e := range readAll(t, file) {
		if e.Seq != uint64(i+1) {
			t.Fatalf("line %d has sequence %d", i+1, e.Seq)
		}
	}
	for _, n := range []int{0, 1, 7, 50, 60, -1} {
		lines, _, err := Last(file, n, func(Line) bool { return true })
		want := n
		if n < 0 || n > 50 {
			want = 50
		}
		if err != nil || len(lines) != want || (want > 0 && (lines[want-1].Entry.Seq != 50 || lines[0].Entry.Seq != uint64(51-want))) {
			t.Errorf("the last %d lines: %d, %v", n, len(lines), err)
		}
	}

	// Killed between setting a file aside and beginning the next.
	if err := os.Rename(file, file+fmt.Sprintf(".%d", len(files)+1)); err != nil {
		t.Fatal(err)
	}
	whole(t, file, 50)
	appendN(t, file, 1, o)
	whole(t, file, 51)

	// The same after a power loss, with the anchor behind.
	if err := os.Rename(file, file+fmt.Sprintf(".%d", len(files)+2)); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(headFile(file), headRecord(10, readSeq(t, file, 10).Hash), 0o600)
	appendN(t, file, 1, o)
	whole(t, file, 52)

	// Another tool renumbers the files: order is by content.
	a, b := file+".2", file+".5"
	os.Rename(a, file+".x")
	os.Rename(b, a)
	os.Rename(file+".x", b)
	whole(t, file, 52)

	// An old file is archived, and one in the middle lost.
	os.Remove(file + ".1")
	if r := verify(t, file); r.Clean() {
		t.Error("a missing first file is not found")
	}
	if r, err := Verify(file, true); err != nil || !r.Clean() || len(r.Notes) != 1 {
		t.Errorf("partial: %v, %v", r, err)
	}
	os.Remove(file + ".4")
	if r, err := Verify(file, true); err != nil || r.Clean() {
		t.Errorf("a missing file in the middle is not found: %v", err)
	}
}

// halfLine lets the space end in the middle of a line: the line is taken back, or,
// where the writer ends before it can do that, closed by the next one.
func halfLine(dir string, fail func(string, ...any) int) int {
	file := filepath.Join(dir, "half", "audit.jsonl")
	ballast := filepath.Join(dir, "ballast")
	l := Open(file, Options{})
	if err := l.Append(launch("first")); err != nil {
		return fail("half a line: %v", err)
	}
	before, _ := os.ReadFile(file)
	f, err := os.Create(ballast)
	if err != nil {
		return fail("%v", err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if info, err := f.Stat(); err != nil || f.Truncate(info.Size()-4096) != nil {
		return fail("leave a page: %v", err)
	}
	wrote, long := 0, launch(strings.Repeat("x", 3*4096))
	write = func(f *os.File, b []byte) (int, error) {
		n, err := f.Write(b)
		wrote = n
		return n, err
	}
	err = l.Append(long)
	after, _ := os.ReadFile(file)
	if !errors.Is(err, syscall.ENOSPC) || wrote < 4096-len(before) || !bytes.Equal(before, after) {
		return fail("half a line: %v, %d bytes written, %d in the log and %d before", err, wrote, len(after), len(before))
	}
	// As above, and the writer is gone with the line in the log.
	half := encode(&Entry{Seq: 2, Prev: noHash, Kind: Launch, Argv: long.Argv})[:wrote]
	g, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fail("%v", err)
	}
	g.Write(half)
	g.Close()
	if err := l.Append(launch("x")); !errors.Is(err, syscall.ENOSPC) {
		return fail("after half a line, and no space: %v", err)
	}
	if after, _ = os.ReadFile(file); !bytes.Equal(after, append(before, half...)) {
		return fail("after half a line, and no space: the log holds something else")
	}
	f.Truncate(0)
	if err := l.Append(launch("second")); err != nil {
		return fail("after half a line: %v", err)
	}
	if r, err := Verify(file, false); err != nil || !r.Clean() || r.Lines != 2 || len(r.Notes) != 1 {
		return fail("after half a line: %+v, %v", r, err)
	}
	return 0
}

// fillDisk is run as a child in namespaces of its own: a small file system fills
// up until a line does not fit.
func fillDisk(dir string) int {
	fail := func(format string, args ...any) int {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
		return 1
	}
	if err := mountSmall(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 77
	}
	file := filepath.Join(dir, ".kgate", "audit.jsonl")
	l := Open(file, Options{})
	written := 0
	var err error
	for ; err == nil && written < 10000; written++ {
		err = l.Append(launch(strings.Repeat("x", 700)))
	}
	written--
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		return fail("a full disk: %v", err)
	}
	r, err := Verify(file, false)
	if err != nil || !r.Clean() || len(r.Notes) > 0 || r.Lines != written {
		return fail("after %d lines: %+v, %v", written, r, err)
	}
	if err := os.Remove(filepath.Join(dir, "ballast")); err != nil {
		return fail("%v", err)
	}
	if err := l.Append(launch("x")); err != nil {
		return fail("with space again: %v", err)
	}
	if r, err := Verify(file, false); err != nil || !r.Clean() || r.Lines != written+1 {
		return fail("with space again: %+v, %v", r, err)
	}
	if written < 10 {
		return fail("only %d lines fitted", written)
	}
	if err := os.Remove(file); err != nil {
		return fail("%v", err)
	}
	return halfLine(dir, fail)
}
