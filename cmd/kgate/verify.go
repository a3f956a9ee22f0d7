package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	scripts "github.com/kgate-dev/kgate/testdata/scripts"
	"github.com/kgate-dev/kgate/verify"
	html "github.com/kgate-dev/kgate/verify/report"
)

func newVerifyCommand() *cobra.Command {
	var (
		asJSON, list bool
		junit, page  string
		c            verify.Config
	)
	cmd := &cobra.Command{
		Use:        "verify [flags]",
		Short:      "Prove on this machine what doctor says of it",
		SuggestFor: []string{"test", "prove"},
		Long: `Run the scenarios on this machine with this kgate, and print what was seen.
Each one shows first that a thing works when nothing stands in its way, and then
that it does not in the box. Those about the network run in a lab of namespaces,
with name servers, servers and packet captures of its own: without root, without
an internet, and without a packet leaving this machine. Your home, your policy and
your log are not touched.

Exit status:
  0  everything that doctor calls READY was proven
  1  a scenario failed, or something READY was not proven
  2  the command line is wrong`,
		Example: `  kgate verify
  kgate verify --only other-host-refused --pcap captures
  kgate verify --report report.html
  kgate verify --junit report.xml`,
		Args: wordArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c.Scripts = scripts.Files
			if list {
				return listScenarios(cmd.OutOrStdout(), &c)
			}
			if err := knownScenarios(c.Only); err != nil {
				return &statusError{status: statusUsage, err: err}
			}
			if err := verify.KnownConditions(c.Must); err != nil {
				return &statusError{status: statusUsage, err: fmt.Errorf("verify: --must: %w", err)}
			}
			kgate, err := os.Executable()
			if err != nil {
				return fmt.Errorf("verify: find this program's own file: %w", err)
			}
			c.Kgate = kgate
			began := time.Now()
			// Before the minutes that it takes to find what goes into them.
			if err := canWrite(junit); err != nil {
				return fmt.Errorf("verify: --junit: %w", err)
			}
			if page != "" {
				if err := html.Check(page); err != nil {
					return err
				}
				c.Trace = true
			}
			p := &verifyPrinter{out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr(), quiet: asJSON}
			p.live = isTerminal(p.progress)
			c.Started, c.Ended = p.started, p.ended
			found, err := verify.Run(c)
			if err != nil {
				return err
			}
			if page != "" {
				if err := html.Save(page, func(w io.Writer) error {
					return html.Write(w, found, html.Context{When: began, Part: len(c.Only) > 0, Machine: html.Machine(kgate)})
				}); err != nil {
					return err
				}
			}
			return finishVerify(p, found, asJSON, junit)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print the report as JSON")
	f.StringVar(&junit, "junit", "", "write the report as JUnit XML to `FILE`")
	f.StringVar(&page, "report", "", "write the report, with a timeline of what was captured, as one page of HTML to `FILE`")
	f.StringVar(&c.Pcap, "pcap", "", "write what the captures saw to files in `DIR`")
	f.StringSliceVar(&c.Only, "only", nil, "run the scenario `NAME` alone (may be repeated)")
	f.StringSliceVar(&c.Must, "must", nil, "fail, rather than skip, where `CONDITION` does not hold (userns, hostfilter, lab)")
	f.BoolVar(&c.Escape, "escape", false, "run the escape suite too")
	f.BoolVar(&list, "list", false, "list the scenarios and run none")
	return cmd
}

// canWrite says why a file cannot be written, and leaves none behind.
func canWrite(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); err == nil {
			defer os.Remove(name)
		}
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// knownScenarios refuses a name that no scenario has.
func knownScenarios(names []string) error {
	files, err := fs.Glob(scripts.Files, "*.txtar")
	if err != nil {
		return err
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".txtar")
	}
	for _, name := range names {
		if !slices.Contains(files, name) {
			return fmt.Errorf("verify: there is no scenario %q%s (all of them: kgate verify --list)", name, didYouMean(nearest(name, files)))
		}
	}
	return nil
}

