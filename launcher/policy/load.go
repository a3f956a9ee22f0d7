package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Options is what a policy is loaded for.
type Options struct {
	Dir         string   // the working directory, absolute
	Home        string   // $HOME; "" when it is not set
	AccountHome string   // the home that the user database names; "" when it names none
	Env         []string // kgate's own environment; only PATH is read

	AllowPaths []string // --allow-path P[:rw]
	AllowNets  []string // --allow-net HOST[:PORT]
	Network    string   // --network MODE, which may only tighten; "" when not given
	EnvPass    []string // --env NAME
}

// Load reads and merges the policy of a launch: the defaults, the person's
// file, the project's files, the one-shot flags, in this order. It returns a
// *RefusedError when the working directory must not be the scope of a launch,
// and a *FileError for a mistake in a file or a flag. Nothing is written.
func Load(o Options) (*Policy, error) {
	pl, err := locatePlace(o)
	if err != nil {
		return nil, err
	}
	p := defaults(pl.homes[0])
	p.followXDG(o.Env)
	p.Homes = pl.homes
	p.Project, p.Dir = pl.project, pl.dir
	p.UserFile = filepath.Join(p.Home, ".kgate", "config.yaml")

	data, err := readFile(p.UserFile, FromUser)
	if err != nil {
		return nil, err
	}
	if data != nil {
		doc, err := parse(data, p.UserFile, FromUser, p.Home, p.Home)
		if err != nil {
			return nil, err
		}
		p.applyUser(doc)
	}
	for _, file := range pl.files {
		data, err := readFile(file, FromProject)
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		doc, err := parse(data, file, FromProject, p.Home, filepath.Dir(file))
		if err == nil {
			err = p.applyProject(doc)
		}
		if err != nil {
			return nil, err
		}
		p.ProjectFiles = append(p.ProjectFiles, file)
	}
	if len(p.ProjectFiles) > 0 {
		p.ProjectFile = p.ProjectFiles[0]
	}
	if err := p.applyFlags(o); err != nil {
		return nil, err
	}
	if err := p.checkDir(o.Dir); err != nil {
		return nil, err
	}
	p.Programs = locate(p.DenyExec, p.programDirs(o.Env))
	return p, nil
}

func (p *Policy) applyUser(d *document) {
	if d.network != nil {
		p.Network = *d.network
	}
	if d.ipv6 != nil {
		p.IPv6 = *d.ipv6
	}
	if d.mtu != nil {
		p.MTU = *d.mtu
	}
	if d.nested != nil {
		p.Nested = *d.nested
	}
	// The file's drop takes off what the defaults put on, so it comes before the
	// file's own paths and denials. Hosts have no defaults: there a drop beats
	// the file's own entries, as a denial would.
	p.dropPaths(d.dropPaths, false)
	p.DenyRead = dropNames(p.DenyRead, d.dropRead)
	p.DenyExec = dropWords(p.DenyExec, d.dropExec)
	p.addHosts(d.hosts)
	p.dropHosts(d.dropHosts)
	p.addPaths(d.paths)
	p.addDenials(d)
	p.EnvPass = addWords(p.EnvPass, d.envPass)
	if d.journald != nil {
		p.Journald = *d.journald
	}
	if d.syslog != nil {
		p.Syslog = *d.syslog
	}
}

func (p *Policy) applyProject(d *document) error {
	if d.network != nil {
		if err := p.tighten(*d.network); err != nil {
			return err
		}
	}
	if d.ipv6 != nil && p.IPv6.Value {
		p.IPv6 = *d.ipv6
	}
	p.dropHosts(d.dropHosts)
	p.dropPaths(d.dropPaths, true)
	p.addDenials(d)
	return nil
}

// addDenials adds what narrows, in whatever layer.
func (p *Policy) addDenials(d *document) {
	p.addDenyRead(d.denyRead)
	p.DenyExec = addWords(p.DenyExec, d.denyExec)
	p.MaskPrefixes = addWords(p.MaskPrefixes, d.maskPrefixes)
	p.MaskEnv = addWords(p.MaskEnv, d.maskEnv)
	// Not deduplicated across layers: a project's drop counts for more than the
	// same drop in the person's file.
	p.EnvDrop = append(p.EnvDrop, d.envDrop...)
}

func (p *Policy) applyFlags(o Options) error {
	flag := func(name string) Origin { return Origin{Kind: FromFlag, Key: name} }
	if o.Network != "" {
		m, err := ParseNetwork(o.Network)
		if err != nil {
			return at(flag("--network"), err.Error(), "")
		}
		if err := p.tighten(Mode{m, flag("--network")}); err != nil {
			return err
		}
	}
	for _, s := range o.AllowPaths {
		path, err := parsePathFlag(s, p.Home, p.Dir)
		if err != nil {
			return at(flag("--allow-path"), err.Error(), "")
		}
		path.From = flag("--allow-path")
		p.addPaths([]Path{path})
	}
	for _, s := range o.AllowNets {
		h, err := parseHost(s)
		if err != nil {
			return at(flag("--allow-net"), err.Error(), "")
		}
		if p.Network.Value == Off {
			return at(flag("--allow-net"), fmt.Sprintf("%s cannot be reached with network off, which comes from %s", excerpt(s), p.Network.From),
				"set network: restricted there")
		}
		h.From = flag("--allow-net")
		p.addHosts([]Host{h})
	}
	for _, s := range o.EnvPass {
		if err := checkPattern(s); err != nil {
			return at(flag("--env"), err.Error(), "")
		}
		p.EnvPass = addWords(p.EnvPass, []Word{{s, flag("--env")}})
	}
	return nil
}

