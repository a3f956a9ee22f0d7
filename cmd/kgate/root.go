package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/command"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Exit statuses that are kgate's own; every other status of run is the
// command's.
const (
	statusFailed   = 1
	statusUsage    = 2
	statusLaunch   = 125
	statusRefused  = 126
	statusNotFound = 127
)

// statusError is an error that knows the exit status it stands for. Silent
// ones have already said what they had to say.
type statusError struct {
	status int
	err    error
	silent bool
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}
func (e *statusError) Unwrap() error   { return e.err }
func (e *statusError) ExitStatus() int { return e.status }

// Main runs kgate with os.Args and returns its exit status.
func Main() int {
	if calledShell(os.Args) {
		// Before the inner programs: what follows is a command line of somebody's.
		if err := shell(os.Args[0], os.Args[1:]); err != nil {
			return report(os.Stderr, err)
		}
		return 0
	}
	if status, ok := stage(os.Args); ok {
		return status
	}
	root := newRootCommand(os.Args[1:]...)
	err := root.Execute()
	if err == nil {
		return 0
	}
	return report(root.ErrOrStderr(), err)
}

// report prints an error and returns the exit status it stands for: the one
// place where the two meet.
func report(w io.Writer, err error) int {
	var silent *statusError
	if !errors.As(err, &silent) || !silent.silent {
		next := ""
		var blocked *backends.BlockedError
		if errors.As(err, &blocked) {
			next = "; next: kgate doctor"
		}
		fmt.Fprintf(w, "kgate: %s%s\n", oneLine(err.Error()), next)
	}
	return exitStatus(err)
}

func exitStatus(err error) int {
	var (
		status  interface{ ExitStatus() int }
		refusal *command.Refusal
		refused *policy.RefusedError
		missing *backends.NotFoundError
		blocked *backends.BlockedError
	)
	switch {
	case errors.As(err, &refusal), errors.As(err, &refused):
		return statusRefused
	case errors.As(err, &missing):
		return statusNotFound
	case errors.As(err, &blocked):
		return statusLaunch
	case errors.As(err, &status):
		return status.ExitStatus()
	}
	return statusFailed
}

// oneLine keeps an error on one line whatever it quotes, and keeps bytes that
// drive a terminal out of it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\r':
			return ' '
		case r < 0x20 || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return '\ufffd'
		}
		return r
	}, strings.TrimSpace(s))
}

// newRootCommand makes the tree of commands. With the arguments of a launch it
// makes that one command: nobody waits for the others.
func newRootCommand(args ...string) *cobra.Command {
	root := &cobra.Command{
		Use:   "kgate",
		Short: "Run one command inside the box that this kernel can really install",
		Long: `kgate launches one command inside the box that this operating system's kernel
can really install (bubblewrap on Linux, Seatbelt on macOS), says beforehand
whether it can, and proves it afterwards.

Start with:
  kgate init           write ~/.kgate/config.yaml
  kgate network off    choose what the network may be
  kgate doctor         see whether this machine can enforce it
  kgate run -- CMD     run CMD in the box

Exit status:
  0    it is done
  1    it is not, or what was asked has "no" for an answer
  2    the command line is wrong
  125  to 127, or the command's own, of run and shell: see kgate run --help`,
		Example: `  kgate init
  kgate doctor
  kgate run -- git status`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &statusError{status: statusUsage, err: flagError(c, err)}
	})
	if len(args) > 0 && args[0] == "run" {
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(newRunCommand())
		return root
	}
	root.Version = versionText()
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetHelpCommand(newHelpCommand())
	root.AddCommand(newInitCommand(), newNetworkCommand(), newDoctorCommand(), newRunCommand(), newShellCommand(), newIntegrateCommand(), newHookCommand(),
		newExplainCommand(), newVerifyCommand(), newLogCommand(), newCompletionCommand())
	return root
}
