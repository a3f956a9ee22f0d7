package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/pattern"

	"github.com/kgate-dev/kgate/launcher/audit"
)

func newLogCommand() *cobra.Command {
	var q logQuery
	cmd := &cobra.Command{
		Use:        "log [flags]",
		Short:      "Show what was launched and what was refused",
		SuggestFor: []string{"audit", "history"},
		Long: `Show the audit log, ~/.kgate/audit.jsonl and the files set aside beside it, oldest
line first: time, kind, working directory, command, and the reason of a refusal.

A line of kind launch was written before its process existed; one of kind block
says that none was started. In the table, characters that could drive a terminal
are escaped and long commands are cut; --json prints the lines as they are.

TIME is a length of time before now (90s, 30m, 2h, 7d), a date (2026-12-01), a date
with a time ("2026-12-01 09:30"), or RFC 3339 (2026-12-01T09:30:00Z).

Exit status:
  0  the log was read, whether or not a line matched
  1  it could not be read, or (kgate log verify) it is not as it was written
  2  the command line is wrong`,
		Example: `  kgate log -n 20
  kgate log --kind block --since 2h
  kgate log --dir ~/proj --command 'npm *'
  kgate log --follow --json
  kgate log verify`,
		Args: wordArgs(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.last < 0 && cmd.Flags().Changed("lines") {
				return &statusError{status: statusUsage, err: fmt.Errorf("log: --lines: want 0 or more, found %d", q.last)}
			}
			if err := q.prepare(time.Now()); err != nil {
				return &statusError{status: statusUsage, err: fmt.Errorf("log: %w", err)}
			}
			return q.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.kind, "kind", "", "only lines of `KIND`: launch or block")
	f.StringVar(&q.since, "since", "", "only lines from `TIME` on")
	f.StringVar(&q.until, "until", "", "only lines before `TIME`")
	f.StringVar(&q.dir, "dir", "", "only launches in `DIR` or below it")
	f.StringVar(&q.command, "command", "", "only commands that contain `TEXT`, or that TEXT matches as a whole when it has * ? or [")
	f.IntVarP(&q.last, "lines", "n", -1, "only the last `N` lines that match")
	f.Lookup("lines").DefValue = "0" // all: the help is not to say -1
	f.BoolVarP(&q.follow, "follow", "f", false, "go on with new lines as they come (begins with the last 10)")
	f.BoolVar(&q.json, "json", false, "print the lines as they are, one JSON object each")
	cmd.AddCommand(newLogVerifyCommand())
	return cmd
}

// logFile is the log that a launch from here would write.
func logFile() (string, error) {
	home := os.Getenv("HOME")
	if home == "" {
		if u, err := user.Current(); err == nil {
			home = u.HomeDir
		}
	}
	if !filepath.IsAbs(home) {
		return "", errors.New("log: no home directory (set HOME to an absolute path)")
	}
	return audit.File(filepath.Clean(home)), nil
}

// logQuery is which lines to show and how.
type logQuery struct {
	kind, since, until, dir, command string
	last                             int
	follow, json                     bool

	from, to time.Time // zero: no bound
	dirs     []string  // the directory's spellings; nil: any
	matches  func(command string) bool
}

func (q *logQuery) prepare(now time.Time) error {
	switch q.kind {
	case "", audit.Launch, audit.Block:
	default:
		return fmt.Errorf("--kind %q is neither launch nor block", q.kind)
	}
	var err error
	if q.since != "" {
		if q.from, err = parseTime(q.since, now); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
	}
	if q.until != "" {
		if q.to, err = parseTime(q.until, now); err != nil {
			return fmt.Errorf("--until: %w", err)
		}
	}
	if q.dir != "" {
		dir, err := filepath.Abs(q.dir)
		if err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
		q.dirs = []string{dir}
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			q.dirs = append(q.dirs, real)
		}
	}
	if q.matches, err = commandMatcher(q.command); err != nil {
		return fmt.Errorf("--command %q: %w", q.command, err)
	}
	if q.follow && q.last < 0 {
		q.last = 10
	}
	return nil
}

func commandMatcher(text string) (func(string) bool, error) {
	if !strings.ContainsAny(text, "*?[") {
		return func(command string) bool { return strings.Contains(command, text) }, nil
	}
	expr, err := pattern.Regexp(text, pattern.EntireString)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

// parseTime reads the TIME of the command's help.
func parseTime(text string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 1e5 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a length of time (2h, 7d), a date (2026-12-01), nor RFC 3339", text)
}

// wants says whether a line is asked for. One that cannot be read is, unless
// something is asked of it that it cannot answer.
func (q *logQuery) wants(l audit.Line) bool {
	if l.Err != nil {
		return q.kind == "" && q.since == "" && q.until == "" && q.dir == "" && q.command == ""
	}
	e := l.Entry
	switch {
	case q.kind != "" && e.Kind != q.kind,
		!q.from.IsZero() && e.Time.Before(q.from),
		!q.to.IsZero() && !e.Time.Before(q.to),
		q.command != "" && !q.matches(strings.Join(e.Argv, " ")):
		return false
	}
	for _, dir := range q.dirs {
		if e.Dir == dir || dir == "/" || strings.HasPrefix(e.Dir, dir+"/") {
			return true
		}
	}
	return q.dirs == nil
}

func (q *logQuery) run(cmd *cobra.Command) error {
	file, err := logFile()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	home := filepath.Dir(filepath.Dir(file))
	color := paintFor(out)
	show := func(l audit.Line) error {
		switch {
		case q.json && l.Err == nil:
			_, err := out.Write(append(l.Raw[:len(l.Raw):len(l.Raw)], '\n'))
			return err
		case l.Err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "kgate: %s: a line cannot be read: %v (see kgate log verify)\n", visible(l.File), l.Err)
			return nil
		}
		_, err := io.WriteString(out, tableRow(l.Entry, home, color))
		return err
	}
	filtered := func(l audit.Line) error {
		if !q.wants(l) {
			return nil
		}
		return show(l)
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) && !q.json && !q.follow {
		fmt.Fprintln(cmd.ErrOrStderr(), "kgate: log: nothing was launched or refused yet (next: kgate run -- CMD)")
	}
	if q.last < 0 {
		return quietPipe(audit.Read(file, filtered))
	}
	lines, end, err := audit.Last(file, q.last, q.wants)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if err := show(l); err != nil {
			return quietPipe(err)
		}
	}
	if !q.follow {
		return nil
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	return quietPipe(audit.Follow(ctx, file, end, filtered))
}

// quietPipe takes the end of the reader ("kgate log | head") for what it is.
func quietPipe(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
