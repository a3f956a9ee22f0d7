package audit

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tampered runs Verify over content and fails unless it finds something, now
// and also after one more line has been appended.
func tampered(t *testing.T, file string, content []byte, what string) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(headFile(file))
	if err != nil {
		t.Fatal(err)
	}
	if verify(t, file).Clean() {
		t.Errorf("%s: not found", what)
	}
	if err := Open(file, Options{}).Append(launch("next")); err != nil {
		t.Errorf("%s: the next append: %v", what, err)
	}
	if verify(t, file).Clean() {
		t.Errorf("%s: not found after the next append", what)
	}
	if err := os.WriteFile(headFile(file), head, 0o600); err != nil {
		t.Fatal(err)
	}
}

// quick leaves out the disk: these tests append thousands of times and are not
// about durability.
func quick(t *testing.T) {
	dataSync = func(*os.File) error { return nil }
	t.Cleanup(func() { dataSync = syncData })
}

func TestEveryChangeIsFound(t *testing.T) {
	quick(t)
	file := newLog(t, 3, Options{})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, file, 3)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		edited := slices.Clone(text)
		edited[i] ^= byte(1 + random.IntN(255))
		tampered(t, file, edited, fmt.Sprintf("byte %d changed", i))
	}
	for i := range text {
		tampered(t, file, slices.Delete(slices.Clone(text), i, i+1), fmt.Sprintf("byte %d removed", i))
		tampered(t, file, slices.Insert(slices.Clone(text), i, '\n'), fmt.Sprintf("line end put in at %d", i))
		tampered(t, file, text[:i], fmt.Sprintf("cut off at %d", i))
	}
	lines := bytes.SplitAfter(text, []byte("\n"))[:3]
	for i := range lines {
		tampered(t, file, slices.Concat(slices.Delete(slices.Clone(lines), i, i+1)...), fmt.Sprintf("line %d removed", i))
		for j := range i {
			swapped := slices.Clone(lines)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			tampered(t, file, slices.Concat(swapped...), fmt.Sprintf("lines %d and %d swapped", j, i))
			tampered(t, file, slices.Concat(slices.Insert(slices.Clone(lines), i, lines[j])...), fmt.Sprintf("line %d put in again at %d", j, i))
		}
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	whole(t, file, 3)
}

