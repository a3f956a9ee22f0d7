package audit

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// grown is a log of n lines, written without Append's sync for each.
func grown(tb testing.TB, n int) string {
	tb.Helper()
	file := newLog(tb, 0, Options{})
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	prev := noHash
	for i := range n {
		e := launch("git", "status")
		e.Seq, e.Prev, e.Time, e.ID = uint64(i+1), prev, time.Unix(0, 0).UTC(), "0123456789abcdef"
		w.Write(append(encode(&e), '\n'))
		prev = e.Hash
	}
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(headFile(file), headRecord(uint64(n), prev), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// BenchmarkAppend appends to an empty log and to one of a million lines, in turn,
// and reports the ratio of the medians.
func BenchmarkAppend(b *testing.B) {
	o := Options{MaxBytes: 1 << 40}
	logs := []*Log{Open(newLog(b, 0, o), o), Open(grown(b, 1_000_000), o)}
	times := make([][]time.Duration, len(logs))
	one := func(i int) time.Duration {
		start := time.Now()
		if err := logs[i].Append(launch("git", "status")); err != nil {
			b.Fatal(err)
		}
		return time.Since(start)
	}
	one(0)
	one(1)
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		for k := range logs {
			i := (n + k) % len(logs)
			times[i] = append(times[i], one(i))
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2].Microseconds())
	}
	b.ReportMetric(median(0), "empty-µs")
	b.ReportMetric(median(1), "million-µs")
	b.ReportMetric(median(1)/median(0), "ratio")
}

// BenchmarkAppendUnsynced is what Append costs beside the disk.
func BenchmarkAppendUnsynced(b *testing.B) {
	dataSync = func(*os.File) error { return nil }
	defer func() { dataSync = syncData }()
	l := Open(newLog(b, 1, Options{}), Options{})
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(launch("git", "status")); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	file := grown(b, 100_000)
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if r := verify(b, file); r.Lines != 100_000 {
			b.Fatalf("%d lines", r.Lines)
		}
	}
}
