package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher/audit"
)

func newLogVerifyCommand() *cobra.Command {
	var partial, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no line of the log was edited, removed, moved or cut off",
		Long: `Check the chain of hashes over all files of the log, and its end against
audit.head. Each finding is a line FILE:LINE: WHAT: TEXT, where WHAT is

  edited     the line is not as it was written
  removed    lines are missing before it
  reordered  it stands in the wrong place, or twice
  truncated  lines or a part of one are missing at the end
  anchor     audit.head is missing or damaged, so that a cut at the end cannot be told
  cut        a launch was killed while it wrote this line; its process did not start

A note does not count against the log: what a crash leaves behind, and where the
end cannot be vouched for. The chain shows changes by anyone who does not also
rewrite what follows and audit.head; against those, send copies to a collector.

Exit status:
  0  the log is as it was written (notes are possible)
  1  it is not, or it could not be read
  2  the command line is wrong`,
		Example: `  kgate log verify
  kgate log verify --partial     # older files have been archived elsewhere`,
		Args: wordArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := logFile()
			if err != nil {
				return err
			}
			done := waiting(cmd.ErrOrStderr(), "reading the log")
			report, err := audit.Verify(file, partial)
			done()
			if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), &report, asJSON); err != nil {
				return err
			}
			if !report.Clean() {
				return &statusError{status: statusFailed, silent: true}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&partial, "partial", false, "accept a log that begins later than its first line")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	return cmd
}

func printReport(w io.Writer, r *audit.Report, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Version int  `json:"version"`
			Clean   bool `json:"clean"`
			*audit.Report
		}{jsonVersion, r.Clean(), r})
	}
	for _, f := range r.Findings {
		fmt.Fprintln(w, visible(f.String()))
	}
	for _, f := range r.Notes {
		fmt.Fprintln(w, "note: "+visible(f.String()))
	}
	verdict := "the chain is whole"
	if n := len(r.Findings); n > 0 {
		verdict = "the log is not as it was written: " + count(n, "finding")
	}
	where := ""
	if r.Lines > 0 {
		where = fmt.Sprintf(", sequence %d to %d", r.First, r.Last)
	}
	_, err := fmt.Fprintf(w, "%s in %s%s: %s\n", count(r.Lines, "line"), count(len(r.Files), "file"), where, verdict)
	return err
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
