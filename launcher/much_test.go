package launcher

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/launcher/mask"
)

// relayed copies what write prints through a stream and returns what comes out.
func relayed(t *testing.T, write func(io.Writer)) string {
	t.Helper()
	rules, err := mask.Compile(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	from, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	back, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{name: "stdout", from: from, to: to, mask: rules.Writer(to)}
	go func() {
		write(end)
		end.Close()
	}()
	go func() {
		s.copy()
		to.Close()
	}()
	var out bytes.Buffer
	if _, err := out.ReadFrom(back); err != nil {
		t.Fatal(err)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return out.String()
}

// Little or much, in whatever pieces, comes out whole, with its secrets masked.
func TestCopy(t *testing.T) {
	// A pause in the middle of a token would show its public prefix.
	defer func(d time.Duration) { idle = d }(idle)
	idle = time.Hour
	const line = "a line with ghp_0123456789abcdefghijABCDEFGHIJ012345, and more\n"
	for _, lines := range []int{0, 1, 1000, 100_000} {
		for _, size := range []int{100, 4096, 1 << 20} {
			text := strings.Repeat(line, lines)
			got := relayed(t, func(w io.Writer) {
				for rest := text; rest != ""; {
					n := min(size, len(rest))
					if _, err := io.WriteString(w, rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
			})
			want := strings.Repeat("a line with [masked: github-token], and more\n", lines)
			if got != want {
				t.Errorf("%d lines in pieces of %d: %d bytes came out, want %d", lines, size, len(got), len(want))
			}
		}
	}
}

// After much output, a prompt that may be the start of a secret still appears,
// and a reader that goes away ends the copy.
func TestCopyMuchPrompt(t *testing.T) {
	rules, err := mask.Compile(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	from, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	back, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{name: "stdout", from: from, to: to, mask: rules.Writer(to)}
	done := make(chan struct{})
	go func() {
		s.copy()
		close(done)
	}()
	text := strings.Repeat("x", 3*much) + "\nask: sk"
	go io.WriteString(end, text)
	got := make([]byte, len(text))
	if _, err := io.ReadFull(back, got); err != nil || string(got) != text {
		t.Fatalf("read %d bytes of %d: %v", len(got), len(text), err)
	}
	back.Close()
	io.WriteString(end, "nobody reads this\n")
	<-done
	if s.err != nil {
		t.Errorf("a reader that went away is an error: %v", s.err)
	}
	end.Close()
}
