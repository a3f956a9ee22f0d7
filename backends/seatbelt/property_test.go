package seatbelt

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
	"github.com/kgate-dev/kgate/verify/sbpl"
)

// plain is the plain reading of a policy: deny beats allow, and of what is
// allowed the deepest path decides. It knows nothing of profiles.
type plain struct {
	project string
	paths   []policy.Path // real names
	deny    []string
	exec    []string
}

func below(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func (r plain) denied(p string) bool {
	for _, d := range r.deny {
		if below(p, d) {
			return true
		}
	}
	return false
}

// rights are what the deepest allowed path around p gives.
func (r plain) rights(p string) (read, write bool) {
	deepest := ""
	for _, a := range append([]policy.Path{{Name: r.project, Write: true}}, r.paths...) {
		if below(p, a.Name) && len(a.Name) >= len(deepest) {
			if len(a.Name) == len(deepest) {
				write = write || a.Write // named twice
			} else {
				write = a.Write
			}
			deepest, read = a.Name, true
		}
	}
	return read, write
}

func (r plain) may(op, p string) bool {
	read, write := r.rights(p)
	if r.denied(p) || !read {
		return false
	}
	for _, x := range r.exec {
		if p == x { // neither executed nor copied nor changed
			return op == "file-read-xattr"
		}
	}
	switch op {
	case "file-read-data", "file-read-xattr", "process-exec", "file-map-executable":
		return true
	}
	return write
}

var propertyNames = []string{"a", "b", "ab", "x y", `q"q`, `b\s`, "[a]", "a.b", "*", "(c", "d)", "$e", "-", "na\u00efve", "\u96ea"}

func randomPath(r *rand.Rand, root string, depth int) string {
	p := root
	for range 1 + r.IntN(depth) {
		p += "/" + propertyNames[r.IntN(len(propertyNames))]
	}
	return p
}

// A profile says of every path what the policy's plain reading says.
func TestPlainReading(t *testing.T) {
	const policies, questions = 350, 340
	asked, allowed := 0, 0
	for seed := range policies {
		r := rand.New(rand.NewPCG(uint64(seed), 4))
		p := base(project(randomPath(r, testHome, 2)))
		for range r.IntN(5) {
			root := []string{testHome, p.Project, "/Volumes/d"}[r.IntN(3)]
			p.Paths = append(p.Paths, policy.Path{Name: randomPath(r, root, 3), Write: r.IntN(2) == 0})
		}
		for range r.IntN(4) {
			p.DenyRead = append(p.DenyRead, policy.Path{Name: randomPath(r, []string{testHome, p.Project, p.Project, "/Volumes/d"}[r.IntN(4)], 3)})
		}
		rule := plain{project: p.Project, paths: p.Paths, deny: []string{testHome + "/.kgate"}}
		for _, d := range p.DenyRead {
			rule.deny = append(rule.deny, d.Name)
		}
		for range r.IntN(2) {
			f := randomPath(r, p.Project, 3)
			p.Programs = append(p.Programs, policy.Program{Name: "x", Path: f})
			rule.exec = append(rule.exec, f)
		}
		if rule.denied(p.Project) {
			continue // such a directory is refused before a plan is made
		}
		text := profileOf(plan(t, mac(nil), p)).Text()
		profile := judge(t, text)
		for range questions {
			name := randomPath(r, []string{testHome, p.Project, p.Project, "/Volumes/d"}[r.IntN(4)], 4)
			if r.IntN(3) == 0 && len(p.Paths)+len(p.DenyRead) > 0 {
				name = append(append([]policy.Path{}, p.Paths...), p.DenyRead...)[r.IntN(len(p.Paths)+len(p.DenyRead))].Name
			}
			op := []string{"file-read-data", "file-read-xattr", "file-write-data", "file-write-create", "process-exec", "file-map-executable"}[r.IntN(6)]
			want := sbpl.Deny
			if rule.may(op, name) {
				want = sbpl.Allow
				allowed++
			}
			asked++
			q := sbpl.Query{Op: op, Path: name, Type: sbpl.Regular}
			if name == p.Project {
				q.Type = sbpl.Directory
			}
			if got := profile.Judge(q); got.Verdict != want {
				t.Fatalf("policy %d: %s %q: got %v, want %v\nproject %q\npaths %+v\ndeny %q\nexec %q\n%s", seed, op, name, got, want, p.Project, p.Paths, rule.deny, rule.exec, text)
			}
			// Another case of the name is the same file: what is not allowed by one
			// name is not allowed by another. What is may be, or is not known.
			q.Path = strings.Replace(name, "/a", "/A", 1)
			if got := profile.Judge(q); q.Path != name && want == sbpl.Deny && got.Verdict == sbpl.Allow {
				t.Fatalf("policy %d: %s %q: got %v, but %q is denied\n%s", seed, op, q.Path, got, name, text)
			}
		}
	}
	if asked < 100_000 || allowed < asked/10 || allowed > asked*9/10 {
		t.Errorf("%d questions, %d of them allowed", asked, allowed)
	}
	t.Logf("%d questions, %d of them allowed", asked, allowed)
}

// A path, whatever is in its name, gives the profile that path and nothing
// else; a path that has no safe spelling gives no profile.
func checkName(t *testing.T, name string) {
	dir := testHome + "/" + name
	p := base(project(dir+"/p"), allow(dir+"/w:rw", dir+"/r"), denyRead(dir+"/p/s"), denyExec(dir+"/p/x"))
	pl, err := New(mac(nil)).Plan(p, backends.Command{Argv: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(pl.Blocked()) > 0 {
		if unspeakable(path.Clean(dir)) == "" {
			t.Fatalf("%q: %v", name, pl.Blocked())
		}
		return
	}
	text := profileOf(pl).Text()
	profile, err := sbpl.Parse(text)
	if err != nil {
		t.Fatalf("%q: %v\n%s", name, err, text)
	}
	// The same policy with plain names has the same rules, line for line.
	q := base(project(testHome+"/n/p"), allow(testHome+"/n/w:rw", testHome+"/n/r"), denyRead(testHome+"/n/p/s"), denyExec(testHome+"/n/p/x"))
	simple := profileOf(plan(t, mac(nil), q))
	if a, b := shape(text), shape(simple.Text()); a != b && strings.Count(path.Clean(dir), "/") == 3 {
		t.Fatalf("%q changes the rules:\n%s", name, difference(b, a))
	}
	dir = path.Clean(dir)
	for _, r := range []struct {
		op, path string
		want     sbpl.Verdict
	}{
		{"file-write-data", dir + "/p/f", sbpl.Allow},
		{"file-write-data", dir + "/w/f", sbpl.Allow},
		{"file-read-data", dir + "/r/f", sbpl.Allow},
		{"file-write-data", dir + "/r/f", sbpl.Deny},
		{"file-read-data", dir + "/p/s", sbpl.Deny},
		{"file-read-data", dir + "/p/s/f", sbpl.Deny},
		{"process-exec", dir + "/p/x", sbpl.Deny},
		{"file-read-data", testHome + "/other-than-any/f", sbpl.Deny},
		{"file-write-data", "/private/etc/hosts", sbpl.Deny},
		{"file-read-data", testHome + "/.ssh/id", sbpl.Deny},
	} {
		if !below(testHome+"/.ssh", dir) && !below(dir, testHome+"/.ssh") || strings.HasPrefix(r.path, dir+"/") {
			if got := profile.Judge(sbpl.Query{Op: r.op, Path: r.path, Type: sbpl.Regular}); got.Verdict != r.want {
				// A name that only resembles one of these is not known.
				if got.Verdict == sbpl.Unknown && !strings.HasPrefix(r.path, dir+"/") {
					continue
				}
				t.Fatalf("%q: %s %q: %v, want %v\n%s", name, r.op, r.path, got, r.want, text)
			}
		}
	}
	for _, q := range []sbpl.Query{
		{Op: "network-outbound", Net: &sbpl.Net{Side: "remote", Proto: "tcp", Port: 443}},
		{Op: "mach-lookup", Name: "com.apple.coreservices.launchservicesd"},
		{Op: "process-exec", Path: "/Applications/x", Type: sbpl.Regular},
		{Op: "signal", Target: "others"},
	} {
		if got := profile.Judge(q); got.Verdict != sbpl.Deny {
			t.Fatalf("%q: %s: %v", name, q.Op, got)
		}
	}
}

// shape is a profile without what stands in strings.
func shape(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(strings.NewReplacer(`\\`, "", `\"`, "").Replace(line), `"`) {
			if i%2 == 0 {
				b.WriteString(part)
			}
		}
	}
	return b.String()
}

var oddNames = []string{
	"n", "a b", `a"b`, `a\b`, `\`, `"`, `\"`, `a\"))(allow default)(deny file-read* (literal \"/x`, `")) (allow default) ;`, ") (allow default)",
	"a;b", "#", `#"`, "a\nb", "a\rb", "a\tb", "\x00", "\x7f", "\x1b[2J", "a\xffb", "\xc3\x28", "caf\u00e9", "cafe\u0301", "\u2126", "\u00df",
	"K\u212a", "\u017fsh", "\u200d", "\u2028", "\u0085", "\U0001f600", "[a-z]", "^", "$", "(.*)?", ".*", "{1,9}", "a|b", "a+b?", "a'b`c", "..", ".", "...", "(?i)x", "a/b/c", "A/a",
	strings.Repeat("x", 255), strings.Repeat("\u00e9", 120), strings.Repeat(`"`, 200),
}

