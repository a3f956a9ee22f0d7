package mask

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A secret split over two writes, over 64 KiB of unbroken text, and across
// flushes: masked whole, once. The input of mcp-debugger#151.
func TestLongTokens(t *testing.T) {
	r := compile(t, nil)
	for _, n := range []int{1, 7, 4096, 65536, 1 << 20} {
		in := "a " + "ghp_" + strings.Repeat("x", 100_000) + " b"
		if got := split(t, r, in, n); got != "a [masked: github-token] b" {
			t.Errorf("in pieces of %d: %.80q", n, got)
		}
	}
	// The memory stays the same however long the token is.
	var b bytes.Buffer
	w := r.Writer(&b)
	chunk := []byte(strings.Repeat("x", 64<<10))
	io.WriteString(w, "ghp_")
	for range 100 {
		w.Write(chunk)
	}
	if cap(w.held) > 4096 || cap(w.out) > 4096 {
		t.Errorf("holds %d and gathers %d bytes", cap(w.held), cap(w.out))
	}
}

// Text that cannot be the start of a secret is there after the Write that
// brought it.
func TestNoDelay(t *testing.T) {
	r := compile(t, nil)
	for _, s := range []string{"qq", "Password: ", "root@host:~# ", "cd", "task", "a-", ">>> ", "http://h/", "50%", "x\r"} {
		var b bytes.Buffer
		w := r.Writer(&b)
		io.WriteString(w, "\n"+s)
		if s == "a-" { // may begin a key's first line
			w.Release()
		}
		if b.String() != "\n"+s {
			t.Errorf("%q: only %q is there", s, b.String())
		}
	}
}

func TestRelease(t *testing.T) {
	r := compile(t, nil, Value{"PW", "hunter2hunter2hunter2"})
	tests := []struct {
		in    []string // Release after each
		shown []string // after each
	}{
		{[]string{"sk"}, []string{"sk"}},
		{[]string{"sk", "i trip"}, []string{"sk", "ski trip"}},
		{[]string{"gh", "p_", "0123", "456789abcdefghij", "rest", "\n"}, []string{"gh", "ghp_", "ghp_0123", "ghp_0123[masked: github-token]", "ghp_0123[masked: github-token]", "ghp_0123[masked: github-token]\n"}},
		{[]string{"AKIA", "IOSFODNN7EXAMPL", "E"}, []string{"AKIA", "AKIAIOSF", "AKIAIOSF[masked: aws-access-key]"}},
		{[]string{"hun", "ter2", "x"}, []string{"hu", "hu", "hunter2x"}},
		{[]string{"hunter2hunter2", "hunter2"}, []string{"hu", "hu[masked: PW]"}},
		{[]string{"a://u:pa", "ss@", "h/"}, []string{"a://u:", "a://u:[masked: url-password]@", "a://u:[masked: url-password]@h/"}},
		{[]string{"a://h:30", "00"}, []string{"a://h:30", "a://h:3000"}},
		{[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\nroot# "}, []string{"[masked: private-key]\nroot# "}},
		{[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\nMII"}, []string{"[masked: private-key]"}},
		{[]string{"-----BEGIN PRIVATE KEY-----\nMIIE\nbin\ndev\n"}, []string{"[masked: private-key]\nbin\ndev\n"}},
		{[]string{"-----BEGIN PRIV", "ATE KEY-----\n"}, []string{"-----BEGIN PRIV", "-----BEGIN PRIV[masked: private-key]"}},
		{[]string{"ghp_0123456789abcdefghij\x1b[", "31mx"}, []string{"[masked: github-token]\x1b[", "[masked: github-token]\x1b[31m"}},
		{[]string{"eyJ", "hbGciOiJIUzI1NiJ9", ".eyJzdWIi", "OiIx"}, []string{"eyJ", "eyJ", "eyJ[masked: jwt]", "eyJ[masked: jwt]"}},
	}
	for _, tt := range tests {
		var b bytes.Buffer
		w := r.Writer(&b)
		for i, s := range tt.in {
			io.WriteString(w, s)
			if err := w.Release(); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.shown[i] {
				t.Errorf("%q, step %d: %q, want %q", tt.in, i, b.String(), tt.shown[i])
			}
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriteError(t *testing.T) {
	w := compile(t, nil).Writer(failing{})
	if _, err := io.WriteString(w, "?"); err == nil {
		t.Error("the first error is lost")
	}
	if err := w.Close(); err == nil {
		t.Error("the error does not stay")
	}
}

// The caller's own slice reaches the writer behind when nothing is masked.
func TestNoCopy(t *testing.T) {
	p := bytes.Repeat([]byte("ordinary text, nothing else\n"), 2000)
	var got *byte
	w := compile(t, nil).Writer(writerFunc(func(b []byte) { got = &b[0] }))
	w.Write(p)
	if got != &p[0] {
		t.Error("the text was copied")
	}
	if n := testing.AllocsPerRun(20, func() { w.Write(p) }); n != 0 {
		t.Errorf("%v allocations a write", n)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
