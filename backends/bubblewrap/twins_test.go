package bubblewrap

import (
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func found(plan *backends.Plan, row, text string) backends.Status {
	for _, f := range plan.Findings {
		if f.Row == row && strings.Contains(f.Reason, text) {
			return f.Status
		}
	}
	return ""
}

// What is hidden is hidden wherever the host shows it: a home on a disk that is
// mounted twice is there under two names.
func TestPlanHidesUnderEachName(t *testing.T) {
	h := machine(map[string]string{
		"/home/u/.kgate/config.yaml": "x", "/home/u/.ssh/id": "x", "/data/u/.kgate/config.yaml": "x", "/data/u/.ssh/id": "x", "/data/u/other": "x",
	})
	h.mounts = []mountLine{
		{"8:1", "/", "/", "ext4"}, {"8:2", "/", "/data", "ext4"}, {"8:2", "/u", "/home/u", "ext4"}, {"0:5", "/", "/proc", "proc"},
	}
	p := person()
	p.DenyRead = []policy.Path{{Name: "/home/u/.ssh"}}
	p.Paths = []policy.Path{{Name: "/data/u", Write: true}}
	const kgate, ssh = "--perms 0000 --tmpfs /data/u/.kgate --remount-ro", "--perms 0000 --tmpfs /data/u/.ssh --remount-ro"
	order(t, planOf(t, h, p), "--bind /data/u /data/u", kgate, ssh)
	p.Paths = []policy.Path{{Name: "/data/u/.kgate"}}
	never(t, planOf(t, h, p), "--ro-bind /data/u/.kgate")
	// Without the second place there is nothing to hide at it.
	p.Paths = []policy.Path{{Name: "/data/u", Write: true}}
	h.mounts = h.mounts[:2]
	never(t, planOf(t, h, p), kgate, ssh)
}

func TestPlanTellsOfWhatAMountCannotKeep(t *testing.T) {
	h := machine(map[string]string{"/home/u/src/p/token": "x", "/home/u/src/p/bin/tool": "x", "/home/u/src/p/kgate": "x"})
	h.names = map[string]int{"token": 2}
	p := person()
	p.DenyRead = []policy.Path{{Name: "/home/u/src/p/token"}}
	b := New(h)
	plan := func() *backends.Plan {
		t.Helper()
		plan, err := b.Plan(p, backends.Command{Argv: []string{"true"}, Dir: p.Dir})
		if err != nil {
			t.Fatal(err)
		}
		return plan
	}
	for _, tt := range []struct {
		name, row, text string
		set             func()
		unset           func()
	}{
		{"hard links", "deny.read", "2 names", func() {}, func() { h.names = nil }},
		{"PATH", "ways out", "on PATH", func() { h.path = []string{"/usr/bin", "/home/u/src/p/bin"} }, func() { h.path = []string{"/usr/bin"} }},
		{"PATH without a directory", "ways out", "on PATH", func() { h.path = []string{"/usr/bin", "."} }, func() { h.path = []string{"/usr/bin"} }},
		{"kgate itself", "ways out", "kgate itself", func() { b.Stage.Source = "/home/u/src/p/kgate" }, func() { b.Stage.Source = "/usr/bin/kgate" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.set()
			if s := found(plan(), tt.row, tt.text); s != backends.Degraded {
				t.Errorf("%s: %q is %q, want DEGRADED", tt.row, tt.text, s)
			}
			if tt.name == "kgate itself" {
				order(t, plan(), "--ro-bind /home/u/src/p/kgate /home/u/src/p/kgate")
			}
			tt.unset()
			if s := found(plan(), tt.row, tt.text); s != "" {
				t.Errorf("%s: %q is said of nothing", tt.row, tt.text)
			}
		})
	}
	p.Paths = []policy.Path{{Name: "/run"}}
	if s := found(plan(), "allow.paths", "/run"); s != backends.Blocked {
		t.Errorf("/run as an allowed path is %q, want BLOCKED", s)
	}
}
