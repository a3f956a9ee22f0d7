package command

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// TestDeniedInterpreter denies a program that is itself a wrapper of text
// (fence#48), by its name and through a script's first line.
func TestDeniedInterpreter(t *testing.T) {
	p := newPlace(t, "python3", "busybox", "sh")
	for _, c := range []struct {
		want string
		argv []string
	}{
		{"refuse", []string{"python3", "-c", "print(1)"}},
		{"refuse", []string{"env", "python3", "-c", "print(1)"}},
		{"refuse", []string{"env", "-i", "A=b", "python3"}},
		{"refuse", []string{"timeout", "5", "python3"}},
		{"refuse", []string{"nice", "-n", "1", "python3"}},
		{"refuse", []string{"xargs", "python3"}},
		{"refuse", []string{"find", ".", "-exec", "python3", "{}", ";"}},
		{"refuse", []string{"nohup", "python3"}},
		{"refuse", []string{"sudo", "python3"}},
		{"refuse", []string{"bash", "-c", "python3 x.py"}},
		{"refuse", []string{"./py.sh"}},
		{"refuse", []string{"bash", "-c", "./py.sh"}},
		{"refuse", []string{"busybox", "cat"}},
		{"refuse", []string{"sh", "-c", "true"}},
		{"refuse", []string{"bash", "-c", "echo true | sh"}},
		{"refuse", []string{"./script.sh"}},
		{"allow", []string{"bash", "-c", "echo python3"}},
		{"allow", []string{"env", "python=python3", "true"}},
	} {
		if got := verdict(Inspect(c.argv, p.o)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.argv, got, c.want)
		}
	}
}

// TestNothingDenied has nothing to refuse, not even what cannot be parsed.
func TestNothingDenied(t *testing.T) {
	for _, argv := range [][]string{nil, {}, {""}, {"curl"}, {"sh", "-c", "("}, {"sh", "-c", "$x"}} {
		if err := Inspect(argv, Options{}); err != nil {
			t.Errorf("%q: %v", argv, err)
		}
	}
}

// TestAbsolute denies one file and not its name.
func TestAbsolute(t *testing.T) {
	p := newPlace(t)
	file := filepath.Join(p.bin, "wget")
	p.o.Denied = []policy.Word{{Text: file}}
	p.o.Programs = policy.Locate(p.o.Denied, nil)
	for argv, want := range map[string]string{
		file:                     "refuse",
		"wget":                   "refuse", // by PATH it is that file
		"../home/bin/wget":       "refuse",
		"../home/bin/../bin/nc":  "allow",
		"/nowhere/wget":          "allow",
		p.bin + "//./wget":       "refuse",
		"sh -c " + file:          "refuse",
		"sh -c ../home/bin/wget": "refuse",
	} {
		if got := verdict(Inspect(strings.Fields(argv), p.o)); got != want {
			t.Errorf("%q: got %s, want %s", argv, got, want)
		}
	}
}

// TestMulticallStaysAllowed denies wget where it is a name of busybox: the
// program keeps its other names.
func TestMulticallStaysAllowed(t *testing.T) {
	p := newPlace(t)
	box := filepath.Join(p.bin, "busybox")
	write(t, box, "many programs\x00", 0o755)
	link := filepath.Join(p.bin, "telnet")
	if err := os.Symlink(box, link); err != nil {
		t.Fatal(err)
	}
	p.o.Denied = []policy.Word{{Text: "telnet"}}
	p.o.Programs = policy.Locate(p.o.Denied, []string{p.bin})
	if len(p.o.Programs) != 1 || !p.o.Programs[0].Multicall {
		t.Fatalf("located %+v", p.o.Programs)
	}
	write(t, filepath.Join(p.dir, "mine"), "many programs\x00", 0o755)
	for argv, want := range map[string]string{
		"telnet host":         "refuse",
		"busybox telnet host": "refuse",
		"./mine telnet host":  "refuse",
		"busybox cat telnet":  "allow",
		"./mine cat telnet":   "allow",
		"busybox":             "allow",
	} {
		if got := verdict(Inspect(strings.Fields(argv), p.o)); got != want {
			t.Errorf("%q: got %s, want %s", argv, got, want)
		}
	}
}

// TestMessage reads what a person sees: the program, where it stands, the
// entry and the mend, on one line, without the exit status.
func TestMessage(t *testing.T) {
	p := newPlace(t, "curl")
	err := Inspect([]string{"timeout", "5", "bash", "-c", "echo a\ncurl x"}, p.o)
	want := `denied program "curl", not started: named as "curl" (in timeout > bash); it is on the list of denied programs (config.yaml:1: deny.exec); to allow it, take that entry out of the file`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	p.o.Denied[0].From = policy.Origin{Kind: policy.FromDefault, Key: "deny.exec"}
	err = Inspect([]string{"curl"}, p.o)
	want = `denied program "curl", not started: named as "curl"; it is on the list of denied programs (default deny.exec); to allow it, add "curl" under drop.exec in ~/.kgate/config.yaml`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	err = Inspect([]string{"./copied"}, p.o)
	if err == nil || !strings.Contains(err.Error(), `"./copied" is a copy of "`) {
		t.Errorf("got %v", err)
	}
	err = Inspect([]string{"bash", "-c", "$nothing x"}, p.o)
	want = `refused before the start: the program "…" is decided only at run time: write its name out (in bash), so it cannot be checked against the list of denied programs (deny.exec)`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	err = Inspect([]string{"sh", "-c", "if true\nthen"}, p.o)
	if err == nil || !strings.Contains(err.Error(), "could not be parsed") {
		t.Errorf("got %v", err)
	}
}

