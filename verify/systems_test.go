package verify

import (
	"runtime"
	"testing"
)

// A scenario about another system says nothing about a row of this one's doctor,
// and must not keep it from being proven.
func TestSystemOfAScenario(t *testing.T) {
	for _, tt := range []struct{ head, want string }{
		{"# It.\n# proves: box\n[!darwin] skip 'x'\n[!seatbelt] skip 'y'\n", "darwin"},
		{"# It.\n[!userns] skip 'x'\n", "linux"},
		{"# It.\n[!hostfilter] skip\n", "linux"},
		{"# It.\n[!userns] [linux] skip 'x'\n[!seatbelt] [darwin] skip 'y'\n", ""},
		{"# It.\nstatus 0 true\n[!darwin] skip\n", ""},
	} {
		s := Describe("a.txtar", []byte(tt.head))
		if s.OS != tt.want {
			t.Errorf("%q: %q, want %q", tt.head, s.OS, tt.want)
		}
		s.Proves = []string{"box"}
		if got, want := (&Config{}).wants(s), tt.want == "" || tt.want == runtime.GOOS; got != want {
			t.Errorf("%q: wanted: %v, want %v", tt.head, got, want)
		}
		if !(&Config{Only: []string{"a"}}).wants(s) {
			t.Errorf("%q: not run when asked for by name", tt.head)
		}
	}
}
