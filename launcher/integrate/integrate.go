// Package integrate puts kgate between an agent harness and its shell, by the
// setting of the harness's own that leaves the fewest ways around: it edits the
// harness's settings, says beforehand what will change, can undo it to the byte,
// and can tell whether it is in force.
//
// What is said here about a harness was measured on the version that Harness
// names, with the program and a stand-in for its model.
package integrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Host is what an integration depends on beside the harness's files.
type Host struct {
	Home  string
	OS    string // as GOOS names it
	Dir   string // the working directory: projects have settings too
	Kgate string // absolute path of kgate
	Shell string // absolute path of kgate-sh, the same program in one word

	Getenv func(string) string
	// Ask runs a harness's own program and returns what it printed; an error
	// where it is not installed.
	Ask func(argv ...string) (string, error)
}

// Settings is where the harnesses' settings lie on the host that kgate runs on,
// which is all that Undo asks: kgate's own names, which may be gone by then, are
// not in it.
func Settings(goos string) (*Host, error) {
	h := &Host{Home: os.Getenv("HOME"), OS: goos, Getenv: os.Getenv, Ask: ask}
	if h.Home == "" || !filepath.IsAbs(h.Home) {
		return nil, errors.New("home directory is not known (set HOME)")
	}
	h.Home = filepath.Clean(h.Home)
	h.Dir, _ = os.Getwd()
	return h, nil
}

// ThisHost is the host that kgate runs on. It fails where kgate has no file
// name that a setting could hold.
func ThisHost(goos string) (*Host, error) {
	h, err := Settings(goos)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find kgate's own file: %w", err)
	}
	own, err := os.Stat(exe)
	if err != nil {
		return nil, fmt.Errorf("find kgate's own file: %w", err)
	}
	// A name that leads here and lasts is better than what it leads to today.
	find := func(name string) string {
		for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(exe)) {
			file := filepath.Join(dir, name)
			info, err := os.Stat(file)
			if err == nil && filepath.IsAbs(dir) && os.SameFile(info, own) {
				return file
			}
		}
		return ""
	}
	if h.Kgate = find("kgate"); h.Kgate == "" {
		h.Kgate = exe
	}
	if h.Shell = find("kgate-sh"); h.Shell == "" {
		return nil, fmt.Errorf("kgate-sh is not there, the one word that harnesses take: ln -s kgate %s", filepath.Join(filepath.Dir(h.Kgate), "kgate-sh"))
	}
	for _, file := range []string{h.Kgate, h.Shell} {
		if strings.ContainsAny(file, "\"'\\`$\n") {
			return nil, fmt.Errorf("kgate's own path %q cannot be written into every kind of settings file: install it under a plainer one", file)
		}
	}
	return h, nil
}

func ask(argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return string(out), err
}

// Harness is one that kgate knows how to get into.
type Harness struct {
	Name  string
	Title string
	// Seen is the version that the claims below were measured on; "" where they
	// were read in its documentation or source.
	Seen string
	// Way is the setting that is used, and Open how it fails open, with what
	// closes that; "" when it fails closed.
	Way, Open string

	edits func(h *Host, f *files) error
	check func(h *Host) []Row
	// after is said once the change is made: what the person still has to do.
	after func(h *Host) []string
}

// Row is one line of a check.
type Row struct {
	OK   bool
	What string
	Mend string // "" when OK
}

// harnesses, in the order of their names. Functions, so that a launch, which
// integrates nothing, makes none of them.
var harnesses = [...]struct {
	name string
	make func() *Harness
}{
	{"aider", aider},
	{"claude-code", claudeCode},
	{"codex", codex},
	{"gemini-cli", geminiCLI},
	{"opencode", opencode},
	{"vscode", vscode},
}

// Names lists the harnesses.
func Names() []string {
	names := make([]string, 0, len(harnesses))
	for _, h := range harnesses {
		names = append(names, h.name)
	}
	return names
}

// Find returns a harness by its name.
func Find(name string) (*Harness, error) {
	for _, h := range harnesses {
		if h.name == name {
			return h.make(), nil
		}
	}
	return nil, fmt.Errorf("no integration for %q (there is one for %s)", name, strings.Join(Names(), ", "))
}

// Edit is what becomes of one file.
type Edit struct {
	File   string // real path
	Before []byte // nil: the file is not there
	After  []byte
	Splice Splice // what turns base into After

	base []byte // the text without anything of kgate's; nil: no file
}

// Plan is what an integration would do, or has nothing left to do.
type Plan struct {
	Harness *Harness
	Edits   []Edit // only those that change something
	state   *state
}

// Plan reads the harness's files and works out the change. A file that cannot
// be edited without losing something is an error that says what to write by
// hand.
func (hs *Harness) Plan(h *Host) (*Plan, error) {
	p := &Plan{Harness: hs}
	var err error
	if p.state, err = readState(h, hs.Name); err != nil {
		return nil, err
	}
	f := &files{state: p.state}
	if err := hs.edits(h, f); err != nil {
		return nil, err
	}
	p.Edits = f.edits
	return p, nil
}

// files collects the changes of one plan.
type files struct {
	state *state
	edits []Edit
}

// edit plans a change of a file. The editor gets the text, nil when the file is
// not there, and returns one stretch to change.
func (f *files) edit(file string, editor func(text []byte) (Splice, error)) error {
	file, err := real(file)
	if err != nil {
		return err
	}
	base, now, err := f.state.base(file)
	if err != nil {
		return fmt.Errorf("read %q: %w", file, err)
	}
	s, err := editor(now)
	if err == nil && now != nil && bytes.Equal(s.apply(now), now) {
		return nil // as it should be
	}
	if !bytes.Equal(base, now) || (base == nil) != (now == nil) {
		s, err = editor(base)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := writable(file); err != nil {
		return err
	}
	f.edits = append(f.edits, Edit{File: file, Before: now, After: s.apply(base), Splice: s, base: base})
	return nil
}

// Check says, line by line, whether the integration is in force.
func (hs *Harness) Check(h *Host) []Row {
	rows := hs.check(h)
	if text, err := read(policyFile(h)); err == nil && text == nil {
		rows = append(rows, Row{false, policyFile(h) + " is not there: every command is refused", "kgate init"})
	}
	return rows
}

// After is what the person still has to do.
func (hs *Harness) After(h *Host) []string {
	if hs.after == nil {
		return nil
	}
	return hs.after(h)
}

// program checks that a program named in a setting is this kgate.
func program(h *Host, file string) Row {
	info, err := os.Stat(file)
	if err != nil {
		return Row{false, fmt.Sprintf("%s is not there", file), "kgate integrate again, or put kgate back"}
	}
	own, err := os.Stat(h.Kgate)
	if err != nil || !os.SameFile(info, own) {
		return Row{false, fmt.Sprintf("%s is another program than this kgate (%s)", file, h.Kgate), "kgate integrate again, with the kgate that is meant"}
	}
	return Row{true, file + " is this kgate", ""}
}
