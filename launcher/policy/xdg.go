package policy

import (
	"path/filepath"
	"strings"
)

// moved are the directories below home that tools look for elsewhere when a
// variable says so (the XDG Base Directory Specification).
var moved = [...]struct{ variable, below string }{
	{"XDG_CONFIG_HOME", "/.config"},
	{"XDG_DATA_HOME", "/.local/share"},
}

// followXDG gives the defaults that speak of a directory which these variables
// move their meaning there too: what must not be read is not read at either
// place, and git's settings are shown where git reads them. What is kgate's own
// stays in ~/.kgate: the policy, the log and what the box hides must be one
// place, whatever the environment of a launch says.
func (p *Policy) followXDG(env []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "XDG_") {
			continue
		}
		name, dir, _ := strings.Cut(e, "=")
		for _, m := range moved {
			// A relative path counts as not set, as the specification has it.
			if name == m.variable && filepath.IsAbs(dir) && filepath.Clean(dir) != p.Home+m.below {
				p.alsoBelow(p.Home+m.below, filepath.Clean(dir), name)
			}
		}
	}
}

func (p *Policy) alsoBelow(from, to, variable string) {
	again := func(list []Path, key string) (out []Path) {
		for _, d := range list {
			if d.From.Kind == FromDefault && within(d.Name, from) {
				out = append(out, Path{Name: to + d.Name[len(from):], From: Origin{Kind: FromDefault, Key: key + " (" + variable + ")"}})
			}
		}
		return out
	}
	p.addDenyRead(again(p.DenyRead, "deny.read"))
	if !within(to, p.Home) {
		return // nothing hides it, so nothing needs showing
	}
	for _, a := range again(p.Paths, "allow.paths") {
		if allowable(a.Name, p.Home) == nil {
			p.addPaths([]Path{a})
		}
	}
}