func TestVerifySaysWhich(t *testing.T) {
	quick(t)
	lines := func(text []byte) [][]byte { return bytes.SplitAfter(text, []byte("\n"))[:9] }
	for _, test := range []struct {
		name  string
		spoil func(l [][]byte) [][]byte
		want  []string // WHAT:LINE, text
	}{
		{"edited", func(l [][]byte) [][]byte {
			l[3] = bytes.Replace(l[3], []byte(`"off"`), []byte(`"open"`), 1)
			return l
		}, []string{":4: edited: the line of sequence 4: its content does not fit its hash"}},
		{"not JSON", func(l [][]byte) [][]byte { l[3] = []byte("hello\n"); return l },
			[]string{":4: edited: the line after sequence 3: it is not a line of this log"}},
		{"removed", func(l [][]byte) [][]byte { return slices.Delete(l, 2, 5) },
			[]string{":3: removed: the lines of sequence 3 to 5 are missing before this line"}},
		{"beginning removed", func(l [][]byte) [][]byte { return l[1:] },
			[]string{":1: removed: the line of sequence 1 is missing before this line"}},
		{"swapped", func(l [][]byte) [][]byte { l[2], l[3] = l[3], l[2]; return l },
			[]string{":4: reordered: the line of sequence 3 stands after that of 4"}},
		{"twice", func(l [][]byte) [][]byte { return slices.Insert(l, 7, l[2]) },
			[]string{":8: reordered: the line of sequence 3 stands after that of 7"}},
		{"put in", func(l [][]byte) [][]byte { return slices.Insert(l, 7, []byte("{}\n")) },
			[]string{":8: edited: the line after sequence 7: it is not a line of this log"}},
		{"end removed", func(l [][]byte) [][]byte { return l[:7] },
			[]string{": truncated: the lines of sequence 8 to 9 are missing at the end: audit.head knows of 9"}},
		{"end cut", func(l [][]byte) [][]byte { l[8] = l[8][:50]; return l },
			[]string{":9: truncated: the line of sequence 9 had been written whole and was cut short afterwards"}},
		{"last line end cut", func(l [][]byte) [][]byte { l[8] = l[8][:len(l[8])-1]; return l },
			[]string{":9: truncated: the line of sequence 9 had been written whole and was cut short afterwards"}},
		{"forged", func(l [][]byte) [][]byte {
			e, _ := Decode(bytes.TrimSpace(l[4]))
			e.Argv = []string{"harmless"}
			l[4] = append(encode(&e), '\n')
			return l
		}, []string{":6: edited: the line of sequence 6 does not follow from the one before it: one of them was replaced"}},
		{"last forged", func(l [][]byte) [][]byte {
			e, _ := Decode(bytes.TrimSpace(l[8]))
			e.Argv = []string{"harmless"}
			l[8] = append(encode(&e), '\n')
			return l
		}, []string{":9: edited: the line of sequence 9 is not the one that was written there (audit.head holds another hash)"}},
		{"two things", func(l [][]byte) [][]byte { l[1] = []byte("x\n"); return slices.Delete(l, 5, 6) },
			[]string{":2: edited: the line after sequence 1: it is not a line of this log", ":6: removed: the line of sequence 6 is missing before this line"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := newLog(t, 9, Options{})
			text, _ := os.ReadFile(file)
			if err := os.WriteFile(file, slices.Concat(test.spoil(lines(text))...), 0o600); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range verify(t, file).Findings {
				got = append(got, strings.TrimPrefix(f.String(), file))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestCrashIsNotTampering: what a writer that is killed leaves behind is noted,
// names the line, and does not count against the log.
func TestCrashIsNotTampering(t *testing.T) {
	quick(t)
	for _, cut := range []int{1, 40, 200, 1 << 20} {
		file := newLog(t, 3, Options{})
		text, _ := os.ReadFile(file)
		head, _ := os.ReadFile(headFile(file))
		appendN(t, file, 1, Options{})
		more, _ := os.ReadFile(file)
		// The fourth line, as far as it got; its line end at most is missing.
		part := more[:min(len(text)+cut, len(more)-1)]
		os.WriteFile(file, part, 0o600)
		os.WriteFile(headFile(file), head, 0o600)
		for _, next := range []string{"next launch", "next line"} {
			r := verify(t, file)
			want := fmt.Sprintf("%s:4: cut: the writer of sequence 4 ended before its line was whole, so its process did not start; the %s goes on", file, next)
			if !r.Clean() || len(r.Notes) != 1 || r.Notes[0].String() != want {
				t.Fatalf("%d bytes: findings %v, notes %v; want %s", cut, r.Findings, r.Notes, want)
			}
			if next == "next launch" {
				appendN(t, file, 2, Options{})
			}
		}
		if r := verify(t, file); r.Last != 5 || r.Lines != 5 {
			t.Errorf("%d bytes: %d lines up to %d, want 5", cut, r.Lines, r.Last)
		}
	}
}

func TestAnchor(t *testing.T) {
	quick(t)
	behind := func(file string) {
		f, _ := os.OpenFile(headFile(file), os.O_WRONLY, 0)
		defer f.Close()
		f.Write(headRecord(2, readSeq(t, file, 2).Hash))
	}
	for _, test := range []struct {
		name       string
		spoil      func(file string)
		clean      bool // before and after the next append
		says, then string
	}{
		{"behind", behind, true, "it is behind, at sequence 2", ""},
		{"removed", func(file string) { os.Remove(headFile(file)) }, false,
			"audit.head: anchor: it does not exist: whether lines", "audit.head was missing or damaged when sequence 5"},
		{"emptied", func(file string) { os.Truncate(headFile(file), 0) }, false,
			"audit.head: anchor: it holds no record: whether lines", "audit.head was missing or damaged when sequence 5"},
		{"garbled", func(file string) { os.WriteFile(headFile(file), []byte(strings.Repeat("x", headSize)), 0o600) }, false,
			"it holds no record", "audit.head was missing or damaged when sequence 5"},
		{"log removed", func(file string) { os.Remove(file) }, false, "the lines of sequence 1 to 4 are missing at the end", "the lines of sequence 1 to 4 are missing before this line"},
		{"log emptied", func(file string) { os.Truncate(file, 0) }, false, "the lines of sequence 1 to 4 are missing at the end", "the lines of sequence 1 to 4 are missing before this line"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := newLog(t, 4, Options{})
			test.spoil(file)
			for _, says := range []string{test.says, test.then} {
				r := verify(t, file)
				said := fmt.Sprint(r.Findings, r.Notes)
				if r.Clean() != test.clean || !strings.Contains(said, says) {
					t.Errorf("clean %v, %s; want %v and %q", r.Clean(), said, test.clean, says)
				}
				appendN(t, file, 1, Options{})
			}
			if r := verify(t, file); r.Last != 6 {
				t.Errorf("the chain went on to %d, want 6", r.Last)
			}
		})
	}
}

func readSeq(t *testing.T, file string, seq uint64) Entry {
	t.Helper()
	for _, e := range readAll(t, file) {
		if e.Seq == seq {
			return e
		}
	}
	t.Fatalf("no line of sequence %d", seq)
	return Entry{}
}

// FuzzReader: whatever the two files hold, nothing panics, and a log that could
// be opened can be appended to.
func FuzzReader(f *testing.F) {
	seed := filepath.Join(f.TempDir(), "audit.jsonl")
	for range 3 {
		if err := Open(seed, Options{}).Append(launch("x")); err != nil {
			f.Fatal(err)
		}
	}
	text, _ := os.ReadFile(seed)
	head, _ := os.ReadFile(headFile(seed))
	f.Add(text, head)
	f.Add(text[:len(text)-9], head)
	f.Add([]byte("\n\n{}\n"), []byte{})
	dir := f.TempDir()
	dataSync = func(*os.File) error { return nil }
	f.Cleanup(func() { dataSync = syncData })
	f.Fuzz(func(t *testing.T, text, head []byte) {
		file := filepath.Join(dir, "audit.jsonl")
		os.WriteFile(file, text, 0o600)
		os.WriteFile(headFile(file), head, 0o600)
		verify(t, file)
		n := 0
		if err := Read(file, func(Line) error { n++; return nil }); err != nil {
			t.Fatal(err)
		}
		lines, pos, err := Last(file, -1, func(Line) bool { return true })
		if err != nil || len(lines) > n || len(lines) < n-1 {
			t.Fatalf("%d lines from the front, %d from the end, %v", n, len(lines), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Follow(ctx, file, pos, func(Line) error { return nil }); err != nil {
			t.Fatal(err)
		}
		before := verify(t, file)
		if err := Open(file, Options{}).Append(launch("next")); err != nil {
			if !strings.Contains(err.Error(), "move it away") {
				t.Fatal(err)
			}
			return
		}
		if r := verify(t, file); r.Last <= before.Last {
			t.Fatalf("the chain went from %d to %d", before.Last, r.Last)
		}
	})
}