func TestOddNames(t *testing.T) {
	for _, name := range oddNames {
		t.Run(fmt.Sprintf("%.40q", name), func(t *testing.T) { checkName(t, name) })
	}
}

func FuzzNames(f *testing.F) {
	for _, name := range oddNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		clean := path.Clean(testHome + "/" + name)
		// The policy's own paths are clean; a name that leads out of the home
		// directory or onto kgate's own is another test's.
		if name == "" || strings.HasPrefix(strings.ToLower(clean), testHome+"/.kgate") || !strings.HasPrefix(clean, testHome+"/") || len(name) > 1000 ||
			strings.EqualFold(path.Base(clean), ".git") || strings.Contains(strings.ToLower(clean), "/.git/") {
			return
		}
		checkName(t, strings.TrimPrefix(clean, testHome+"/"))
	})
}

// The spelling of a string reads back as the string.
func FuzzQuote(f *testing.F) {
	for _, name := range oddNames {
		f.Add("/" + name)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if unspeakable(p) != "" {
			return
		}
		profile, err := sbpl.Parse("(version 1)(deny default)(allow file-read-data " + literal(p) + ")(deny file-read-xattr " + every(p) + ")")
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if got := profile.Judge(sbpl.Query{Op: "file-read-data", Path: p, Type: sbpl.Regular}); got.Verdict != sbpl.Allow {
			t.Fatalf("%q: %v", p, got)
		}
		if got := profile.Judge(sbpl.Query{Op: "file-read-data", Path: p + "x", Type: sbpl.Regular}); got.Verdict == sbpl.Allow {
			t.Fatalf("%q: more than the path: %v", p, got)
		}
	})
}
