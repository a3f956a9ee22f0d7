package mask

import (
	"bytes"
	"io"
	"math/rand"
	"strings"
	"testing"
	"time"
)

func BenchmarkMask(b *testing.B) {
	r := compile(b, nil)
	random := make([]byte, 64<<10)
	rand.New(rand.NewSource(1)).Read(random)
	for _, bb := range []struct {
		name string
		text []byte
	}{
		{"log", bytes.Repeat([]byte("2024-05-01T12:00:00Z INFO http://host:80/path?x=1 user_name=bob task-id=17 some text that a program prints -- ok\n"), 600)},
		{"go", bytes.Repeat([]byte("func (w *Writer) boundary(b []byte, i int) bool {\n\tc := w.before(b, i, 1)\n\tif !alnum(c) {\n\t\treturn true\n\t}\n"), 600)},
		{"zeros", make([]byte, 64<<10)},
		{"random", random},
		{"dashes", bytes.Repeat([]byte("-"), 64<<10)},
		{"base64", bytes.Repeat([]byte("MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn"), 2000)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			w := r.Writer(io.Discard)
			for b.Loop() {
				w.Write(bb.text)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		Compile([]string{"corp_"}, []Value{{"V", "some-secret-value-0123456789"}})
	}
}

// Text made of beginnings costs what other text costs, in whatever pieces it
// comes: nothing is looked at again and again.
func TestNotQuadratic(t *testing.T) {
	r := compile(t, nil, Value{"V", strings.Repeat("ab", 500) + "c"})
	for _, s := range []string{"eyJ-", "a://b:", "-----BEGIN ", "sk-", "ab", "s\x1b[m", "ghp_0123456789 "} {
		text := strings.Repeat(s, 100_000/len(s))
		for _, n := range []int{1, len(text)} {
			start := time.Now()
			split(t, r, text, n)
			// Measured: under 0.1 s each, and 1.6 s for the value that repeats
			// itself, which costs its length for each byte; what is quadratic in
			// the text takes minutes.
			if took := time.Since(start); took > 10*time.Second {
				t.Errorf("%q in pieces of %d took %v", s, n, took)
			}
			if testing.Verbose() {
				t.Logf("%q in pieces of %d: %v", s, n, time.Since(start))
			}
		}
	}
}
