package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// wider says what the merged policy permits that the person's alone does not,
// "" when there is nothing. It asks what a launch could do, and shares no code
// with the merging.
func wider(base, merged *Policy) string {
	if merged.Nested.Value && !base.Nested.Value {
		return "user namespaces"
	}
	if merged.IPv6.Value && !base.IPv6.Value {
		return "IPv6"
	}
	var names, files, variables []string
	for _, p := range []*Policy{base, merged} {
		for _, h := range p.Hosts {
			n := h.Name
			if h.Addr.IsValid() {
				n = h.Addr.String()
			}
			names = append(names, n, "x."+n, "x.y."+n, "x"+n)
		}
		for _, list := range [][]Path{p.Paths, p.DenyRead} {
			for _, f := range list {
				files = append(files, f.Name, f.Name+"/x", path.Dir(f.Name), f.Name+"x")
			}
		}
		for _, list := range [][]Word{p.EnvDrop, p.EnvPass} {
			for _, w := range list {
				fill := strings.NewReplacer("*", "X", "?", "Y")
				variables = append(variables, fill.Replace(w.Text), strings.ToUpper(fill.Replace(w.Text)), strings.ReplaceAll(w.Text, "*", ""))
			}
		}
	}
	for _, n := range append(names, "other.test", "203.0.113.77") {
		for _, port := range []uint16{1, 53, 80, 443, 65535} {
			if reaches(merged, n, port) && !reaches(base, n, port) {
				return fmt.Sprintf("host %s:%d", n, port)
			}
		}
	}
	for _, f := range files {
		r1, w1 := sees(base, f)
		r2, w2 := sees(merged, f)
		if (r2 && !r1) || (w2 && !w1) {
			return fmt.Sprintf("path %q", f)
		}
	}
	has := func(list []Word, text string) bool {
		for _, w := range list {
			if w.Text == text {
				return true
			}
		}
		return false
	}
	for _, w := range base.DenyExec {
		if !has(merged.DenyExec, w.Text) {
			return "program " + w.Text
		}
	}
	for _, a := range base.Programs {
		found := false
		for _, b := range merged.Programs {
			found = found || (a.Path == b.Path && (a.Multicall || !b.Multicall))
		}
		if !found {
			return "file " + a.Path
		}
	}
	for _, w := range base.MaskPrefixes {
		if !has(merged.MaskPrefixes, w.Text) {
			return "prefix " + w.Text
		}
	}
	for _, w := range base.MaskEnv {
		if !has(merged.MaskEnv, w.Text) {
			return "masked variable " + w.Text
		}
	}
	for _, v := range append(variables, "A_TOKEN", "HOME", "B") {
		a, _ := base.Environment([]string{v + "=1"})
		b, _ := merged.Environment([]string{v + "=1"})
		if len(b) > len(a) {
			return "variable " + v
		}
	}
	if merged.Project != base.Project || merged.Dir != base.Dir || !reflect.DeepEqual(merged.Homes, base.Homes) {
		return "place"
	}
	return ""
}

func reaches(p *Policy, name string, port uint16) bool {
	switch p.Effective().Value {
	case Open:
		return true
	case Restricted:
		for _, h := range p.Hosts {
			if h.Port != 0 && h.Port != port {
				continue
			}
			if h.Addr.IsValid() && h.Addr.String() == name {
				return true
			}
			if h.Name != "" && (!h.Wildcard && h.Name == name || h.Wildcard && len(name) > len(h.Name)+1 && strings.HasSuffix(name, "."+h.Name)) {
				return true
			}
		}
	}
	return false
}

func sees(p *Policy, name string) (read, write bool) {
	up := func(dir string) bool {
		return strings.HasPrefix(name+"/", strings.TrimSuffix(dir, "/")+"/")
	}
	for _, d := range p.DenyRead {
		if up(d.Name) {
			return false, false
		}
	}
	for _, a := range p.Paths {
		if up(a.Name) {
			read = true
			write = write || a.Write
		}
	}
	return read, write
}

