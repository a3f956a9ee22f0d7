package command

import (
	"strings"
	"testing"
	"time"
)

// FuzzInspect looks for text that makes the inspection panic or take long, and
// for a message that is not one line.
func FuzzInspect(f *testing.F) {
	p := newPlace(f, "curl", "wget", "nc", "ssh")
	for _, file := range []string{"testdata/corpus.txt", "testdata/wrappers.txt"} {
		for _, l := range corpus(f, p, file) {
			f.Add(strings.Join(l.argv, "\x00"))
		}
	}
	for _, b := range bombs() {
		if len(b.text) < 8<<10 {
			f.Add("bash\x00-c\x00" + b.text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv := strings.Split(text, "\x00")
		for _, argv := range [][]string{argv, {"bash", "-c", text}, {"python3", "-c", text}, {"perl", "-e", text}, {"env", "-S", text}} {
			began := used()
			err := Inspect(argv, p.o)
			if took := used() - began; took > 2*time.Second {
				t.Fatalf("%q took %v", argv, took)
			}
			if v := verdict(err); strings.HasPrefix(v, "error") || err != nil && strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: %s", argv, err)
			}
		}
	})
}

// FuzzHidden puts a denied command where a shell surely runs it, behind text
// that is complete by itself: it must never be let pass.
func FuzzHidden(f *testing.F) {
	p := newPlace(f, "curl")
	for _, file := range []string{"testdata/corpus.txt", "testdata/wrappers.txt"} {
		for _, l := range corpus(f, p, file) {
			f.Add(l.argv[len(l.argv)-1])
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		alone := &inspector{o: p.o}
		if _, err := alone.parse(text, shellLanguage("bash")); err != nil {
			return
		}
		for _, whole := range []string{"curl x\n" + text, "{ curl x; }\n" + text, ": $(curl x)\n" + text} {
			if Inspect([]string{"bash", "-c", whole}, p.o) == nil {
				t.Fatalf("let pass: %q", whole)
			}
		}
	})
}
