package mask

import (
	"math/rand"
	"strings"
	"testing"
)

// Both looks find the same, wherever a secret stands in the bytes that the
// vector unit takes at once, and whatever the values begin with.
func TestLooks(t *testing.T) {
	was := fast
	defer func() { fast = was }()
	if !was {
		t.Log("this processor has only one")
	}
	values := []Value{
		{"UTF8", "\u00e4\u00f6\u00fc\u4e16\u754c"},
		{"HIGH", "\xff\xfe\x80\x00\x01"},
		{"DASH", "--flag-value"},
		{"PERCENT", "%%%%"},
		{"SLASH", "\\\\srv\\x"},
		{"LINES", "one\ntwo\nthree"},
		{"ESC", "\x1b[31"},
		{"COLON", "://x"},
	}
	pieces := []string{"\\n", "\\u003d", "\\x3d", "%3D", "\x1b[1m", "\x1b[K", "m", "K", "x", "3", "-", "\xe4", "\x00"}
	rnd := rand.New(rand.NewSource(1))
	for round := range 4000 {
		var some []Value
		for _, v := range values {
			if rnd.Intn(4) == 0 {
				some = append(some, v)
			}
		}
		r := compile(t, []string{"corp_", "\u00e9t\u00e9-"}, some...)
		var b strings.Builder
		for b.Len() < 20+rnd.Intn(400) {
			switch rnd.Intn(9) {
			case 0:
				b.WriteString(values[rnd.Intn(len(values))].Secret)
			case 1:
				k := kinds[rnd.Intn(len(kinds))]
				b.WriteString(k.lit + body(k)[:rnd.Intn(40)])
			case 2:
				b.WriteString(pieces[rnd.Intn(len(pieces))])
			case 3:
				b.WriteString(strings.Repeat("-", rnd.Intn(80)) + "BEGIN PRIVATE KEY-----")
			default:
				b.WriteString(noise(rnd, rnd.Intn(30)))
			}
		}
		in := b.String()
		fast = false
		want := r.String(in)
		fast = was
		for _, n := range []int{len(in), 1 + rnd.Intn(len(in)), 64} {
			if got := split(t, r, in, n); got != want {
				t.Fatalf("round %d, in pieces of %d: %q\nbecame    %q\nby pairs  %q", round, n, in, got, want)
			}
		}
	}
}