func listScenarios(w io.Writer, c *verify.Config) error {
	all, err := c.Scenarios()
	if err != nil {
		return err
	}
	for _, s := range all {
		if _, err := fmt.Fprintf(w, "%-24s %s\n", s.Name, s.Title); err != nil {
			return fmt.Errorf("verify: write the list: %w", err)
		}
	}
	return nil
}

func finishVerify(p *verifyPrinter, r *verify.Report, asJSON bool, junit string) error {
	if junit != "" {
		f, err := os.Create(junit)
		if err != nil {
			return fmt.Errorf("verify: --junit: %w", err)
		}
		if err := errors.Join(verify.WriteJUnit(f, r), f.Close()); err != nil {
			return fmt.Errorf("verify: write %q: %w", junit, err)
		}
	}
	if asJSON {
		e := json.NewEncoder(p.out)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		if err := e.Encode(struct {
			Version int `json:"version"`
			*verify.Report
		}{jsonVersion, r}); err != nil {
			return err
		}
	} else {
		p.summary(r)
	}
	if r.Verdict != verify.Proven {
		return &statusError{status: statusFailed, silent: true}
	}
	return nil
}

// verifyPrinter prints a line for each scenario as it ends.
type verifyPrinter struct {
	out, progress io.Writer
	quiet         bool // nothing but the report on out
	live          bool // progress is a terminal: show what is going on
}

func (p *verifyPrinter) started(s verify.Scenario, number, of int) {
	if p.live {
		fmt.Fprintf(p.progress, "\r\x1b[K[%d/%d] %s", number, of, s.Name)
	}
}

func (p *verifyPrinter) ended(o verify.Outcome) {
	if p.live {
		fmt.Fprint(p.progress, "\r\x1b[K")
	}
	w := p.out
	if p.quiet {
		if p.live {
			return
		}
		w = p.progress
	}
	color := paintFor(w)
	switch o.Result {
	case verify.Pass:
		fmt.Fprintf(w, "%s  %-24s %5.1fs  %s\n", color.in(green, "proven    "), o.Name, o.Seconds, strings.Join(o.Evidence, "; "))
	case verify.Skip:
		fmt.Fprintf(w, "%s  %-24s %5.1fs  %s\n", color.in(yellow, "not proven"), o.Name, o.Seconds, oneLine(o.Reason))
	default:
		fmt.Fprintf(w, "%s  %-24s %5.1fs  %s\n", color.in(red, "FAILED    "), o.Name, o.Seconds, oneLine(o.Reason))
		for _, line := range strings.Split(strings.TrimSpace(o.Log), "\n") {
			fmt.Fprintf(w, "    %s\n", oneLine(line))
		}
	}
}

func (p *verifyPrinter) summary(r *verify.Report) {
	count := map[verify.Result]int{}
	for _, o := range r.Scenarios {
		count[o.Result]++
	}
	fmt.Fprintln(p.out)
	for _, row := range r.Rows {
		switch {
		case row.Status != "READY":
			fmt.Fprintf(p.out, "%-10s %s: %s\n", row.Status, row.Row, oneLine(row.Reason))
		case row.Proven:
			fmt.Fprintf(p.out, "%-10s %s: proven by %s\n", row.Status, row.Row, strings.Join(row.By, ", "))
		case len(row.By) == 0:
			fmt.Fprintf(p.out, "%-10s %s: not proven: no scenario is about it\n", row.Status, row.Row)
		default:
			fmt.Fprintf(p.out, "%-10s %s: not proven by %s\n", row.Status, row.Row, strings.Join(row.By, ", "))
		}
	}
	if r.Attacks != nil {
		fmt.Fprintf(p.out, "\n%s\n", r.Attacks)
	}
	fmt.Fprintf(p.out, "\n%s: %d proven, %d failed, %d not proven, in %.1f seconds\n", r.Verdict,
		count[verify.Pass], count[verify.Fail], count[verify.Skip], r.Seconds)
	for _, o := range r.Scenarios {
		if o.Result == verify.Fail {
			fmt.Fprintf(p.out, "next: kgate verify --only %s --pcap captures, to see what was on the wire\n", o.Name)
			break
		}
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := pty.GetsizeFull(f) // only a terminal has a size
	return err == nil
}
