package seatbelt

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
)

func TestConfigured(t *testing.T) {
	for _, tt := range []struct {
		config string
		want   []string
	}{
		{"", nil},
		{"[core]\n\tbare = false\n", nil},
		{"[core]\n\thooksPath = .husky/_\n", []string{"/w/.husky/_"}},
		{"[core] hookspath = \"/abs/hooks/\"\n", []string{"/abs/hooks"}},
		{"[CORE]\nHooksPath=x\n[include]\n path = ../team\n", []string{"/w/x", "/w/team"}},
		{"[includeIf \"gitdir:~/work/\"]\n\tpath = extra\n", []string{"/w/.git/extra"}},
		{"[core]\n\tfsmonitor = true\n", nil},
		{"[core]\n\tfsmonitor = ./watch\n", []string{"/w/watch"}},
		{"[include]\n\tpath = ~/elsewhere\n", nil},
		{"[remote \"o\"]\n\tpath = x\n", nil},
		{"[core\n]\nhooksPath\n", nil},
	} {
		if got := configured(tt.config, "/w/.git", "/w"); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.config, got, tt.want)
		}
	}
}

// claude-code#33615: git in a linked worktree needs a repository that lies
// elsewhere; the plan says which path that is.
func TestLinkedWorktree(t *testing.T) {
	f := mac(nil)
	f.ReadFile = func(name string) ([]byte, error) {
		switch name {
		case testProj + "/.git":
			return []byte("gitdir: /Users/u/repo/.git/worktrees/w\n"), nil
		case "/Users/u/repo/.git/worktrees/w/commondir":
			return []byte("../..\n"), nil
		}
		return nil, errors.New("no such file")
	}
	find := func(pl *backends.Plan) string {
		for _, f := range pl.Findings {
			if f.Row == "repository" {
				return string(f.Status) + " " + f.Mend
			}
		}
		return ""
	}
	if got := find(plan(t, f, base())); !strings.HasPrefix(got, "DEGRADED") || !strings.Contains(got, `"/Users/u/repo/.git:rw"`) {
		t.Errorf("finding %q", got)
	}
	if got := find(plan(t, f, base(allow("/Users/u/repo/.git:rw")))); got != "" {
		t.Errorf("with the path allowed: %q", got)
	}
}

// A project's git configuration is the project's own text: whatever it is,
// reading it ends, and names nothing that is not absolute and clean.
func FuzzConfigured(f *testing.F) {
	for _, s := range []string{"[core]\n\thooksPath = .husky/_\n", "[include]\npath=../x\n[includeIf \"gitdir:/a]\"]\n path = \"y\"\n", "[core] fsmonitor = ./w\n", "[\n]=\\\n", "[a \"\\\"]\"]\nhookspath=\"a\\tb\"\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, config string) {
		for _, name := range configured(config, "/w/.git", "/w") {
			if !strings.HasPrefix(name, "/") || path.Clean(name) != name {
				t.Errorf("%q names %q", config, name)
			}
		}
	})
}
