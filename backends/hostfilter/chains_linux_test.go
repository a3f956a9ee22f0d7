package hostfilter

import (
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The chains that are made in the kernel's own terms, with the rules that
// iptables-restore adds to them, are what it would have made by itself; and they go
// away again, whatever is in them.
func TestChainsAreThoseOfIptables(t *testing.T) {
	needLab(t)
	comment := regexp.MustCompile(`(?m)^#.*\n`)
	for family, tool := range map[int]string{4: "iptables-nft", 6: "ip6tables-nft"} {
		for _, on := range []bool{true, false} {
			rules := Rules(Config{IPv6: on})
			text, _ := restoreText(rules, family)
			run := func(stdin, tool string, args ...string) string {
				cmd := exec.Command(OnPath(tool), args...)
				cmd.Stdin = strings.NewReader(stdin)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", tool, err, out)
				}
				return comment.ReplaceAllString(string(out), "")
			}
			var want, got, left string
			inNetwork(t, func() {
				run(text, tool+"-restore")
				want = run("", tool+"-save")
			})
			inNetwork(t, func() {
				if err := makeChains(family, defaults(rules, family)); err != nil {
					t.Error(err)
					return
				}
				if err := makeChains(family, defaults(rules, family)); err == nil {
					t.Error("made twice")
				}
				run(withoutDefaults(text), tool+"-restore", "--noflush")
				got = run("", tool+"-save")
				if err := removeChains(family); err != nil {
					t.Error(err)
				}
				left = run("", tool+"-save", "-t", "filter")
			})
			if got != want || !strings.Contains(got, ":OUTPUT DROP") {
				t.Errorf("%s, IPv6 %v: got\n%s\nwant\n%s", tool, on, got, want)
			}
			if strings.Contains(left, "DROP") {
				t.Errorf("%s, IPv6 %v: left:\n%s", tool, on, left)
			}
		}
	}
}

// Where an nf_tables program fails after the chains were made, they do not stay to
// drop what the next program's rules let out.
func TestChainsGoWithAFailure(t *testing.T) {
	needLab(t)
	broken := script(t, "cat >/dev/null; echo no such table >&2; exit 1")
	nft := t.TempDir() + "/broken-nft-restore"
	if err := exec.Command("cp", broken, nft).Run(); err != nil {
		t.Fatal(err)
	}
	inNetwork(t, func() {
		if _, err := newRestorer([]string{nft}, Rules(Config{}), 4); err == nil || !strings.Contains(err.Error(), "no such table") {
			t.Errorf("the failure is not said: %v", err)
		}
		if err := removeChains(4); err == nil {
			t.Error("the chains are still there")
		}
		if err := makeChains(4, nil); err != nil {
			t.Error(err)
		}
	})
}

// inNetwork does something in a network namespace of its own.
func inNetwork(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // not unlocked: the thread goes with its namespace
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			t.Error(err)
			return
		}
		do()
	}()
	<-done
}
