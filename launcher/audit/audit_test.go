package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// child is what this test binary does when a test starts it as a writer.
const child = "AUDIT_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(child) {
	case "once":
		if err := Open(os.Args[1], Options{}).Append(launch(os.Args[2])); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "loop", "pieces":
		if os.Getenv(child) == "pieces" {
			write = inPieces
		}
		l := Open(os.Args[1], Options{MaxBytes: 4 << 20})
		fmt.Println("ready")
		for i := 1; ; i++ {
			if err := l.Append(launch(strings.Repeat("x", rand.IntN(1<<20)))); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println(i)
		}
	case "full":
		os.Exit(fillDisk(os.Args[1]))
	default:
		os.Exit(m.Run())
	}
}

// inPieces writes so that a kill finds the line unfinished: what a power loss can
// do to a single write(2), which this kernel lets a signal do to none.
func inPieces(f *os.File, b []byte) (int, error) {
	for n := 0; n < len(b); n += 4096 {
		if _, err := f.Write(b[n:min(n+4096, len(b))]); err != nil {
			return n, err
		}
		time.Sleep(10 * time.Microsecond)
	}
	return len(b), nil
}

func writer(mode string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	if self, err := os.Executable(); err == nil {
		cmd.Path = self
	}
	cmd.Env = append(os.Environ(), child+"="+mode)
	return cmd
}

func launch(argv ...string) Entry {
	return Entry{Kind: Launch, Dir: "/p", Project: "/p", Argv: argv, Network: "off", Backend: "bubblewrap"}
}

// newLog is a log of n lines.
func newLog(t testing.TB, n int, o Options) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), ".kgate", "audit.jsonl")
	appendN(t, file, n, o)
	return file
}

