package audit

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFollow: every line once and in order, through many rotations, from the
// position where Last ended.
func TestFollow(t *testing.T) {
	quick(t)
	poll = time.Millisecond
	defer func() { poll = 200 * time.Millisecond }()
	o := Options{MaxBytes: 2000}
	for _, before := range []int{0, 1, 20} {
		file := newLog(t, before, o)
		_, pos, err := Last(file, 1, func(Line) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		appendN(t, file, 20, o) // between Last and Follow
		const n = 100
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		next := uint64(before + 1)
		done := make(chan error, 1)
		go func() {
			done <- Follow(ctx, file, pos, func(l Line) error {
				if l.Err != nil || l.Entry.Seq != next {
					t.Errorf("line of sequence %d (%v), want %d", l.Entry.Seq, l.Err, next)
					cancel()
				}
				if next++; next == uint64(before+20+n+1) {
					cancel()
				}
				return nil
			})
		}()
		appendN(t, file, n, o)
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
		if want := uint64(before + 20 + n + 1); next != want {
			t.Errorf("with %d lines before: followed up to sequence %d, want %d", before, next-1, want-1)
		}
	}
}

// TestFollowUnfinished: a line is passed on when its end is there, not before,
// and a log that is removed and made again is followed on.
func TestFollowUnfinished(t *testing.T) {
	quick(t)
	file := newLog(t, 2, Options{})
	text, _ := os.ReadFile(file)
	half := len(text) - 30
	os.WriteFile(file, text[:half], 0o600)
	var got []uint64
	w := &follower{file: file, emit: func(l Line) error { got = append(got, l.Entry.Seq); return nil }}
	defer w.close()
	step := func(want int) {
		t.Helper()
		if err := w.step(); err != nil {
			t.Fatal(err)
		}
		if len(got) != want {
			t.Fatalf("%d lines passed on, want %d", len(got), want)
		}
	}
	step(1)
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(text[half:])
	f.Close()
	step(2)
	os.Truncate(file, int64(half))
	step(2)
	os.RemoveAll(filepath.Dir(file))
	step(2)
	appendN(t, file, 3, Options{})
	step(5)
}