// bombs are texts that are made to take long. Each must be decided in bounded
// time, whatever the verdict; where only one verdict is right it is given.
func bombs() map[string]struct{ want, text string } {
	type bomb = struct{ want, text string }
	rep := strings.Repeat
	long := "x=" + rep("a", 60_000) + "\n"
	return map[string]bomb{
		"commands": {"allow", rep("echo hello\n", 10_000)},
		"other commands": {"undecided", func() string {
			var b strings.Builder
			for n := range 9000 {
				fmt.Fprintf(&b, "prog%d\n", n)
			}
			return b.String()
		}()},
		"hidden":          {"refuse", rep("echo hello; ", 10_000) + "curl x"},
		"and":             {"", rep("a&&", 40_000) + "b"},
		"pipes":           {"", rep("a|", 60_000) + "b"},
		"10k pipes":       {"", rep("a | ", 10_000) + "curl"},
		"10k and":         {"refuse", rep("a && ", 10_000) + "curl"},
		"brackets":        {"undecided", rep("(", 100_000)},
		"closed brackets": {"undecided", rep("( ", 30_000) + "x" + rep(")", 30_000)},
		"substitutions":   {"undecided", rep("$(", 30_000) + "x" + rep(")", 30_000)},
		"quoted":          {"undecided", rep(`"$(`, 20_000) + "x" + rep(`)"`, 20_000)},
		"backquotes":      {"", rep("`", 100_000)},
		"if":              {"undecided", rep("if x; then ", 8000) + "x" + rep("; fi", 8000)},
		"groups":          {"undecided", rep("{ ", 30_000) + "x" + rep("; }", 30_000)},
		"braces":          {"", "{a,b}" + rep("{a,b}", 20_000)},
		"nested braces":   {"", rep("{a,", 20_000) + "b" + rep("}", 20_000)},
		"open braces":     {"", rep("{", 100_000)},
		"sequence":        {"undecided", "{1..999999}"},
		"sequences":       {"undecided", rep("{1..99}", 20)},
		"loop sequence":   {"undecided", "for i in {1..999999}; do $i; done"},
		"arithmetic":      {"", "echo $((" + rep("(", 20_000) + "1" + rep(")", 20_000) + "))"},
		"double brackets": {"undecided", rep("((", 50_000)},
		"tests":           {"undecided", "[[ " + rep("! ", 60_000) + "b ]]"},
		"globs":           {"undecided", "/*/*/*/*/*/*"},
		"many globs":      {"undecided", rep("/usr/bin/zz*\n", 5000)},
		"stars":           {"undecided", "/usr/bin/" + rep("*a", 1000) + "\n"},
		"functions": {"", "f0() { :; }\n" + func() string {
			var b strings.Builder
			for n := range 200 {
				fmt.Fprintf(&b, "f%d() { f%d \"$@\"; f%d \"$@\"; }\n", n+1, n, n)
			}
			return b.String()
		}() + "f200 x"},
		"recursion": {"undecided", `f() { f "$@"; "$@"; }; f x`},
		"variables": {"", "x0=a\n" + func() string {
			var b strings.Builder
			for n := range 200 {
				fmt.Fprintf(&b, "x%d=$x%d$x%d\n", n+1, n, n)
			}
			return b.String()
		}() + "$x200"},
		"alternatives": {"", func() string {
			var b strings.Builder
			for n := range 200 {
				fmt.Fprintf(&b, "x=a%d; y=b%d\n", n, n)
			}
			return b.String()
		}() + "$x$y$x$y$x$y; env $x $y $x $y $x $y"},
		"evals":          {"", rep("eval ", 20_000) + "curl"},
		"wrappers":       {"undecided", rep("env ", 20_000) + "curl"},
		"nested env":     {"", rep("env -S '", 100) + "curl"},
		"aliases":        {"", "alias a='a a'; a a a a"},
		"here-documents": {"", rep("sh <<a\necho\na\n", 8000)},
		"nested shells": {"", func() string {
			s := "curl"
			for range 12 {
				s = "sh -c '" + strings.ReplaceAll(s, "'", `'\''`) + "'"
				if len(s) > 100_000 {
					break
				}
			}
			return s
		}()},
		"long word":      {"allow", "echo " + rep("a", 120_000)},
		"long name":      {"allow", rep("a", 120_000)},
		"python":         {"", "python3 -c '" + rep("system(", 15_000) + "'"},
		"python strings": {"", "python3 -c 'system(" + rep(`"a"+`, 20_000) + "'"},
		"perl":           {"", "perl -e '" + rep("q(", 50_000) + "'"},
		"continuations":  {"", rep("a\\\n", 40_000)},
		"sets":           {"", rep("set -- a b c; shift\n", 5000) + `"$@"`},

		// A few bytes that stand for gigabytes.
		"document of words": {"undecided", long + "sh <<END\n" + rep("$x", 20_000) + "\nEND"},
		"echo of words":     {"undecided", long + "echo " + rep("$x ", 20_000) + "| sh"},
		"printf of words":   {"undecided", long + "printf '" + rep("%s", 20_000) + "' " + rep("$x ", 5_000) + "| sh"},
		"eval of words":     {"undecided", long + "eval " + rep("$x ", 20_000)},
		"watch of words":    {"undecided", long + "watch " + rep("$x ", 20_000)},
		"sums":              {"undecided", long + rep("y+=$x\n", 10_000) + "$y"},
		"sums of arrays":    {"", "a=(" + rep("a ", 200) + ")\n" + rep("b+=(\"${a[@]}\")\n", 5_000) + "\"${b[@]}\""},
		"places": {"undecided", "x=" + rep("%", 60_000) + "\n" +
			"xargs -I % xargs -I _ xargs -I k xargs -I '$' xargs -I { xargs -I } xargs -I o xargs -I w env \"$x\""},
		"unparsable": {"", "concurrently " + rep(`\" `, 20_000)},
	}
}

