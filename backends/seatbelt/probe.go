//go:build unix

package seatbelt

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// The contents of the markers, and the command that looks for them.
const (
	markOpen   = "kgate-may-be-read"
	markHidden = "kgate-must-not-be-read"
	markScript = `cat open; cat hidden ../home/hidden; echo x >../home/made; echo x >made; exit 7`
)

// probe finds out whether the tool enforces a profile: that it exists says
// nothing.
func (b *Backend) probe(p *policy.Policy, tool string) []backends.Finding {
	row := func(s backends.Status, reason, mend string) []backends.Finding {
		return []backends.Finding{{Row: "sandbox-exec", Status: s, Reason: reason, Mend: mend}}
	}
	if err := b.markers(tool); err != nil {
		var blocked *backends.BlockedError
		if errors.As(err, &blocked) {
			return blocked.Findings
		}
		return row(backends.Blocked, err.Error(), "nothing can be run until this Mac enforces a profile")
	}
	out := row(backends.Ready, "a marker could be read in the box, another one could not, and home could not be written", "")
	plan, err := b.again().Plan(p, backends.Command{Argv: []string{"/usr/bin/true"}, Dir: "/"})
	if err != nil || len(plan.Blocked()) > 0 {
		return out // the plan's own findings say so
	}
	plan.Parts[0].Words[0] = tool
	if _, exit, err := capture(plan); err != nil {
		out = append(out, backends.Finding{Row: "profile", Status: backends.Blocked, Reason: err.Error()})
	} else if s := exit.Status(); s != 0 {
		out = append(out, backends.Finding{Row: "profile", Status: backends.Blocked,
			Reason: fmt.Sprintf("/usr/bin/true ends with status %d under the profile of this policy", s),
			Mend:   `see what was denied: log show --last 1m --predicate 'eventMessage CONTAINS "deny("'`})
	}
	return out
}

// again is the backend with a launch directory of its own.
func (b *Backend) again() *Backend {
	f := b.facts
	f.Temp = launchDir(f.UserTemp)
	return &Backend{facts: f, Terminal: b.Terminal}
}

func (b *Backend) markers(tool string) error {
	dir, err := os.MkdirTemp(b.facts.UserTemp, launchPrefix+"probe-")
	if err != nil {
		return fmt.Errorf("make a directory for the markers: %w", err)
	}
	defer os.RemoveAll(dir)
	home, proj := filepath.Join(dir, "home"), filepath.Join(dir, "proj")
	for _, f := range []struct{ path, text string }{
		{filepath.Join(home, "hidden"), markHidden}, {filepath.Join(proj, "hidden"), markHidden}, {filepath.Join(proj, "open"), markOpen},
	} {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(f.path), 0o700), os.WriteFile(f.path, []byte(f.text), 0o600))
	}
	if err != nil {
		return fmt.Errorf("make the markers: %w", err)
	}
	pl, err := b.again().Plan(&policy.Policy{
		Home: home, Homes: []string{home}, Project: proj, Dir: proj,
		Network:  policy.Mode{Value: policy.Off},
		DenyRead: []policy.Path{{Name: filepath.Join(proj, "hidden")}},
	}, backends.Command{Argv: []string{"/bin/sh", "-c", markScript}, Dir: proj, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		return err
	}
	if blocked := pl.Blocked(); len(blocked) > 0 {
		return &backends.BlockedError{Findings: blocked}
	}
	pl.Parts[0].Words[0] = tool
	out, exit, err := capture(pl)
	switch {
	case err != nil:
		return err
	case strings.Contains(out, markHidden):
		return errors.New("it exists but does not enforce: a file that the profile denies could be read")
	case exists(filepath.Join(home, "made")):
		return errors.New("it exists but does not enforce: a file could be made in what stood for the home directory")
	case !strings.Contains(out, markOpen), !exists(filepath.Join(proj, "made")):
		return fmt.Errorf("a program in the box could not read or write its own project: %.300q", out)
	case exit.Status() != 7:
		return fmt.Errorf("the status of a program in the box came back as %d instead of 7", exit.Status())
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// capture runs a plan with nothing to read and returns what it wrote.
func capture(plan *backends.Plan) (string, backends.Exit, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", backends.Exit{}, err
	}
	defer r.Close()
	box, err := launch(plan, backends.Stdio{Out: w, Err: w})
	w.Close()
	if err != nil {
		return "", backends.Exit{}, err
	}
	out, _ := io.ReadAll(io.LimitReader(r, 64<<10))
	exit, err := box.Wait()
	return string(out), exit, err
}
