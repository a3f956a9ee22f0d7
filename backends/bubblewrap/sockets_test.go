package bubblewrap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

const inProject = "/home/u/src/p/"

// masks are the sockets that a plan masks, in its own order.
func masks(plan *backends.Plan) string {
	var all []string
	for _, p := range plan.Parts {
		if path, ok := strings.CutPrefix(p.Name, "mask-socket:"); ok {
			all = append(all, strings.TrimPrefix(path, inProject))
		}
	}
	return strings.Join(all, " ")
}

// A socket's name on the kernel's list is the one that it was bound to: relative,
// or a place where it is no more. Its file says where it is.
func TestPlanMasksSocketsByFile(t *testing.T) {
	host := func() *fakeHost {
		return machine(map[string]string{
			inProject + "named": "sock 1", inProject + "a/relative": "sock 2", inProject + "a/b/moved": "sock 3", inProject + ".git/ipc": "sock 4",
			inProject + "linked": "sock 5", inProject + "dead": "sock 6", inProject + "other-device": "sock 7", "/run/s": "sock 5",
			"/data/dead": "sock 8", inProject + "link": "-> a/relative", inProject + "objects/x": "sock 9", inProject + ".vscode/x": "sock 10",
		})
	}
	bound := []Bound{
		{inProject + "named", Inode{1, 1}}, {"relative", Inode{1, 2}}, {inProject + "before", Inode{1, 3}}, {".git/ipc", Inode{1, 4}},
		{"/run/s", Inode{1, 5}}, {"other", Inode{2, 7}}, {"x", Inode{1, 9}}, {"x", Inode{1, 10}},
	}
	const listed = ".git/ipc .vscode/x a/b/moved a/relative linked named objects/x"
	const every = ".git/ipc .vscode/x a/b/moved a/relative dead linked named objects/x other-device"
	for _, c := range []struct {
		name   string
		change func(*fakeHost)
		want   string
	}{
		{"listed", func(*fakeHost) {}, listed},
		{"names alone", func(h *fakeHost) { h.namesOnly = true }, every},
		{"no list", func(h *fakeHost) { h.noSockets = true }, every},
		{"another device of stat(2)", func(h *fakeHost) { h.noDevices = true }, every},
		{"nobody listens", func(h *fakeHost) { h.sockets = nil }, ""},
	} {
		h := host()
		h.sockets = bound
		c.change(h)
		plan := planOf(t, h, person())
		if got := masks(plan); got != c.want {
			t.Errorf("%s: masked %s", c.name, got)
		}
		if !hasRow(plan, "sockets", backends.Ready) {
			t.Errorf("%s: %v", c.name, plan.Findings)
		}
	}
	// Around the project each is masked, whoever listens.
	p := person()
	p.Paths = []policy.Path{{Name: "/data", Write: true}}
	h := host()
	if got := masks(planOf(t, h, p)); got != "/data/dead" {
		t.Errorf("masked %s", got)
	}
	p.Paths = []policy.Path{{Name: inProject + "named", Write: true}}
	h.sockets = bound
	if got := masks(planOf(t, h, p)); strings.Contains(got, "named") {
		t.Errorf("allowed by name, and masked: %s", got)
	}
}

