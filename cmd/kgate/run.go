package main

import (
	"errors"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher"
)

func newRunCommand() *cobra.Command {
	var r launcher.Request
	var verbose bool
	cmd := &cobra.Command{
		Use:        "run [flags] -- CMD [ARG...]",
		Short:      "Run one command in the box",
		SuggestFor: []string{"exec", "start", "launch"},
		Long: `Run one command in the box. The working directory's project is writable and
everything else is as the policy says; a record is written to the audit log
before the process exists.

Exit status:
  the command's own, or 128+n if signal n ended it
  125  kgate could not launch: the plan is blocked, the audit log cannot be
       written, or a policy file is wrong
  126  refused: a denied program, home as the working directory, a directory as
       standard input; or the command cannot be executed
  127  the command was not found in the box`,
		Example: `  kgate run -- git status
  kgate run --allow-path ~/data -- python3 train.py
  kgate run --allow-net host.example:443 -- npm ci`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return &statusError{status: statusLaunch, err: errors.New("no command (say: kgate run -- CMD)")}
			}
			r.Argv = args
			if verbose {
				r.Verbose = cmd.ErrOrStderr()
			}
			return run(r)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	addLaunchFlags(cmd, &r)
	f.BoolVarP(&verbose, "verbose", "v", false, "say on stderr what the network filter refuses")
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &statusError{status: statusLaunch, err: flagError(c, err)}
	})
	return cmd
}

// addLaunchFlags gives a command the one-shot exceptions, typed by the person
// at the terminal, that widen (or tighten) this launch alone.
func addLaunchFlags(cmd *cobra.Command, r *launcher.Request) {
	f := cmd.Flags()
	f.StringArrayVar(&r.AllowPaths, "allow-path", nil, "let this launch see `PATH[:rw]`")
	f.StringArrayVar(&r.AllowNets, "allow-net", nil, "let this launch reach `HOST[:PORT]`")
	f.StringVar(&r.Network, "network", "", "tighten this launch's network to `MODE` (off or restricted)")
	f.StringArrayVar(&r.EnvPass, "env", nil, "pass the variable `NAME` to this launch")
}

// run is a launch with the person's own streams; its error carries the exit
// status that kgate ends with.
func run(r launcher.Request) error {
	if err := r.Here(); err != nil {
		return &statusError{status: statusLaunch, err: err}
	}
	b, err := launcher.Backend(runtime.GOOS, r.Verbose)
	if err != nil {
		return &statusError{status: statusLaunch, err: err}
	}
	status, err := launcher.Run(r, b, os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		// Whatever has no status of its own kept the command from starting.
		if exitStatus(err) == statusFailed {
			err = &statusError{status: statusLaunch, err: err}
		}
		return err
	}
	if status != 0 {
		return &statusError{status: status, silent: true}
	}
	return nil
}
