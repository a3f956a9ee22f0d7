package command

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestLimits goes up to each limit and one beyond: what is refused there says
// which limit it was.
func TestLimits(t *testing.T) {
	p := newPlace(t, "curl")
	rep := strings.Repeat
	// f1 calls f2, which calls f3, …
	functions := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "f%d() { f%d \"$@\"; }\n", i+1, i+2)
		}
		fmt.Fprintf(&b, "f%d() { echo \"$1\"; }\nf1 x", n+1)
		return b.String()
	}
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "prog%d\n", i)
		}
		return b.String()
	}
	long := "x=" + rep("a", 60_000) + "\n"
	for _, c := range []struct{ says, within, beyond string }{
		{"longer than 512 KiB", long + rep("eval : $x\n", 7), long + rep("eval : $x\n", 8)},
		{"holds too many commands", rep("a;", maxMarks), rep("a;", maxMarks+1)},
		{"one of more than 1000", rep("eval a;", maxTexts-1), rep("eval a;", maxTexts)},
		{"more than 500 different programs", names(maxNames - 1), names(maxNames)},
		{"nested more than 16 deep", rep("env ", maxNested-1) + "ls", rep("env ", maxNested+1) + "ls"},
		{"splits text in text more than 16 deep", "env " + rep("-S", maxNested-1) + "ls", "env " + rep("-S", maxNested) + "ls"},
		{"calls functions more than 8 deep", functions(maxCalls - 1), functions(maxCalls)},
		{"more than 32 script files", rep("sh safe.sh;", 32), rep("sh safe.sh;", 33)},
		{"cannot be decided", rep("./zz*;", maxGlobs), rep("./zz*;", maxGlobs+1)},
	} {
		if err := Inspect([]string{"bash", "-c", c.within}, p.o); err != nil {
			t.Errorf("%s: refused before that: %v", c.says, err)
		}
		err := Inspect([]string{"bash", "-c", c.beyond}, p.o)
		if verdict(err) != "undecided" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// TestBeyondTheFields puts the denied name behind so many words that not all of
// them are kept: what is not kept is not known, and not absent.
func TestBeyondTheFields(t *testing.T) {
	p := newPlace(t, "curl")
	many := strings.Repeat("A=1 ", maxFields+50)
	for _, text := range []string{
		"x='" + many + "curl x'; env $x",
		"a=(" + many + "curl x); env \"${a[@]}\"",
		"a=(env); a+=(" + many + "curl x); \"${a[@]}\"",
		"a=(" + many + "curl x); ${a[" + strconv.Itoa(maxFields+50) + "]} y",
		"set -- " + many + "curl x; ${" + strconv.Itoa(maxFields+51) + "} y",
		"a=(" + many + "); b=(env); b+=(\"${a[@]}\"); b+=(curl x); \"${b[@]}\"",
	} {
		if got := verdict(Inspect([]string{"bash", "-c", text}, p.o)); got == "allow" {
			t.Errorf("let pass: %.40q", text)
		}
	}
}
