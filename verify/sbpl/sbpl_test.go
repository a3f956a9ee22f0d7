package sbpl

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func parse(t *testing.T, rules ...string) *Profile {
	t.Helper()
	p, err := Parse("(version 1)\n" + strings.Join(rules, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each row is one measured rule of precedence, or one thing that is not known.
func TestPrecedence(t *testing.T) {
	read := Query{Op: "file-read-data", Path: "/a/b", Type: Regular}
	for _, tt := range []struct {
		name  string
		rules string
		q     Query
		want  Verdict
	}{
		{"the default decides what no rule names", `(deny default)`, read, Deny},
		{"an allowing default too", `(allow default)`, read, Allow},
		{"no default is not known", ``, read, Unknown},
		{"the last match wins: deny", `(deny default)(allow file-read* (subpath "/a"))(deny file-read* (literal "/a/b"))`, read, Deny},
		{"the last match wins: allow", `(deny default)(deny file-read* (literal "/a/b"))(allow file-read* (subpath "/a"))`, read, Allow},
		{"what does not match does not count", `(deny default)(allow file-read* (subpath "/a"))(deny file-read* (literal "/a/c"))`, read, Allow},
		{"unfiltered never over filtered, before", `(deny default)(deny file-read*)(allow file-read* (subpath "/a"))`, read, Allow},
		{"unfiltered never over filtered, after", `(deny default)(allow file-read* (subpath "/a"))(deny file-read*)`, read, Allow},
		{"unfiltered allow never over filtered deny", `(deny default)(deny file-read* (subpath "/a"))(allow file-read*)`, read, Deny},
		{"specific over wildcard, before", `(deny default)(deny file-read-data (literal "/a/b"))(allow file-read* (literal "/a/b"))`, read, Deny},
		{"specific over wildcard, after", `(deny default)(allow file-read* (literal "/a/b"))(deny file-read-data (literal "/a/b"))`, read, Deny},
		{"specific allow over wildcard deny", `(deny default)(allow file-read-data (literal "/a/b"))(deny file-read* (subpath "/a"))`, read, Allow},
		{"a wildcard covers the specific", `(deny default)(allow file* (subpath "/a"))`, read, Allow},
		{"unfiltered specific over unfiltered wildcard", `(deny default)(allow file-read*)(deny file-read-data)`, read, Deny},
		{"unfiltered specific against filtered wildcard is not known", `(deny default)(allow file-read* (subpath "/a"))(deny file-read-data)`, read, Unknown},
		{"two unfiltered rules that disagree are not known", `(deny default)(allow file-read*)(deny file-read*)`, read, Unknown},
		{"an import is not known", `(deny default)(import "system.sb")`, read, Unknown},
		{"an unknown operation is not known", `(allow default)`, Query{Op: "file-eat"}, Unknown},
		{"several filters are any of them", `(deny default)(allow file-read* (literal "/x") (literal "/a/b"))`, read, Allow},
		{"several operations are each", `(deny default)(allow file-write* file-read* (literal "/a/b"))`, read, Allow},
		{"modifiers that log do not decide", `(deny default (with no-log))(allow file-read* (literal "/a/b") (with report))`, read, Allow},
		{"a safehouse broad allow and specific deny", `(allow default)(deny network*)(deny file-read* (subpath "/a"))`, read, Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, tt.rules).Judge(tt.q); got.Verdict != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFilters(t *testing.T) {
	file := func(p string) Query { return Query{Op: "file-read-data", Path: p, Type: Regular} }
	dir := func(p string) Query { return Query{Op: "file-read-data", Path: p, Type: Directory} }
	tcp := &Net{Side: "remote", Proto: "tcp", Port: 443}
	for _, tt := range []struct {
		name string
		rule string
		q    Query
		want Verdict
	}{
		{"subpath below", `(allow file-read* (subpath "/a"))`, file("/a/b/c"), Allow},
		{"subpath on a directory itself", `(allow file-read* (subpath "/a"))`, dir("/a"), Allow},
		{"subpath on a file itself is not known", `(allow file-read* (subpath "/a"))`, file("/a"), Unknown},
		{"subpath is not a prefix of names", `(allow file-read* (subpath "/a"))`, file("/ab"), Deny},
		{"literal is not below", `(allow file-read* (literal "/a"))`, file("/a/b"), Deny},
		{"prefix is of names", `(allow file-read* (prefix "/a"))`, file("/ab"), Allow},
		{"another case is not known", `(allow file-read* (literal "/a/b"))`, file("/A/b"), Unknown},
		{"another case below is not known", `(allow file-read* (subpath "/a/b"))`, file("/A/b/c"), Unknown},
		{"another normal form is not known", "(allow file-read* (literal \"/caf\u00e9\"))", file("/cafe\u0301"), Unknown},
		{"a character that folds to ASCII is not known", `(allow file-read* (literal "/desk"))`, file("/des\u212a"), Unknown},
		{"a character that is ignored is not known", `(allow file-read* (literal "/.git"))`, file("/.g\u200cit"), Unknown},
		{"no character of ASCII", "(allow file-read* (literal \"/\u96ea\"))", file("/a"), Deny},
		{"a name that only resembles", "(allow file-read* (literal \"/caf\u00e9\"))", file("/tea"), Deny},
		{"ancestors", `(allow file-read* (path-ancestors "/a/b/c"))`, dir("/a/b"), Allow},
		{"ancestors and the path itself is not known", `(allow file-read* (path-ancestors "/a/b"))`, dir("/a/b"), Unknown},
		{"ancestors are not siblings", `(allow file-read* (path-ancestors "/a/b"))`, dir("/c"), Deny},
		{"regex anchored", `(allow file-read* (regex #"^/a/[^/]*[.]c$"))`, file("/a/x.c"), Allow},
		{"regex anchored, no", `(allow file-read* (regex #"^/a/[^/]*[.]c$"))`, file("/a/x/y.c"), Deny},
		{"regex escaped", `(allow file-read* (regex "^/a/x\\.c$"))`, file("/a/xyc"), Deny},
		{"regex not anchored, both readings", `(allow file-read* (regex #"/a"))`, file("/a"), Allow},
		{"regex not anchored is not known", `(allow file-read* (regex #"/a"))`, file("/a/b"), Unknown},
		{"require-all", `(allow file-read* (require-all (subpath "/a") (vnode-type DIRECTORY)))`, file("/a/b"), Deny},
		{"require-all met", `(allow file-read* (require-all (subpath "/a") (vnode-type DIRECTORY)))`, dir("/a/b"), Allow},
		{"require-any", `(allow file-read* (require-any (literal "/x") (literal "/a")))`, file("/a"), Allow},
		{"require-not", `(allow file-read* (require-all (subpath "/a") (require-not (subpath "/a/b"))))`, file("/a/b/c"), Deny},
		{"vnode-type of what is not known", `(allow file-read* (vnode-type DIRECTORY))`, Query{Op: "file-read-data", Path: "/a"}, Unknown},
		{"extension held", `(allow file-read* (require-all (literal "/a") (extension "pty")))`,
			Query{Op: "file-read-data", Path: "/a", Type: Regular, Extensions: []string{"pty"}}, Allow},
		{"extension not held", `(allow file-read* (require-all (literal "/a") (extension "pty")))`, file("/a"), Deny},
		{"port", `(allow network-outbound (remote ip "*:443"))`, Query{Op: "network-outbound", Net: tcp}, Allow},
		{"another port", `(allow network-outbound (remote ip "*:80"))`, Query{Op: "network-outbound", Net: tcp}, Deny},
		{"protocol", `(allow network-outbound (remote udp "*:443"))`, Query{Op: "network-outbound", Net: tcp}, Deny},
		{"localhost is not the world", `(allow network-outbound (remote ip "localhost:*"))`, Query{Op: "network-outbound", Net: tcp}, Deny},
		{"localhost is every own address", `(allow network-outbound (remote ip "localhost:*"))`,
			Query{Op: "network-outbound", Net: &Net{Side: "remote", Proto: "tcp", Port: 5432, Own: true}}, Allow},
		{"an address is no unix socket", `(allow network-outbound (remote ip "*:*"))`,
			Query{Op: "network-outbound", Path: "/private/var/run/docker.sock", Type: Socket}, Deny},
		// eugene1g/agent-safehouse#19: connecting is no file operation.
		{"file rules do not govern sockets", `(allow network*) (deny file-read* file-write* (literal "/private/var/run/docker.sock"))`,
			Query{Op: "network-outbound", Path: "/private/var/run/docker.sock", Type: Socket}, Allow},
		{"a socket by its path", `(allow network-outbound (literal "/private/var/run/mDNSResponder"))`,
			Query{Op: "network-outbound", Path: "/private/var/run/mDNSResponder", Type: Socket}, Allow},
		{"a unix-socket filter", `(allow network*) (deny network-outbound (remote unix-socket (path-literal "/private/var/run/docker.sock")))`,
			Query{Op: "network-outbound", Path: "/private/var/run/docker.sock", Type: Socket}, Deny},
		{"a service", `(allow mach-lookup (global-name "com.apple.trustd.agent"))`, Query{Op: "mach-lookup", Name: "com.apple.trustd.agent"}, Allow},
		{"another service", `(allow mach-lookup (global-name "com.apple.trustd.agent"))`, Query{Op: "mach-lookup", Name: "com.apple.trustd"}, Deny},
		{"a prefix of names", `(allow sysctl-read (sysctl-name-prefix "hw."))`, Query{Op: "sysctl-read", Name: "hw.ncpu"}, Allow},
		{"self is in the same sandbox", `(allow signal (target same-sandbox))`, Query{Op: "signal", Target: "self"}, Allow},
		{"others are not", `(allow signal (target same-sandbox))`, Query{Op: "signal", Target: "others"}, Deny},
		{"a system call's number", `(allow system-mac-syscall (require-all (mac-policy-name "Sandbox") (mac-syscall-number 67)))`,
			Query{Op: "system-mac-syscall", Name: "Sandbox", Words: map[string]string{"mac-syscall-number": "1"}}, Deny},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, "(deny default)", tt.rule).Judge(tt.q); got.Verdict != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// refused are profiles that the compiler refuses, with part of the reason.
var refused = []struct{ profile, reason string }{
	{`(deny default)`, "begins with (version 1)"},
	{"(version 1)(version 1)", "only once"},
	{"(version 1)(allow network-outbound (remote ip \"example.org:443\"))", "host must be * or localhost in network address"},
	{"(version 1)(allow network-outbound (remote ip \"93.184.215.14:443\"))", "host must be * or localhost"},
	{"(version 1)(allow network-outbound (remote ip \"10.0.0.0/8:*\"))", "host must be * or localhost"},
	{"(version 1)(allow network-outbound (remote ip \"[::1]:443\"))", "host must be * or localhost"},
	{"(version 1)(allow network-outbound (remote ip \"*:1-1024\"))", "port must be"},
	{"(version 1)(allow network-outbound (remote ip \"*:70000\"))", "port must be"},
	{"(version 1)(allow network-outbound (remote ip \"*\"))", "no port"},
	{"(version 1)(allow network-outbound (remote sctp \"*:1\"))", "unbound variable: sctp"},
	{"(version 1)(allow file-reed* (literal \"/a\"))", "unbound variable: file-reed*"},
	{"(version 1)(allow file-read* (litteral \"/a\"))", "unbound variable: litteral"},
	{"(version 1)(allow)", "without an operation"},
	{"(version 1)(allow file-read* \"/a\")", "a string where"},
	{"(version 1)(allow file-read* (literal))", "takes one string"},
	{"(version 1)(allow file-read* (literal \"/a\")", "not closed"},
	{"(version 1)(allow file-read* (literal \"/a\")))", "parenthesis too many"},
	{"(version 1)(allow file-read* (literal \"/a))", "not closed"},
	{"(version 1)(allow file-read* (require-not))", "require-not with 0"},
	{"(version 1)(allow file-read* (vnode-type BANANA))", "vnode-type"},
	// constellation-works/orbit#495
	{"(version 1)(deny file-read* (regex #\"(?i)^/a\"))", "operator"},
	{"(version 1)(deny file-read* (regex #\"/a^\"))", "unexpected ^ operator"},
	{"(version 1)(deny file-read* (regex #\"^/[a\"))", "not closed"},
}

// notUnderstood are profiles of which this package does not know enough.
var notUnderstood = []string{
	"(version 1)(define x 1)",
	"(version 1)(allow file-read* (literal (param \"HOME\")))",
	"(version 1)(if 1 2)",
	"(version 1)(allow process-exec (with no-sandbox))",
	"(version 1)(allow file-read* (literal \"/a\\n\"))",
	"(version 1)(allow file-read* (literal \"/a\nb\"))",
	"(version 1)(allow file-read* (literal \"a\"))",
	"(version 1)(allow file-read* (literal \"/a/\"))",
	"(version 1)(allow file-read* (regex #\"^/a{2}\"))",
	"(version 1)(allow file-read* (regex #\"^/\\d\"))",
	"(version 1)(allow file-read* (regex #\"^/a\\\"b\"))",
	"(version 1) ; caf\u00e9\n(deny default)",
	"(version 1)(deny default (literal \"/a\"))",
}

func TestRefused(t *testing.T) {
	for _, tt := range refused {
		_, err := Parse(tt.profile)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v, want a refusal with %q", tt.profile, err, tt.reason)
		}
	}
}

func TestNotUnderstood(t *testing.T) {
	for _, profile := range notUnderstood {
		_, err := Parse(profile)
		var unsure *NotUnderstoodError
		if !errors.As(err, &unsure) {
			t.Errorf("%s: %v, want that it is not understood", profile, err)
		}
	}
}

func TestAnswersNameTheRule(t *testing.T) {
	p := parse(t, "(deny default)", `(allow file-read* (subpath "/a") (with report))`, `(deny file-read* (literal "/a/b"))`)
	got := p.Judge(Query{Op: "file-read-data", Path: "/a/b", Type: Regular}).String()
	if want := `deny (line 4: (deny file-read* (literal "/a/b")))`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestReplace(t *testing.T) {
	rules := []string{"(deny default)", `(allow file-read* (subpath "/a"))`, `(deny file-read* file-write* (literal "/a/b"))`, `(allow file-write* (subpath "/c"))`}
	p := parse(t, rules...)
	queries := []Query{}
	for _, op := range []string{"file-read-data", "file-write-data", "file-link"} {
		for _, name := range []string{"/a", "/a/b", "/a/c", "/c/d", "/d"} {
			queries = append(queries, Query{Op: op, Path: name, Type: Directory})
		}
	}
	for i := range rules {
		for _, rule := range []string{"", `(allow file-read* (literal "/d"))`, `(deny file-link)`} {
			got, err := p.Replace(i+2, rule)
			if err != nil {
				t.Fatal(err)
			}
			changed := slices.Clone(rules)
			changed[i] = rule
			want := parse(t, changed...)
			for _, q := range queries {
				if g, w := got.Judge(q), want.Judge(q); g.String() != w.String() {
					t.Errorf("line %d as %q: %s %s: %v, want %v", i+2, rule, q.Op, q.Path, g, w)
				}
			}
		}
	}
	if _, err := p.Replace(2, "(version 1)"); err == nil {
		t.Error("what is no rule was taken")
	}
}
