package sbpl

import (
	"strings"
	"testing"
)

// Whatever text a profile is, reading it ends in rules or in one of the two
// errors; what was read says the same when it is spelled again; and any question
// to it has an answer.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "(", ")", "(version 1)", "(version 1)(deny default)",
		"(version 1)\n(deny default)\n(allow file-read* (subpath \"/usr\") (literal \"/a\\\"b\\\\\"))\n",
		"(version 1)(allow file-write* (require-all (vnode-type REGULAR-FILE) (require-not (regex #\"^/a/(.*/)?[Bb]$\"))))",
		"(version 1)(allow network-outbound (remote ip \"localhost:*\") (remote tcp \"*:443\"))",
		"(version 1)(allow mach-lookup (global-name \"a.b\") (global-name-regex #\"^x\"))",
		"(version 1)(deny file* (with no-log) (literal \"/x\"))(import \"system.sb\")(debug deny)",
		"(version 1)(allow sysctl-read (sysctl-name-prefix \"hw.\"))(allow signal (target same-sandbox))",
		"(version 1);c\n(allow file-ioctl (regex #\"[\"))", "(version 1)(allow file-read* (prefix \"/a\"))", "(version 2)", "#|", "(version 1)(allow " + strings.Repeat("(", 200),
	} {
		f.Add(s)
	}
	questions := []Query{
		{Op: "file-read-data", Path: "/usr/bin/a", Type: Regular}, {Op: "file-write-unlink", Path: "/a/x/B", Type: Directory, NoRegex: true},
		{Op: "network-outbound", Net: &Net{Side: "remote", Proto: "tcp", Port: 443, Own: true}}, {Op: "mach-lookup", Name: "xyz"},
		{Op: "signal", Target: "others"}, {Op: "sysctl-read", Name: "hw.ncpu"}, {Op: "process-fork"}, {Op: "no-such"},
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		p, err := Parse(text)
		if err != nil {
			switch err.(type) {
			case *RefusedError, *NotUnderstoodError:
			default:
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		all, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		var again strings.Builder
		for _, e := range all {
			again.WriteString(e.source() + "\n")
		}
		p2, err := Parse(again.String())
		if err != nil {
			t.Fatalf("%q, spelled again as %q: %v", text, again.String(), err)
		}
		for _, q := range questions {
			a, b := p.Judge(q), p2.Judge(q)
			if a.Verdict != b.Verdict {
				t.Errorf("%q says %v to %v, and spelled again %v", text, a, q, b)
			}
		}
	})
}
