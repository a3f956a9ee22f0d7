// Package command answers one question before anything runs: does this command
// line start a denied program? It reads the words, the shell text in them, the
// wrappers around them and the one-line scripts of common interpreters.
//
// It is the early, readable answer and not the boundary: nothing that parses
// text can be one. The boundary is the mount table or the profile, where the
// denied file itself cannot be executed.
package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// Options is what Inspect needs to know beside the words.
type Options struct {
	Denied   []policy.Word    // the denied names, or absolute paths
	Programs []policy.Program // the files that those names are on this host
	Dir      string           // the working directory, for relative programs and scripts
	Path     string           // the PATH that the command will have
	// Env is the environment that the command will have, as NAME=value: a
	// variable in command position is decided by its value here.
	Env []string
}

// Refusal is why a command line does not start. It is one line and explains
// itself without the exit status, because some harnesses pass on only the text.
type Refusal struct {
	Program string        // the denied name, or the text that could not be decided
	How     string        // where it stands and how it was recognised
	From    policy.Origin // the entry of the deny list; zero when undecided

	undecided bool
}

// Error says what was found where, which entry refuses it, and the mend.
func (r *Refusal) Error() string {
	if r.undecided {
		return fmt.Sprintf("refused before the start: %s, so it cannot be checked against the list of denied programs (deny.exec)", r.How)
	}
	mend := fmt.Sprintf("to allow it, add %q under drop.exec in ~/.kgate/config.yaml", r.Program)
	if r.From.File != "" {
		mend = "to allow it, take that entry out of the file"
	}
	return fmt.Sprintf("denied program %q, not started: %s; it is on the list of denied programs (%s); %s", r.Program, r.How, r.From, mend)
}

// The limits keep an inspection bounded in time and memory, whatever the text.
// What goes beyond one of them is refused, and the message says which.
const (
	maxText     = 512 << 10 // bytes of all shell texts within each other
	maxMarks    = 24_000    // separators in one shell text
	maxTexts    = 1000      // shell texts
	maxFrames   = 1500      // the parser's own stack, in calls
	maxNested   = 16        // texts within texts, wrappers within wrappers
	maxSteps    = 100_000   // commands and words looked at
	maxNames    = 500       // different programs looked up in PATH
	maxCalls    = 8         // functions that call functions
	maxVariants = 32        // values a word may have
	maxFields   = 256       // words that one word may become
	maxMade     = 16 << 20  // bytes that all expansions may make
	maxScript   = 256 << 10 // bytes of a script file that is read
	maxGlobs    = 8         // directories listed for patterns
	maxEntries  = 8192      // entries of such a directory
	maxCode     = 64 << 10  // bytes of a one-liner looked at
)

// Inspect returns nil when nothing denied would start, else a *Refusal. It
// reads files (the programs named, scripts, directories that a pattern in
// command position names) and starts nothing.
func Inspect(argv []string, o Options) error {
	if len(argv) == 0 || len(o.Denied)+len(o.Programs) == 0 {
		return nil
	}
	i := &inspector{o: o}
	words := make([]field, len(argv))
	for n, a := range argv {
		words[n] = field{text: a, sure: true}
	}
	return i.start(words, setting{})
}

// inspector is the state of one inspection.
type inspector struct {
	o     Options
	steps int
	globs int
	env   map[string]string
	names map[string]*file // by the word as written
	trail []string         // what the words looked at stand in, outermost first
	files int              // script files read
	bytes int              // of shell text parsed
	texts int              // shell texts parsed
	made  int              // by expansions, in bytes

	parsers map[syntax.LangVariant]*syntax.Parser
	dirs    []string // where cd leads, beside the working directory
}

// setting is what a command finds around it.
type setting struct {
	scope   *scope // the shell text it stands in; nil outside shells
	in      input  // its standard input
	plain   bool   // not run by a shell but by a program: no builtins, no functions
	lenient bool   // only what is surely denied is refused
	file    bool   // it stands in a script file: lenient, and branches are let pass
}