// parsePathFlag reads P, P:rw or P:ro. The last is for a path whose own name
// ends in ":rw".
func parsePathFlag(s, home, dir string) (Path, error) {
	var p Path
	name, ok := strings.CutSuffix(s, ":rw")
	if ok {
		p.Write = true
	} else {
		name = strings.TrimSuffix(s, ":ro")
	}
	var err error
	if p.Name, err = expand(name, home, dir); err != nil {
		return p, err
	}
	return p, allowable(p.Name, home)
}

var width = map[Network]int{Off: 0, Restricted: 1, Open: 2}

// tighten sets the network mode when that is no wider than what is set.
func (p *Policy) tighten(m Mode) error {
	switch {
	case width[m.Value] > width[p.Network.Value]:
		return at(m.From, fmt.Sprintf("%s is wider than %s, which comes from %s", m.Value, p.Network.Value, p.Network.From),
			"change it there: kgate network "+string(m.Value))
	case width[m.Value] < width[p.Network.Value]:
		p.Network = m
	}
	return nil
}

func (p *Policy) addHosts(hosts []Host) {
	p.Hosts = addNew(p.Hosts, hosts, Host.key)
}

// dropHosts takes away every entry through which a dropped host could be
// reached: with *.example.org allowed and www.example.org dropped, the
// wildcard goes as a whole.
func (p *Policy) dropHosts(drop []Host) {
	p.Hosts = keep(p.Hosts, func(h Host) bool {
		for _, d := range drop {
			if h.overlaps(d) {
				return false
			}
		}
		return true
	})
}

// addPaths adds allowed paths; one that is there already becomes writable when
// the new entry is.
func (p *Policy) addPaths(paths []Path) {
	at := make(map[string]int, len(p.Paths)+len(paths))
	for i, have := range p.Paths {
		at[have.Name] = i
	}
	for _, n := range paths {
		i, ok := at[n.Name]
		switch {
		case !ok:
			at[n.Name] = len(p.Paths)
			p.Paths = append(p.Paths, n)
		case n.Write && !p.Paths[i].Write:
			p.Paths[i] = n
		}
	}
}

// dropPaths takes away allowed paths that are a dropped path or lie in it.
// What remains visible through an allowed directory around it is denied when
// cover is set.
func (p *Policy) dropPaths(drop []Path, cover bool) {
	p.Paths = keep(p.Paths, func(a Path) bool {
		for _, d := range drop {
			if within(a.Name, d.Name) {
				return false
			}
		}
		return true
	})
	if !cover {
		return
	}
	for _, d := range drop {
		for _, a := range p.Paths {
			if within(d.Name, a.Name) {
				p.addDenyRead([]Path{d})
				break
			}
		}
	}
}

func (p *Policy) addDenyRead(paths []Path) {
	p.DenyRead = addNew(p.DenyRead, paths, func(n Path) string { return n.Name })
}

func dropNames(from, drop []Path) []Path {
	return dropSame(from, drop, func(n Path) string { return n.Name })
}

func dropWords(from, drop []Word) []Word {
	return dropSame(from, drop, func(w Word) string { return w.Text })
}

func addWords(to, words []Word) []Word {
	return addNew(to, words, func(w Word) string { return w.Text })
}

// addNew adds what has not the same key as something that is there.
func addNew[T any, K comparable](to, more []T, key func(T) K) []T {
	if len(more) == 0 {
		return to
	}
	have := make(map[K]bool, len(to)+len(more))
	for _, v := range to {
		have[key(v)] = true
	}
	for _, v := range more {
		if k := key(v); !have[k] {
			have[k] = true
			to = append(to, v)
		}
	}
	return to
}

// dropSame takes away what has the same key as something in drop.
func dropSame[T any, K comparable](from, drop []T, key func(T) K) []T {
	if len(drop) == 0 {
		return from
	}
	gone := make(map[K]bool, len(drop))
	for _, v := range drop {
		gone[key(v)] = true
	}
	return keep(from, func(v T) bool { return !gone[key(v)] })
}

func keep[T any](list []T, ok func(T) bool) []T {
	var out []T
	for _, v := range list {
		if ok(v) {
			out = append(out, v)
		}
	}
	return out
}

// Shadow is an allowed path that a denial takes back.
type Shadow struct{ Allowed, By Path }

// Shadowed returns the allowed paths that a denied path is or contains, in
// order: deny beats allow, and a person who typed --allow-path wants to know.
func (p *Policy) Shadowed() []Shadow {
	var out []Shadow
	for _, a := range p.Paths {
		for _, d := range p.DenyRead {
			if within(a.Name, d.Name) {
				out = append(out, Shadow{a, d})
				break
			}
		}
	}
	return out
}

// checkDir refuses a working directory that the policy itself hides.
func (p *Policy) checkDir(given string) error {
	for _, d := range p.DenyRead {
		if within(p.Dir, d.Name) {
			return &RefusedError{given, fmt.Sprintf("lies in %q, which must not be read (%s)", d.Name, d.From),
				"change to another directory"}
		}
	}
	return nil
}

var errNoHome = errors.New("no home directory: $HOME is not set and the user database names none (set HOME)")
