package seatbelt

import (
	"path"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
	"github.com/kgate-dev/kgate/verify/sbpl"
)

const (
	testTemp = "/private/var/folders/ab/cd/T/kgate-1"
	testHome = "/Users/u"
	testProj = "/Users/u/proj"
)

// mac are the facts of a model of a Mac with the given symlinks.
func mac(links map[string]string, exist ...string) Facts {
	all := map[string]string{"/tmp": "/private/tmp", "/var": "/private/var", "/etc": "/private/etc"}
	for at, to := range links {
		all[at] = to
	}
	return Facts{
		Follow: func(name string) Real {
			var r Real
			rest, done := path.Clean(name), "/"
			for rest != "" && rest != "/" {
				part, more, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
				at := path.Join(done, part)
				if to, ok := all[at]; ok {
					r.Links = append(r.Links, at)
					if !path.IsAbs(to) {
						to = path.Join(done, to)
					}
					rest, done = path.Join(to, more), "/"
					continue
				}
				done, rest = at, more
			}
			r.Path = done
			return r
		},
		Exists: func(name string) bool {
			for _, e := range exist {
				if e == name {
					return true
				}
			}
			return false
		},
		Developer: "/Library/Developer/CommandLineTools",
		Kgate:     "/usr/local/bin/kgate",
		Temp:      testTemp,
		UserTemp:  path.Dir(testTemp),
	}
}

func from(key string) policy.Origin {
	return policy.Origin{Kind: policy.FromUser, File: "/Users/u/.kgate/config.yaml", Line: 1, Key: key}
}

func base(change ...func(*policy.Policy)) *policy.Policy {
	p := &policy.Policy{
		Home: testHome, Homes: []string{testHome}, Project: testProj, Dir: testProj,
		Network: policy.Mode{Value: policy.Off, From: from("network")},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func network(m policy.Network) func(*policy.Policy) {
	return func(p *policy.Policy) { p.Network.Value = m }
}
func allow(names ...string) func(*policy.Policy) {
	return func(p *policy.Policy) {
		for _, n := range names {
			n, write := strings.CutSuffix(n, ":rw")
			p.Paths = append(p.Paths, policy.Path{Name: n, Write: write, From: from("allow.paths")})
		}
	}
}
func denyRead(names ...string) func(*policy.Policy) {
	return func(p *policy.Policy) {
		for _, n := range names {
			p.DenyRead = append(p.DenyRead, policy.Path{Name: n, From: from("deny.read")})
		}
	}
}
func denyExec(files ...string) func(*policy.Policy) {
	return func(p *policy.Policy) {
		for _, f := range files {
			p.DenyExec = append(p.DenyExec, policy.Word{Text: path.Base(f), From: from("deny.exec")})
			p.Programs = append(p.Programs, policy.Program{Name: path.Base(f), Path: f, From: from("deny.exec")})
		}
	}
}
func project(dir string) func(*policy.Policy) {
	return func(p *policy.Policy) { p.Project, p.Dir = dir, dir }
}

// plan is the plan of a policy, which must not be blocked.
func plan(t testing.TB, f Facts, p *policy.Policy) *backends.Plan {
	t.Helper()
	pl, err := New(f).Plan(p, backends.Command{Argv: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	if b := pl.Blocked(); len(b) > 0 {
		t.Fatalf("blocked: %v", b)
	}
	return pl
}

func profileOf(pl *backends.Plan) *Profile { return pl.Extra.(*Profile) }

func judge(t testing.TB, text string) *sbpl.Profile {
	t.Helper()
	p, err := sbpl.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// row is one question with the answer that a policy's plain reading gives. Ask
// may instead act in a world and say what is wrong.
type row struct {
	what string
	q    sbpl.Query
	want sbpl.Verdict
	ask  func(*sbpl.Profile) string
}

// check returns what is wrong with a profile according to the row, "" if nothing.
func (r row) check(p *sbpl.Profile) string {
	if r.ask != nil {
		if wrong := r.ask(p); wrong != "" {
			return r.what + ": " + wrong
		}
		return ""
	}
	if got := p.Judge(r.q); got.Verdict != r.want {
		return r.what + ": " + r.q.Op + " " + r.q.Path + r.q.Name + ": got " + got.String() + ", want " + r.want.String()
	}
	return ""
}
