package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func newDoctorCommand() *cobra.Command {
	var r launcher.Request
	var asJSON bool
	cmd := &cobra.Command{
		Use:        "doctor [flags]",
		Short:      "Say whether this machine can enforce the policy",
		SuggestFor: []string{"check", "status", "info"},
		Long: `Say whether this machine can enforce the policy that a launch from this
directory would have. The same plan is made as for a launch, and the tools are
run in a throwaway box with files that must be readable there and files that must
not; no program of yours is started and nothing is recorded.

  READY     it is enforced
  DEGRADED  it is enforced, except for what the row says
  BLOCKED   a launch would not start; the row says what to do about it

Exit status:
  0  nothing is BLOCKED
  1  something is
  2  the command line is wrong`,
		Example: `  kgate doctor
  kgate doctor --json
  kgate doctor --allow-net host.example:443`,
		Args: wordArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := launcher.Backend(runtime.GOOS, nil)
			if err != nil {
				return err
			}
			done := waiting(cmd.ErrOrStderr(), "trying the tools in a throwaway box")
			rows := examine(r, b)
			done()
			if err := printRows(cmd.OutOrStdout(), rows, asJSON); err != nil {
				return fmt.Errorf("doctor: write the rows: %w", err)
			}
			if worst(rows) == backends.Blocked {
				return &statusError{status: statusFailed, silent: true}
			}
			return nil
		},
	}
	addLaunchFlags(cmd, &r)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the rows as JSON")
	return cmd
}

// examine is all of doctor's rows, in the order in which a launch would meet
// them.
func examine(r launcher.Request, b backends.Backend) []backends.Finding {
	blocked := func(row string, err error) backends.Finding {
		return backends.Finding{Row: row, Status: backends.Blocked, Reason: err.Error()}
	}
	if err := r.Here(); err != nil {
		return []backends.Finding{blocked("working directory", err)}
	}
	load := func(dir string) (*policy.Policy, error) {
		return policy.Load(policy.Options{
			Dir: dir, Home: r.Home, AccountHome: r.AccountHome, Env: r.Env,
			AllowPaths: r.AllowPaths, AllowNets: r.AllowNets, Network: r.Network, EnvPass: r.EnvPass,
		})
	}
	var rows []backends.Finding
	p, err := load(r.Dir)
	var refused *policy.RefusedError
	if errors.As(err, &refused) {
		rows = append(rows, blocked("working directory", err))
		// The rest does not depend on where one stands, so any place will do.
		elsewhere, terr := os.MkdirTemp("", "kgate-doctor-")
		if terr != nil {
			return rows
		}
		defer os.RemoveAll(elsewhere)
		p, err = load(elsewhere)
	} else if err == nil {
		rows = append(rows, backends.Finding{Row: "working directory", Status: backends.Ready, Reason: "the project is " + p.Project})
	}
	if err != nil {
		return append(rows, blocked("policy", err))
	}
	rows = append(rows, policyRow(p))
	env, _ := p.Environment(r.Env)
	plan, err := b.Plan(p, backends.Command{Dir: p.Dir, Env: env})
	if err != nil {
		return append(rows, blocked(b.Name(), err))
	}
	rows = append(rows, pathRows(p, env)...)
	rows = append(rows, plan.Findings...)
	if log, err := r.Recordable(); err != nil {
		rows = append(rows, blocked("audit log", err))
	} else {
		rows = append(rows, backends.Finding{Row: "audit log", Status: backends.Ready, Reason: log + ": each launch is written there first"})
	}
	for _, f := range b.Probe(p) {
		// What the plan has found missing needs no trial.
		if !slices.ContainsFunc(plan.Blocked(), func(known backends.Finding) bool { return known.Row == f.Row }) {
			rows = append(rows, f)
		}
	}
	return launcher.Placed(rows, r.Env)
}

