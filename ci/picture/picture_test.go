package main

import (
	"os"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/verify"
)

func TestMain(m *testing.M) {
	// The lab's machine is this program, started anew.
	if status, ok := verify.Stage(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// TestPagesAreTrue takes the session and the capture again and holds the pages
// against them.
func TestPagesAreTrue(t *testing.T) {
	for _, name := range []string{"userns", "hostfilter", "lab"} {
		if why := verify.Conditions()[name]; why != nil {
			if strings.Contains(os.Getenv("KGATE_MUST"), name) {
				t.Fatal(why)
			}
			t.Skip(why)
		}
	}
	t.Chdir("../..")
	if err := run(true); err != nil {
		t.Errorf("%v\nif that is how it should be: go run ./ci/picture", err)
	}
}

// TestStillNotices shows that what is left out of the comparison is little.
func TestStillNotices(t *testing.T) {
	same := func(a, b string) bool { return still([]byte(a)) == still([]byte(b)) }
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"    3 ms  UDP 10.0.2.100:4000 > 10.0.2.3:53 asks for allowed.test\n", "   31 ms  UDP 10.0.2.100:4999 > 10.0.2.3:53 asks for allowed.test\n", true},
		{"    3 ms  UDP 10.0.2.100:4000 > 10.0.2.3:53 asks for allowed.test\n", "    3 ms  UDP 10.0.2.100:4000 > 10.0.2.3:53 asks for other.test\n", false},
		{"    3 ms  TCP 10.0.2.100:4000 > 203.0.113.20:9999 SYN\n", "", false},
		{"    3 ms  TCP 10.0.2.100:4000 > 203.0.113.10:9999 FIN+ACK\n", "", true},
		{"exit status 1\n", "exit status 0\n", false},
		{"READY     programs  6 files of denied programs cannot be executed", "READY     programs  9 files of denied programs cannot be executed", true},
		{"READY     programs", "BLOCKED   programs", false},
	} {
		if same(tc.a, tc.b) != tc.same {
			t.Errorf("%q and %q: same %v, want %v", tc.a, tc.b, !tc.same, tc.same)
		}
	}
}

func TestPieces(t *testing.T) {
	got := pieces("\x1b[32mREADY\x1b[0m  a<b\r")
	if len(got) != 2 || got[0] != (piece{"READY", "green"}) || got[1] != (piece{"  a<b", ""}) {
		t.Errorf("got %q", got)
	}
	if lines := wrap(line{{strings.Repeat("x", columns+3), ""}}); len(lines) != 2 || len(lines[1][0].text) != 3 {
		t.Errorf("wrapped: %q", lines)
	}
	if text := string(draw([]line{got})); !strings.Contains(text, "a&lt;b") || !strings.Contains(text, `class="green"`) {
		t.Errorf("drawn: %s", text)
	}
}