const (
	fuzzUser = `version: 1
network: restricted
allow:
  hosts: [a.test, "*.b.test", "c.test:443", 203.0.113.9]
  paths: [~/a, {path: ~/w, write: true}, /opt/x]
deny: {read: [~/a/secret], exec: [npm]}
mask: {prefixes: [corp_], env: [V]}
env: {pass: [A_TOKEN], drop: [B]}
`
	fuzzProject = `network: off
ipv6: false
deny: {read: [.env], exec: [make]}
drop: {hosts: [a.test, x.b.test], paths: [~/a, ~/w/x]}
mask: {prefixes: [proj_], env: [W]}
env: {drop: [A_*]}
`
)

func FuzzMerge(f *testing.F) {
	f.Add(fuzzUser, fuzzProject)
	f.Add("network: open", fuzzProject)
	f.Add("network: off", "network: open")
	f.Add("", "network: restricted\nallow: {hosts: [a.test]}")
	f.Add(fuzzUser, "ipv6: true")
	f.Add(fuzzUser, "allow: {nested: true, paths: [/etc]}")
	f.Add(fuzzUser, "drop: {exec: [npm, curl], read: [~/a/secret]}")
	f.Add(fuzzUser, "env: {pass: ['*']}")
	f.Add("ipv6: true\nallow: {nested: true}", "drop: {hosts: ['*.test']}")
	corpus, err := filepath.Glob("testdata/invalid/*")
	if err != nil || len(corpus) == 0 {
		f.Fatal("no corpus", err)
	}
	for _, name := range corpus {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 4096 {
			f.Add(fuzzUser, string(text))
		}
	}
	w := newWorld(f)
	project := w.proj("")
	f.Fuzz(func(t *testing.T, user, text string) {
		if len(user)+len(text) > 1<<14 {
			return
		}
		w := &world{t, w.home, w.project}
		if err := os.Remove(project); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		w.user(user)
		base, err := Load(w.options())
		if err != nil {
			var fe *FileError
			var refused *RefusedError
			if (!errors.As(err, &fe) && !errors.As(err, &refused)) || strings.Contains(err.Error(), "\n") {
				t.Errorf("not one error about a file: %v", err)
			}
			return
		}
		w.proj(text)
		merged, err := Load(w.options())
		if err != nil {
			return // nothing runs
		}
		if what := wider(base, merged); what != "" {
			t.Errorf("wider: %s\nuser:\n%s\nproject:\n%s", what, user, text)
		}
		again, err := Load(w.options())
		if err != nil || !reflect.DeepEqual(stable(merged), stable(again)) {
			t.Errorf("loading again gives something else: %v", err)
		}
	})
}

// FuzzSetNetwork: an edit gives the mode asked for and changes no other value,
// or is refused and changes nothing.
func FuzzSetNetwork(f *testing.F) {
	f.Add(fuzzUser)
	f.Add("{network: off}")
	f.Add("# only\n")
	f.Add("---\nversion: 1\n...\n")
	f.Add("a: b\n")
	f.Add("network: 'open' # network: open\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		const file = "/home/u/.kgate/config.yaml"
		for _, mode := range []Network{Off, Restricted, Open} {
			edited, err := setNetwork([]byte(text), file, mode)
			before, perr := parse([]byte(text), file, FromUser, "/home/u", "/home/u")
			if perr != nil && err == nil {
				t.Fatalf("edited a wrong file %q", text)
			}
			if err != nil {
				continue
			}
			after, err := parse(edited, file, FromUser, "/home/u", "/home/u")
			if err != nil || after.network == nil || after.network.Value != mode || !sameBut(before, after) {
				t.Fatalf("%q became %q: %v", text, edited, err)
			}
			if before.network != nil && strings.Count(string(edited), "\n") != strings.Count(text, "\n") {
				t.Fatalf("%q became %q: lines moved", text, edited)
			}
		}
	})
}