func policyRow(p *policy.Policy) backends.Finding {
	files := append([]string(nil), p.ProjectFiles...)
	if _, err := os.Stat(p.UserFile); err == nil {
		files = append([]string{p.UserFile}, files...)
	}
	if len(files) == 0 {
		return backends.Finding{Row: "policy", Status: backends.Ready, Reason: "the built-in defaults; kgate init writes a file to change them in"}
	}
	return backends.Finding{Row: "policy", Status: backends.Ready, Reason: strings.Join(files, ", ")}
}

// pathRows are what a person would miss in the box: programs that vanish with
// the home, and allowed paths that a denial takes back.
func pathRows(p *policy.Policy, env []string) []backends.Finding {
	var rows []backends.Finding
	for _, e := range env {
		list, ok := strings.CutPrefix(e, "PATH=")
		if !ok {
			continue
		}
		shown := append([]policy.Path{{Name: p.Project}}, p.Paths...)
		if gone := policy.Vanishing(list, p.Home, shown); len(gone) > 0 {
			rows = append(rows, backends.Finding{
				Row: "PATH", Status: backends.Degraded,
				Reason: "hidden in the box with the home directory: " + strings.Join(gone, ", "),
				Mend:   "put what is needed under allow.paths (kgate init --paths writes a new file with them)",
			})
		}
	}
	inside := func(path string) bool { // what the command makes there stays
		return strings.HasPrefix(path, p.Project+"/") ||
			slices.ContainsFunc(p.Paths, func(g policy.Path) bool { return g.Write && strings.HasPrefix(path, g.Name+"/") })
	}
	for _, a := range p.Paths {
		if a.From.Kind == policy.FromDefault || inside(a.Name) {
			continue
		}
		if _, err := os.Stat(a.Name); errors.Is(err, fs.ErrNotExist) {
			rows = append(rows, backends.Finding{
				Row: "allow.paths", Status: backends.Degraded,
				Reason: fmt.Sprintf("%q (%s) does not exist, so nothing is shown there, and what is written there is forgotten", a.Name, a.From),
				Mend:   "make it first, or mend the path",
			})
		}
	}
	for _, s := range p.Shadowed() {
		rows = append(rows, backends.Finding{
			Row: "allow.paths", Status: backends.Degraded,
			Reason: fmt.Sprintf("%q (%s) is not shown: %q may not be read (%s)", s.Allowed.Name, s.Allowed.From, s.By.Name, s.By.From),
			Mend:   "deny beats allow: take off one of the two",
		})
	}
	return rows
}

// jsonVersion is the version of what --json prints, of every command: a number
// that goes up when something that was there changes its meaning or goes away
// (docs/json.md).
const jsonVersion = 1

func worst(rows []backends.Finding) backends.Status {
	status := backends.Ready
	for _, r := range rows {
		switch {
		case r.Status == backends.Blocked:
			return backends.Blocked
		case r.Status == backends.Degraded:
			status = backends.Degraded
		}
	}
	return status
}

// printRows prints one row a line, and the mend on a line of its own.
func printRows(w io.Writer, rows []backends.Finding, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Version int                `json:"version"`
			Status  backends.Status    `json:"status"`
			Rows    []backends.Finding `json:"rows"`
		}{jsonVersion, worst(rows), rows})
	}
	width := 0
	for _, r := range rows {
		width = max(width, len(r.Row))
	}
	var b strings.Builder
	color := paintFor(w)
	for _, r := range rows {
		fmt.Fprintf(&b, "%s  %-*s  %s\n", color.in(ofStatus(r.Status), fmt.Sprintf("%-8s", r.Status)), width, oneLine(r.Row), oneLine(r.Reason))
		if r.Mend != "" {
			fmt.Fprintf(&b, "%-8s  %-*s  mend: %s\n", "", width, "", oneLine(r.Mend))
		}
	}
	next := "kgate run -- CMD, or kgate verify to see it proven"
	if worst(rows) == backends.Blocked {
		next = "do what the BLOCKED rows say, then kgate doctor again"
	}
	fmt.Fprintf(&b, "next: %s\n", next)
	_, err := io.WriteString(w, b.String())
	return err
}