// Where not all of a tree was looked through, a socket that may lie in it is said
// to be there.
func TestPlanTellsOfSocketsAstray(t *testing.T) {
	large := map[string]string{inProject + "seen": "sock 1", inProject + "a/b/c/d/e/f/g/deep": "sock 2", "/run/s": "sock 3", inProject + "named": "sock 4"}
	for _, c := range []struct {
		name   string
		bound  []Bound
		change func(*fakeHost)
		want   backends.Status
	}{
		{"none", nil, nil, backends.Ready},
		{"found", []Bound{{"seen", Inode{1, 1}}}, nil, backends.Ready},
		{"where its name says", []Bound{{"/run/s", Inode{1, 3}}, {inProject + "named", Inode{1, 4}}}, nil, backends.Ready},
		{"relative", []Bound{{"deep", Inode{1, 2}}}, nil, backends.Degraded},
		{"moved", []Bound{{"/run/deep", Inode{1, 2}}}, nil, backends.Degraded},
		{"another device", []Bound{{"deep", Inode{2, 2}}, {"/run/deep", Inode{2, 2}}}, nil, backends.Ready},
		{"another device of stat(2)", []Bound{{"deep", Inode{2, 2}}}, func(h *fakeHost) { h.noDevices = true }, backends.Degraded},
		{"names alone", []Bound{{Name: "deep"}}, func(h *fakeHost) { h.namesOnly = true }, backends.Degraded},
		{"absolute names alone", []Bound{{Name: "/run/deep"}}, func(h *fakeHost) { h.namesOnly = true }, backends.Ready},
		{"no list", nil, func(h *fakeHost) { h.noSockets = true }, backends.Degraded},
	} {
		h := machine(large)
		h.sockets = c.bound
		if c.change != nil {
			c.change(h)
		}
		if plan := planOf(t, h, person()); !hasRow(plan, "sockets", c.want) {
			t.Errorf("%s: %v", c.name, plan.Findings)
		}
	}
	h := machine(map[string]string{inProject + "node_modules/x/deep": "sock 2"})
	h.sockets = []Bound{{"deep", Inode{1, 2}}}
	if plan := planOf(t, h, person()); !hasRow(plan, "sockets", backends.Degraded) {
		t.Errorf("%v", plan.Findings)
	}
}

// Many masks in one directory become one.
func TestPlanGathersSockets(t *testing.T) {
	h := machine(map[string]string{inProject + "run/not-one": "x"})
	for i := range 3 * fewMasks {
		h.files[fmt.Sprintf("%ssockets/%d", inProject, i)] = "sock"
		if i < fewMasks/2 {
			h.files[fmt.Sprintf("%srun/%d", inProject, i)] = "sock"
		}
	}
	h.noSockets = true
	plan := planOf(t, h, person())
	order(t, plan, "--ro-bind /dev/null "+inProject+"run/1", "--perms 0000 --tmpfs "+inProject+"sockets")
	never(t, plan, inProject+"sockets/1", "--tmpfs "+inProject+"run ")
}

// Existing files of tools are read-only wherever they lie, and what is not there
// can be made but at the top.
func TestPlanKeepsToolsFilesBelow(t *testing.T) {
	h := machine(map[string]string{
		inProject + "a/.envrc": "x", inProject + "a/b/.vscode/tasks.json": "x", inProject + "a/b/.vscode/.mcp.json": "x", inProject + "a/.kgate.yaml": "x",
		inProject + "a/opencode.json": "x", inProject + "a/.claude": "dir", inProject + "a/vscode": "x", inProject + "node_modules/x/.envrc": "x",
	})
	plan := planOf(t, h, person())
	frozen := func(name string) string { return "--ro-bind " + inProject + name + " " + inProject + name }
	order(t, plan, frozen("a/.envrc"), frozen("a/.kgate.yaml"), frozen("a/b/.vscode"), frozen("a/opencode.json"))
	order(t, plan, "--bind /home/u/src/p/a /home/u/src/p/a", "--perms 0555 --tmpfs /home/u/src/p/a/.claude")
	never(t, plan, "node_modules", "a/vscode", "a/.idea", ".vscode/.mcp.json", "a/b/.envrc")
	p := person()
	p.Paths = []policy.Path{{Name: inProject + "a/.envrc", Write: true}}
	never(t, planOf(t, h, p), frozen("a/.envrc"))

	for _, n := range []int{mostTools, mostTools + 1} {
		h := machine(nil)
		for i := range n {
			h.files[fmt.Sprintf("%s%d/.envrc", inProject, i)] = "x"
		}
		plan := planOf(t, h, person())
		if got := strings.Count(line(plan), "/.envrc --"); got < mostTools || got > mostTools+2 {
			t.Errorf("%d of %d are kept", got, n)
		}
		if hasRow(plan, "ways out", backends.Degraded) != (n > mostTools) {
			t.Errorf("%d: %v", n, plan.Findings)
		}
	}
}
