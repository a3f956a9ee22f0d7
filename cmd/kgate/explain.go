package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/bubblewrap"
	"github.com/kgate-dev/kgate/backends/seatbelt"
	"github.com/kgate-dev/kgate/launcher"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func newExplainCommand() *cobra.Command {
	var (
		r             launcher.Request
		goos          string
		asJSON, paste bool
	)
	cmd := &cobra.Command{
		Use:        "explain [flags] -- CMD [ARG...]",
		Short:      "Print what a launch would ask of the kernel, and why",
		SuggestFor: []string{"plan", "show", "why"},
		Long: `Print the whole plan of a launch: each part of the argument list or of the
profile, with its reason and with where it comes from, and then the same as a
script that gives the same box when it is run by hand. All but the script are
comments to a shell, and a blocked plan has no script. Nothing is run or recorded.

With --os the plan of the other system is printed, as far as it can be known
here.

Exit status:
  0    the plan was printed, also when it is blocked
  2    a flag is unknown
  125  a policy file or a flag is wrong, or --paste was asked of a blocked plan
  126  the launch would be refused`,
		Example: `  kgate explain -- npm test
  kgate explain --paste -- npm test | sh
  kgate explain --os darwin -- npm test`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := explain(cmd.OutOrStdout(), r, goos, args, asJSON, paste)
			if err != nil && exitStatus(err) == statusFailed {
				err = &statusError{status: statusLaunch, err: err}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	addLaunchFlags(cmd, &r)
	f.StringVar(&goos, "os", runtime.GOOS, "plan for `OS`: linux or darwin")
	f.BoolVar(&asJSON, "json", false, "print the plan as JSON")
	f.BoolVar(&paste, "paste", false, "print nothing but the script")
	return cmd
}

func explain(w io.Writer, r launcher.Request, goos string, argv []string, asJSON, paste bool) error {
	if len(argv) == 0 {
		return errors.New("explain: no command (say: kgate explain -- CMD)")
	}
	if asJSON && paste {
		return errors.New("explain: --json has the script in it (leave out --paste, or --json)")
	}
	b, err := launcher.Backend(goos, nil)
	if err != nil {
		return fmt.Errorf("explain: --os: %w", err)
	}
	if err := r.Here(); err != nil {
		return err
	}
	r.Argv = argv
	l, err := launcher.Prepare(r, b)
	if err != nil {
		return err
	}
	if blocked := l.Plan.Blocked(); paste && len(blocked) > 0 {
		return &backends.BlockedError{Findings: blocked}
	}
	script := byHand(l.Plan, r.Env)
	switch {
	case asJSON:
		err = printPlanJSON(w, l.Plan, script)
	case paste:
		_, err = io.WriteString(w, script)
	default:
		_, err = io.WriteString(w, remarks(planText(l.Plan))+"\n"+sameByHand(l.Plan, script))
	}
	if err != nil {
		return fmt.Errorf("explain: write the plan: %w", err)
	}
	return nil
}

// remarks makes each line a shell's comment. The command's own words stand among
// the lines, and whoever pipes all of it into a shell is not to start it
// without the box.
func remarks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			b.WriteString("# ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// sameByHand is the script, as far as a launch would start: a blocked plan has
// a box that is not the policy's.
func sameByHand(plan *backends.Plan, script string) string {
	if len(plan.Blocked()) > 0 {
		return "# By hand: nothing, as the plan is blocked\n"
	}
	return "# By hand, for the same box:\n" + script
}

// planText is the plan for people: every line with its reason and its origin.
func planText(plan *backends.Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, network %s (%s)\n", plan.Backend, plan.Network.Value, plan.Network.From)
	for _, h := range plan.Hosts {
		if plan.Network.Value == policy.Restricted {
			fmt.Fprintf(&b, "#   host %s (%s)\n", hostText(h), h.From)
		}
	}
	for _, f := range plan.Findings {
		if f.Status != backends.Ready {
			fmt.Fprintf(&b, "# %s %s: %s\n", f.Status, f.Row, oneLine(f.Reason))
		}
	}
	for _, p := range plan.Parts {
		note := oneLine(fmt.Sprintf("%s (%s)", p.Why, p.From))
		if len(p.Words) == 0 {
			fmt.Fprintf(&b, "# %s: %s\n", oneLine(p.Name), note)
			continue
		}
		fmt.Fprintf(&b, "%-58s  # %s\n", oneLine(bubblewrap.Line(p.Words)), note)
	}
	for _, f := range plan.Files {
		fmt.Fprintf(&b, "# file %s, %d bytes: %s\n", oneLine(f.Name), len(f.Content), f.Why)
		if f.Name == bubblewrap.CallsFile {
			for _, line := range bubblewrap.CallRules(plan) {
				fmt.Fprintf(&b, "#   %s\n", oneLine(line))
			}
		}
	}
	b.WriteString(filterText(plan))
	b.WriteString(profileText(plan))
	return b.String()
}

// filterText is what a host list adds to a plan: what runs beside the box, and
// the packet filter.
func filterText(plan *backends.Plan) string {
	var b strings.Builder
	helpers, rules := bubblewrap.FilterParts(plan)
	for _, h := range helpers {
		fmt.Fprintf(&b, "# beside the box: %s\n#   %s\n", oneLine(fmt.Sprintf("%s (%s)", h.Why, h.From)), oneLine(bubblewrap.Line(h.Words)))
	}
	for i, r := range rules {
		if i == 0 || r.Family != rules[i-1].Family || r.Table != rules[i-1].Table {
			fmt.Fprintf(&b, "# packet filter, IPv%d, table %s:\n", r.Family, r.Table)
		}
		fmt.Fprintf(&b, "#   %-72s  # %s\n", oneLine(r.Spec), oneLine(fmt.Sprintf("%s (%s)", r.Why, r.From)))
	}
	return b.String()
}

func hostText(h policy.Host) string {
	name := h.Name
	switch {
	case h.Addr.IsValid():
		name = h.Addr.String()
	case h.Wildcard:
		name = "*." + name
	}
	if h.Port != 0 {
		name += fmt.Sprintf(":%d", h.Port)
	}
	return name
}

// byHand is a script that does what a launch of the plan does, without kgate.
func byHand(plan *backends.Plan, environ []string) string {
	if plan.Backend == "bubblewrap" {
		return bubblewrap.Paste(plan, environ)
	}
	return seatbelt.Paste(plan, environ)
}

// planPart and planJSON are the plan for programs.
type planPart struct {
	Name  string   `json:"name"`
	Words []string `json:"words"`
	Why   string   `json:"why"`
	From  string   `json:"from"`
}

type planFile struct {
	Name    string `json:"name"`
	Mode    string `json:"mode"`
	Content []byte `json:"content"`
	Why     string `json:"why"`
}

type planPacket struct {
	Family int    `json:"family"`
	Table  string `json:"table"`
	Line   string `json:"line"`
	Why    string `json:"why"`
	From   string `json:"from"`
}

func planParts(parts []backends.Part) []planPart {
	out := []planPart{}
	for _, p := range parts {
		words := p.Words
		if words == nil {
			words = []string{}
		}
		out = append(out, planPart{p.Name, words, p.Why, p.From.String()})
	}
	return out
}

func printPlanJSON(w io.Writer, plan *backends.Plan, script string) error {
	helpers, rules := bubblewrap.FilterParts(plan)
	out := struct {
		Version  int                `json:"version"`
		Backend  string             `json:"backend"`
		Network  policy.Network     `json:"network"`
		From     string             `json:"network_from"`
		Hosts    []string           `json:"hosts"`
		Findings []backends.Finding `json:"findings"`
		Parts    []planPart         `json:"parts"`
		Files    []planFile         `json:"files"`
		Helpers  []planPart         `json:"helpers"`         // with a host list
		Packets  []planPacket       `json:"packets"`         // with a host list
		Rules    []planRule         `json:"rules,omitempty"` // of a Seatbelt profile
		Dir      string             `json:"dir"`
		Command  []string           `json:"command"`
		Script   string             `json:"script"`
	}{
		Version: jsonVersion, Backend: plan.Backend, Network: plan.Network.Value, From: plan.Network.From.String(),
		Hosts: []string{}, Findings: plan.Findings, Parts: planParts(plan.Parts), Files: []planFile{}, Helpers: planParts(helpers), Packets: []planPacket{},
		Rules: planRules(plan),
		Dir:   plan.Command.Dir, Command: plan.Command.Argv, Script: script,
	}
	if plan.Network.Value == policy.Restricted {
		for _, h := range plan.Hosts {
			out.Hosts = append(out.Hosts, hostText(h))
		}
	}
	for _, r := range rules {
		out.Packets = append(out.Packets, planPacket{r.Family, r.Table, r.Spec, r.Why, r.From.String()})
	}
	for _, f := range plan.Files {
		out.Files = append(out.Files, planFile{f.Name, fmt.Sprintf("%04o", f.Mode.Perm()), f.Content, f.Why})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}