func appendN(t testing.TB, file string, n int, o Options) {
	t.Helper()
	for i := range n {
		if err := Open(file, o).Append(launch("cmd", strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t testing.TB, file string) Report {
	t.Helper()
	r, err := Verify(file, false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whole fails unless the log is clean and has n lines.
func whole(t testing.TB, file string, n int) {
	t.Helper()
	r := verify(t, file)
	if !r.Clean() || len(r.Notes) > 0 || r.Lines != n || r.Last != uint64(n) {
		t.Fatalf("%d lines up to %d, findings %v, notes %v; want %d clean lines", r.Lines, r.Last, r.Findings, r.Notes, n)
	}
}

func readAll(t testing.TB, file string) []Entry {
	t.Helper()
	var all []Entry
	err := Read(file, func(l Line) error {
		if l.Err != nil {
			return fmt.Errorf("line %d: %w", l.Number, l.Err)
		}
		all = append(all, l.Entry)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAppend(t *testing.T) {
	file := newLog(t, 0, Options{})
	whole(t, file, 0)
	want := Entry{Kind: Block, ID: "0123456789abcdef", Dir: "/p/\xff", Project: "/p", Argv: []string{"a b", "\x80\xfe", "\x1b[2J", "\u202e", "\U000e0001", "é", ""},
		Flags: []string{"--allow-path /d"}, Reason: "curl \"is\" denied", Network: "off", Backend: "b", User: "u"}
	if err := Open(file, Options{}).Append(want); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, file)[0]
	if got.Seq != 1 || got.Prev != noHash || len(got.Hash) != hashLen || got.UID != os.Getuid() || got.Pid != os.Getpid() || time.Since(got.Time) > time.Minute {
		t.Errorf("chain and process of the first line: %+v", got)
	}
	got.Seq, got.Prev, got.Hash, got.UID, got.Pid, got.Time = 0, "", "", 0, 0, time.Time{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%#v\nwant\n%#v", got, want)
	}
	for name, mode := range map[string]os.FileMode{filepath.Dir(file): 0o700, file: 0o600, headFile(file): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode().Perm(), err, mode)
		}
	}
	appendN(t, file, 3, Options{})
	whole(t, file, 4)
}

func TestMask(t *testing.T) {
	file := newLog(t, 0, Options{})
	e := Entry{Kind: Block, Dir: "/s3cret/d", Project: "/s3cret", Argv: []string{"x", "\xffs3cret\xff"}, Flags: []string{"--env s3cret"}, Reason: "s3cret"}
	o := Options{Mask: func(s string) string { return strings.ReplaceAll(s, "s3cret", "***") }}
	if err := Open(file, o).Append(e); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(file)
	if bytes.Contains(text, []byte("s3cret")) || bytes.Count(text, []byte("***")) != 5 {
		t.Errorf("not masked everywhere: %s", text)
	}
	if e.Argv[1] != "\xffs3cret\xff" {
		t.Error("the caller's arguments were changed")
	}
	if got := readAll(t, file)[0].Argv[1]; got != "\xff***\xff" {
		t.Errorf("bytes around the mask: %q", got)
	}
}

func TestManyAtOnce(t *testing.T) {
	file := newLog(t, 0, Options{})
	const n = 200
	var running []*exec.Cmd
	for i := range n {
		cmd := writer("once", file, strconv.Itoa(i))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	whole(t, file, n)
	seen := make(map[string]bool)
	for _, e := range readAll(t, file) {
		seen[e.Argv[0]] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d launches are in the log", len(seen), n)
	}
}

// TestKilled kills writers at random points. Whatever was reported as written
// must be there, the log must verify (a cut line being said), and the next
// append must work.
func TestKilled(t *testing.T) {
	kills, cuts, behind := 200, 0, 0
	if testing.Short() {
		kills = 40
	}
	file := ""
	for i := range kills {
		if i%20 == 0 {
			file = newLog(t, 0, Options{})
		}
		before := verify(t, file)
		cmd := writer([]string{"loop", "pieces"}[i%2], file)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "ready" {
			t.Fatalf("the writer said %q", lines.Text())
		}
		if i%2 == 0 {
			time.AfterFunc(time.Duration(rand.IntN(12000))*time.Microsecond, func() { cmd.Process.Kill() })
		} else {
			go killWhileWriting(cmd, file)
		}
		acknowledged := 0
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Errorf("the writer said %q", lines.Text())
			}
		}
		cmd.Wait()
		after := verify(t, file)
		if !after.Clean() {
			t.Fatalf("after kill %d: %v", i, after.Findings)
		}
		if after.Last < before.Last+uint64(acknowledged) {
			t.Fatalf("after kill %d: %d lines were reported as written after %d, the last is %d", i, acknowledged, before.Last, after.Last)
		}
		for _, n := range after.Notes[min(len(before.Notes), len(after.Notes)):] {
			if n.What == Cut {
				cuts++
			} else {
				behind++
			}
		}
		appendN(t, file, 1, Options{MaxBytes: 4 << 20})
		if r := verify(t, file); !r.Clean() || r.Last != after.Last+1 {
			t.Fatalf("the append after kill %d: last %d after %d, %v", i, r.Last, after.Last, r.Findings)
		}
	}
	if cuts == 0 {
		t.Errorf("none of %d kills cut a line: the test shows nothing", kills)
	}
	t.Logf("%d kills: %d lines cut, %d times the anchor was behind", kills, cuts, behind)
}

// killWhileWriting kills the writer when the log has grown by some bytes, so that
// a line is cut on a busy machine, too.
func killWhileWriting(cmd *exec.Cmd, file string) {
	size := func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	start, more := size(), 1+rand.Int64N(1<<18)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
		if now := size(); now >= start+more || now < start {
			break
		}
	}
	cmd.Process.Kill()
}

// failing makes the next write stop after n bytes with an error.
func failing(t *testing.T, n int, err error) {
	t.Cleanup(func() { write = (*os.File).Write })
	write = func(f *os.File, b []byte) (int, error) {
		n, _ := f.Write(b[:min(n, len(b))])
		return n, err
	}
}

func TestFailedWriteIsTakenBack(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1 << 20} {
		file := newLog(t, 2, Options{})
		before, _ := os.ReadFile(file)
		failing(t, n, syscall.ENOSPC)
		err := Open(file, Options{}).Append(launch("x"))
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), strconv.Quote(file)) || !strings.Contains(err.Error(), "free some space") {
			t.Errorf("%d bytes written: error %v", n, err)
		}
		if after, _ := os.ReadFile(file); !bytes.Equal(before, after) {
			t.Errorf("%d bytes written: the log ends in %q", n, after[len(before):])
		}
		write = (*os.File).Write
		appendN(t, file, 1, Options{})
		whole(t, file, 3)
	}
}

func TestFailedSyncIsTakenBack(t *testing.T) {
	file := newLog(t, 2, Options{})
	defer func() { dataSync = syncData }()
	dataSync = func(*os.File) error { return syscall.EIO }
	if err := Open(file, Options{}).Append(launch("x")); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	dataSync = syncData
	whole(t, file, 2)
}

// FuzzString: any bytes come back as they were, from JSON that any reader takes
// and that drives no terminal.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a\"b\\", "\xff\xfe", "\xed\xb2\x80", "\u202e\u0085\x7f\x00", "\U000e0001\x81", "\U0001f600", "\xf3\xa0\x80"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e := launch(s)
		line := encode(&e)
		if !json.Valid(line) || !utf8.Valid(line) {
			t.Fatalf("%q is not JSON", line)
		}
		for _, r := range string(line) {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q holds %q", line, r)
			}
		}
		e.Seq = 1
		got, err := Decode(encode(&e))
		if err != nil || got.Argv[0] != s {
			t.Fatalf("%q came back as %q, %v", s, got.Argv, err)
		}
		if k, err := parseLink(encode(&e)); err != nil || k.hash != e.Hash {
			t.Fatalf("the line does not fit its own hash: %v", err)
		}
	})
}