// The checker itself finds what is wider.
func TestWiderFinds(t *testing.T) {
	w := newWorld(t)
	load := func(text string) *Policy {
		w.user(text)
		return w.load()
	}
	base := load(fuzzUser)
	for _, change := range [][2]string{
		{"network: restricted", "network: open"},
		{"c.test:443", "c.test"},
		{"*.b.test", "*.test"},
		{"[a.test", "[d.test, a.test"},
		{"[~/a, ", "[~/b, "},
		{"[~/a, ", "[{path: ~/a, write: true}, "},
		{"[~/a/secret]", "[]"},
		{"[npm]", "[]"},
		{"[corp_]", "[]"},
		{"env: [V]", "env: []"},
		{"[A_TOKEN]", "[A_TOKEN, B]"},
		{"drop: [B]", "drop: []"},
		{"version: 1", "ipv6: true"},
		{"allow:", "allow:\n  nested: true"},
		{"version: 1", "drop: {exec: [sh, curl]}"},
	} {
		changed := strings.Replace(fuzzUser, change[0], change[1], 1)
		if changed == fuzzUser {
			t.Fatalf("%q is not in the text", change[0])
		}
		if wider(base, load(changed)) == "" {
			t.Errorf("%q to %q is not found", change[0], change[1])
		}
		if got := wider(base, load(fuzzUser)); got != "" {
			t.Errorf("the same is wider: %s", got)
		}
	}
}

// randomFile writes a policy file of a few words, so that layers meet often.
func randomFile(r *rand.Rand, project bool) string {
	var b strings.Builder
	list := func(key string, from ...string) {
		if r.IntN(3) == 0 {
			return
		}
		fmt.Fprintf(&b, "  %s:\n", key)
		for range r.IntN(4) {
			fmt.Fprintf(&b, "    - %s\n", from[r.IntN(len(from))])
		}
	}
	hosts := []string{"a.test", "b.test", `"*.a.test"`, "x.a.test", `"a.test:443"`, `"*.test:80"`, "203.0.113.9", `"203.0.113.9:443"`}
	paths := []string{"~/a", "~/a/b", "~/a/b/c", "/opt/x", "~", "b", "../a", "~/.ssh", "~/.gitconfig"}
	programs := []string{"npm", "curl", "sh", "~/bin/x", "tools/y", "nc"}
	variables := []string{"A_TOKEN", `"*"`, `"A_*"`, "a_token", "B", `"?"`, "HOME"}
	modes := []string{"off", "restricted", "open"}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "network: %s\n", modes[r.IntN(3)])
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "ipv6: %v\n", !project && r.IntN(2) == 0)
	}
	if !project {
		fmt.Fprintf(&b, "allow:\n  nested: %v\n", r.IntN(2) == 0)
		list("hosts", hosts...)
		list("paths", append(paths, "{path: ~/a, write: true}", "{path: ~/a/b, write: true}")...)
	}
	b.WriteString("deny:\n")
	list("read", paths[1:4]...)
	list("exec", programs...)
	b.WriteString("drop:\n")
	list("hosts", hosts...)
	list("paths", paths...)
	if !project {
		list("read", paths...)
		list("exec", programs...)
	}
	b.WriteString("mask:\n")
	list("prefixes", "corp_", "proj_")
	list("env", "A", "B")
	b.WriteString("env:\n")
	list("drop", variables...)
	if !project {
		list("pass", variables...)
	}
	return b.String()
}

func TestMergeNeverWidens(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t)
	merges := 0
	for range 150 {
		user, text := randomFile(r, false), randomFile(r, true)
		w.user(user)
		if err := os.RemoveAll(w.project + "/.kgate.yaml"); err != nil {
			t.Fatal(err)
		}
		base := w.load()
		w.proj(text)
		merged, err := Load(w.options())
		if err != nil {
			if !strings.Contains(err.Error(), "is wider than") {
				t.Fatalf("%v\n%s", err, text)
			}
			continue
		}
		merges++
		if what := wider(base, merged); what != "" {
			t.Fatalf("wider: %s\nuser:\n%s\nproject:\n%s", what, user, text)
		}
	}
	if merges < 70 {
		t.Errorf("only %d merges", merges)
	}
}