// TestBounded holds the time and the memory of each to a bound.
func TestBounded(t *testing.T) {
	p := newPlace(t, "curl", "wget", "nc", "ssh")
	all := bombs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := used()
		err := Inspect([]string{"bash", "-c", b.text}, p.o)
		took := used() - began
		runtime.ReadMemStats(&after)
		if got := verdict(err); b.want != "" && got != b.want {
			t.Errorf("%s: got %s, want %s (%v)", name, got, b.want, err)
		}
		// Of processor time, with the collector's: a busy machine does not fail it,
		// nor does the race detector, with which it takes ten times as long.
		if took > time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		made := (after.TotalAlloc - before.TotalAlloc) >> 20
		if made > 256 {
			t.Errorf("%s: took %d MiB of memory", name, made)
		}
		if err != nil && strings.Contains(err.Error(), holeName) {
			t.Errorf("%s: the message is not plain: %v", name, err)
		}
		t.Logf("%-18s %7.2f ms %4d MiB for %3d KiB %s", name, float64(took.Microseconds())/1000, made, len(b.text)>>10, verdict(err))
	}
}

// TestLongText compares the inspection of 128 KiB with parsing alone, which
// cannot be spared: a busy machine slows both. The benchmark has the figures
// behind the promise of 20 ms.
func TestLongText(t *testing.T) {
	p := newPlace(t, "curl", "wget", "nc", "ssh")
	for name, text := range map[string]string{"realistic": realistic(), "echo": strings.Repeat("echo hello; ", 10_900)} {
		parse, whole := time.Hour, time.Hour
		for range 10 {
			began := used()
			if _, err := new(inspector).parse(text, shellLanguage("sh")); err != nil {
				t.Fatal(err)
			}
			parse = min(parse, used()-began)
			began = used()
			if err := Inspect([]string{"sh", "-c", text}, p.o); err != nil {
				t.Fatal(err)
			}
			whole = min(whole, used()-began)
		}
		t.Logf("%s: %d KiB in %v, of which parsing %v", name, len(text)>>10, whole, parse)
		if whole > 4*parse || whole > 100*time.Millisecond {
			t.Errorf("%s: %d KiB took %v, parsing alone %v", name, len(text)>>10, whole, parse)
		}
	}
}

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func realistic() string {
	var b strings.Builder
	for n := 0; b.Len() < 128<<10; n++ {
		fmt.Fprintf(&b, "if [ -f \"$HOME/file%d\" ]; then\n  grep -n \"pattern $x\" file%d | sed 's/a/b/' >> out.txt && echo \"done ${x:-none}\"\nfi\nfor f in *.go; do gofmt -l \"$f\" || exit 1; done\n", n, n)
	}
	return b.String()[:strings.LastIndex(b.String(), "if [")]
}

func BenchmarkInspect(b *testing.B) {
	p := newPlace(b, "curl", "wget", "nc", "ssh", "socat", "telnet", "ftp", "scp", "sftp", "rsh")
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"git-status", []string{"git", "status"}},
		{"echo", []string{"echo", "a"}},
		{"sh-short", []string{"sh", "-c", "git status && go test ./... | tail -5"}},
		{"sh-128KiB", []string{"sh", "-c", realistic()}},
		{"sh-128KiB-echo", []string{"sh", "-c", strings.Repeat("echo hello; ", 10_900)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := Inspect(c.argv, p.o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBombs(b *testing.B) {
	p := newPlace(b, "curl", "wget", "nc", "ssh")
	for name, bomb := range bombs() {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			for b.Loop() {
				Inspect([]string{"bash", "-c", bomb.text}, p.o)
			}
		})
	}
}
