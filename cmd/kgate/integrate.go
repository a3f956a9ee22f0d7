package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher/integrate"
)

func newIntegrateCommand() *cobra.Command {
	var check, remove, dry bool
	cmd := &cobra.Command{
		Use:   "integrate NAME [--check | --remove | --dry-run]",
		Short: "Put kgate between an agent harness and its shell",
		Long: `Put kgate between an agent harness and its shell, by a setting of the harness's
own. The change is printed first; a copy of each file is kept below ~/.kgate, and
--remove brings every byte back. Doing it again changes nothing.

NAME is one of: ` + strings.Join(integrate.Names(), ", ") + `.

--check says what the harness would run, from its own settings, and how that way
fails open.

Exit status:
  0  it is done, or --check found it in force
  1  it could not be done, or --check found it not in force
  2  the command line is wrong`,
		Example: `  kgate integrate opencode --dry-run
  kgate integrate codex
  kgate integrate codex --check
  kgate integrate codex --remove`,
		Args:      wordArgs(1, 1),
		ValidArgs: integrate.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			hs, err := integrate.Find(args[0])
			if err != nil {
				return &statusError{status: statusUsage, err: fmt.Errorf("integrate: %w%s", err, didYouMean(nearest(args[0], cmd.ValidArgs)))}
			}
			if check && (remove || dry) {
				return &statusError{status: statusUsage, err: errors.New("integrate: --check changes nothing: leave out --remove and --dry-run, or --check")}
			}
			find := integrate.ThisHost
			if remove {
				find = integrate.Settings
			}
			host, err := find(runtime.GOOS)
			if err != nil {
				return fmt.Errorf("integrate: %w", err)
			}
			switch {
			case check:
				return checkIntegration(out, hs, host)
			case remove:
				return removeIntegration(out, hs, host, dry)
			}
			return integrateHarness(out, hs, host, dry)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "say what the harness would run, and change nothing")
	f.BoolVar(&remove, "remove", false, "bring the harness's files back to what they were")
	f.BoolVar(&dry, "dry-run", false, "print the change and make none")
	return cmd
}

func integrateHarness(out io.Writer, hs *integrate.Harness, host *integrate.Host, dry bool) error {
	plan, err := hs.Plan(host)
	if err != nil {
		return linesApart(out, fmt.Errorf("integrate %s: %w", hs.Name, err))
	}
	if len(plan.Edits) == 0 {
		fmt.Fprintf(out, "%s: nothing to change\n", hs.Title)
	} else {
		show(out, plan)
		if dry {
			fmt.Fprintln(out, "nothing was written (--dry-run)")
			return nil
		}
		if err := plan.Apply(); err != nil {
			return fmt.Errorf("integrate %s: %w", hs.Name, err)
		}
		fmt.Fprintf(out, "%s: done, by %s\n", hs.Title, hs.Way)
	}
	if hs.Open != "" {
		fmt.Fprintf(out, "fails open: %s\n", hs.Open)
	}
	for _, s := range hs.After(host) {
		fmt.Fprintf(out, "note: %s\n", s)
	}
	fmt.Fprintf(out, "next: kgate integrate %s --check\n", hs.Name)
	return nil
}

func removeIntegration(out io.Writer, hs *integrate.Harness, host *integrate.Host, dry bool) error {
	plan, err := hs.Undo(host)
	if err != nil {
		return linesApart(out, fmt.Errorf("integrate %s --remove: %w", hs.Name, err))
	}
	if !plan.Known() {
		fmt.Fprintf(out, "%s: kgate has changed nothing\n", hs.Title)
		return nil
	}
	show(out, plan)
	if dry {
		fmt.Fprintln(out, "nothing was written (--dry-run)")
		return nil
	}
	if err := plan.Remove(); err != nil {
		return fmt.Errorf("integrate %s --remove: %w", hs.Name, err)
	}
	fmt.Fprintf(out, "%s: removed, its commands are not boxed any more\n", hs.Title)
	return nil
}

// linesApart prints the lines that a person has to write or take out, which an
// error has after its first, as they are: an error's own line could not be copied.
func linesApart(out io.Writer, err error) error {
	first, lines, ok := strings.Cut(err.Error(), "\n")
	if !ok {
		return err
	}
	fmt.Fprintln(out, clean(strings.TrimSuffix(lines, "\n")))
	return errors.New(strings.TrimSuffix(first, ":") + ": the lines on standard output")
}

func checkIntegration(out io.Writer, hs *integrate.Harness, host *integrate.Host) error {
	bad := 0
	done := waiting(os.Stderr, "asking "+hs.Title)
	rows := hs.Check(host)
	done()
	color := paintFor(out)
	for _, row := range rows {
		mark := color.in(green, "ok ")
		if !row.OK {
			mark = color.in(red, "BAD")
			bad++
		}
		line := mark + "  " + oneLine(row.What)
		if row.Mend != "" {
			line += " (" + oneLine(row.Mend) + ")"
		}
		fmt.Fprintln(out, line)
	}
	if bad > 0 {
		return fmt.Errorf("integrate %s --check: not in force", hs.Name)
	}
	return nil
}

// show prints what becomes of each file.
func show(out io.Writer, plan *integrate.Plan) {
	color := paintFor(out)
	for _, e := range plan.Edits {
		for line := range strings.Lines(clean(e.Diff())) {
			text, end := strings.CutSuffix(line, "\n")
			switch text[:min(1, len(text))] {
			case "+":
				text = color.in(green, text)
			case "-":
				text = color.in(red, text)
			}
			fmt.Fprint(out, text)
			if end {
				fmt.Fprintln(out)
			}
		}
	}
}

// clean keeps bytes that drive a terminal out of a text of several lines.
func clean(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		body := strings.TrimSuffix(line, "\n")
		b.WriteString(strings.Map(func(r rune) rune {
			if r != '\t' && (r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0) {
				return '\ufffd'
			}
			return r
		}, body))
		b.WriteString(line[len(body):])
	}
	return b.String()
}

func newHookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "hook codex|gemini-cli",
		Short: "Answer a harness's hook: start this command in the box",
		Long: `Read from standard input what a harness asks before it starts a command, and
answer on standard output that it shall start kgate-sh with that command. This is
what kgate integrate puts into the settings of Codex and Gemini CLI.

Exit status:
  0  the answer was given
  2  no answer: the harness does not start the command`,
		Example: `  echo '{"tool_name":"Bash","tool_input":{"command":"ls"}}' | kgate hook codex`,
		Args:    wordArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := hook(args[0], cmd.InOrStdin())
			if err != nil {
				return &statusError{status: integrate.HookBlocked, err: fmt.Errorf("hook: %w; the command was not started", err)}
			}
			_, err = cmd.OutOrStdout().Write(answer)
			return err
		},
	}
}

// hookMost bounds a question: a command line is no longer than what can be
// executed.
const hookMost = 16 << 20

func hook(name string, in io.Reader) ([]byte, error) {
	host, err := integrate.ThisHost(runtime.GOOS)
	if err != nil {
		return nil, err
	}
	question, err := io.ReadAll(io.LimitReader(in, hookMost))
	if err != nil {
		return nil, fmt.Errorf("read the harness's question: %w", err)
	}
	if len(question) == 0 && in == os.Stdin {
		return nil, fmt.Errorf("nothing was asked on standard input")
	}
	return integrate.Hook(name, question, host.Shell)
}
