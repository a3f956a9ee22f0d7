// Package seatbelt is the box of macOS: it turns a policy into a profile for
// the kernel's sandbox and an argument list for /usr/bin/sandbox-exec.
//
// Planning is text and is built and tested on every system. What a profile
// means is judged by package verify/sbpl, which shares no code with this one;
// what only a Mac can show is listed in docs/not-measured.md.
//
// # The profile
//
// Everything is denied unless a rule allows it. Rules without a filter come
// first, then what programs need of the system, then the trees of the policy
// from shallow to deep, then what a person's own tools would later run out of
// the project, then what is denied. Within one operation the kernel takes the
// last rule that matches, and a rule for a more specific operation before one
// for a wildcard, so a denial names the operations that something before it
// allowed. Paths are written as the kernel resolves them. A denial also carries
// an expression for the other spellings under which the usual, case-insensitive
// file system finds the same file, and keeps the directories above it in place,
// because a path that can be renamed is not denied.
package seatbelt

import (
	"fmt"
	"path"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Tool is the program that installs a profile. Its path is fixed: another one
// found through PATH could install nothing.
const Tool = "/usr/bin/sandbox-exec"

// Facts is what Plan has to know of the machine.
type Facts struct {
	// Follow resolves a path as the kernel would. A path that does not exist is
	// resolved as far as it does.
	Follow func(path string) Real
	// Exists reports whether a real path exists.
	Exists func(path string) bool
	// ReadFile returns the start of a regular file; nil reads none.
	ReadFile func(path string) ([]byte, error)

	Developer string // real directory of Apple's developer tools; "" without them
	Kgate     string // real path of kgate's own file
	Temp      string // real path of the directory that Start will make for the launch
	UserTemp  string // real path of this user's own temporary directory
}

// Real is a path as the kernel resolves it.
type Real struct {
	Path  string
	Links []string // the symlinks on the way, each with the links before it resolved
}

// Backend plans and starts boxes with the facts of one machine.
type Backend struct {
	// Terminal are the words that stand before the command's own, after kgate's
	// file, when the command gets a terminal: they name kgate's stage for that.
	// Empty: such a command is started without one.
	Terminal []string

	facts Facts
}

// New returns the backend for a machine.
func New(f Facts) *Backend { return &Backend{facts: f} }

// Name is "seatbelt".
func (b *Backend) Name() string { return "seatbelt" }

// Line is one rule of a profile.
type Line struct {
	Group string // what it is for, the same for rules that belong together
	Text  string // the rule, without a line break
	Why   string
	From  policy.Origin
}

// Profile is what a plan of this backend carries as its Extra.
type Profile struct {
	Lines []Line
	Temp  string // the directory that Start makes and Wait removes
}

// Text is the profile as sandbox-exec reads it. Comments hold nothing but the
// groups' own names: no text of a policy's stands outside a quoted string.
func (p *Profile) Text() string {
	var b strings.Builder
	group := ""
	for _, l := range p.Lines {
		if l.Group != group {
			group = l.Group
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "; %s\n", group)
		}
		b.WriteString(l.Text)
		b.WriteByte('\n')
	}
	return b.String()
}

// Plan turns a policy into the profile and the argument list of one launch. It
// has no effects. What cannot be enforced is a finding.
func (b *Backend) Plan(p *policy.Policy, c backends.Command) (*backends.Plan, error) {
	w := newWriter(b.facts, p)
	w.write()
	profile := &Profile{Lines: w.lines, Temp: b.facts.Temp}
	file := path.Join(b.facts.Temp, "profile.sb")

	argv := c.Argv
	if len(argv) == 0 {
		argv = []string{"true"} // doctor plans without a command
	}
	c.Env = withTemp(c.Env, w.temp)
	stage := []string{b.facts.Kgate, StageName, closeControl}
	if c.Terminal && len(b.Terminal) > 0 {
		stage = append([]string{b.facts.Kgate, StageName, keepControl, b.facts.Kgate}, b.Terminal...)
	}
	return &backends.Plan{
		Backend:  b.Name(),
		Findings: w.findings,
		Parts: []backends.Part{
			{Name: "sandbox-exec", Words: []string{Tool, "-f", file}, Why: "installs the profile and becomes what follows", From: built("box")},
			{Name: "end", Words: []string{"--"}, Why: "what follows is the command", From: built("command")},
			{Name: "stage", Words: stage, Why: "says that the box stands, and becomes the command", From: built("command")},
			{Name: "command", Words: argv, Why: "what the person asked for", From: built("command")},
		},
		Files:   []backends.File{{Name: file, Mode: 0o600, Content: []byte(profile.Text()), Why: "the profile, where the command cannot write"}},
		Command: c,
		Network: p.Effective(),
		Hosts:   p.Hosts,
		IPv6:    p.IPv6.Value,
		Extra:   profile,
	}, nil
}

// withTemp points TMPDIR to the launch's own directory: /tmp and the user's
// temporary directory hold other programs' files and are closed.
func withTemp(env []string, dir string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, "TMPDIR=") {
			out = append(out, e)
		}
	}
	return append(out, "TMPDIR="+dir)
}

// built is the origin of what no setting asks for.
func built(key string) policy.Origin { return policy.Origin{Kind: policy.FromDefault, Key: key} }