// inShell reports whether a shell looks the command up.
func (c setting) inShell() bool { return c.scope != nil && !c.plain }

func (i *inspector) within(place string, f func() error) error {
	i.trail = append(i.trail, place)
	err := f()
	i.trail = i.trail[:len(i.trail)-1]
	return err
}

func (i *inspector) place() string {
	if len(i.trail) == 0 {
		return ""
	}
	trail := i.trail
	more := ""
	if len(trail) > 4 {
		trail, more = trail[len(trail)-4:], "… > "
	}
	return " (in " + more + strings.Join(trail, " > ") + ")"
}

// deny makes the refusal of a denied entry.
func (i *inspector) deny(name string, from policy.Origin, how string) error {
	return &Refusal{Program: name, How: how + i.place(), From: from}
}

// undecided refuses what cannot be decided. Script files and the strings of
// other languages are left to the kernel there: they are full of words that
// only running them decides.
func (i *inspector) undecided(c setting, program, how string) error {
	if c.file || c.lenient {
		return nil
	}
	return &Refusal{Program: program, How: how + i.place(), undecided: true}
}

// errPass ends the look at something that is left to the kernel.
var errPass = errors.New("left to the kernel")

func passed(err error) error {
	if errors.Is(err, errPass) {
		return nil
	}
	return err
}

// step counts the work and the depth.
func (i *inspector) step(c setting) error {
	i.steps++
	how := ""
	switch {
	case i.steps > maxSteps:
		how = "the command line is too long or too entangled to look through: put the work into a script file"
	case len(i.trail) > maxNested:
		how = fmt.Sprintf("commands are nested more than %d deep: take layers off%s", maxNested, i.place())
	default:
		return nil
	}
	if c.file || c.lenient {
		return errPass
	}
	return &Refusal{How: how, undecided: true}
}

// denied looks a name up in the deny list. Only the last element counts: a
// program is known by its name wherever it lies.
func (i *inspector) denied(name string) (policy.Word, bool) {
	base := name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		base = name[at+1:]
	}
	base = strings.TrimPrefix(base, "=") // zsh: =curl is where curl is
	for _, w := range i.o.Denied {
		if w.Text == base || w.Text == name {
			return w, true
		}
		if w.Text != "" && w.Text[0] == '/' && strings.Contains(name, "/") && i.absolute(name) == w.Text {
			return w, true
		}
	}
	return policy.Word{}, false
}

func (i *inspector) absolute(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(i.o.Dir, name)
}

// candidates are the paths that a relative name may mean: text that changes
// the directory may use it before or after.
func (i *inspector) candidates(name string) []string {
	out := []string{i.absolute(name)}
	if !filepath.IsAbs(name) {
		for _, dir := range i.dirs {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

// changesDir notes a directory that text changes to.
func (i *inspector) changesDir(name string) {
	if len(i.dirs) < 8 {
		dir := name
		if !filepath.IsAbs(dir) {
			from := i.o.Dir
			if len(i.dirs) > 0 && !strings.HasPrefix(name, "/") {
				from = i.dirs[len(i.dirs)-1]
				if _, err := os.Stat(filepath.Join(from, name)); err != nil {
					from = i.o.Dir
				}
			}
			dir = filepath.Join(from, name)
		}
		i.dirs = append(i.dirs, dir)
	}
}

// variable is a variable's value in the environment of the command.
func (i *inspector) variable(name string) (string, bool) {
	if i.env == nil {
		i.env = make(map[string]string, len(i.o.Env))
		for _, e := range i.o.Env {
			if k, v, ok := strings.Cut(e, "="); ok {
				i.env[k] = v
			}
		}
	}
	v, ok := i.env[name]
	return v, ok
}

// excerpt quotes text for a message: short, on one line.
func excerpt(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, hole, "…"), later, "…")
	if len(s) > 60 {
		cut := 57
		for cut > 0 && s[cut]&0xc0 == 0x80 {
			cut--
		}
		s = s[:cut] + "…"
	}
	return fmt.Sprintf("%q", s)
}
