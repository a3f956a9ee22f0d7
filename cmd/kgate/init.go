package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher/policy"
)

func newInitCommand() *cobra.Command {
	var paths bool
	cmd := &cobra.Command{
		Use:   "init [--paths]",
		Short: "Write ~/.kgate/config.yaml",
		Long: `Write the default policy, with comments, to ~/.kgate/config.yaml. A file that
exists is never touched. The network mode it sets is restricted, with no hosts.

The box hides the home directory, and with it the programs that PATH finds
there. For these the file has read-only paths, commented out; with --paths they
are in force. Which they are, and why, is printed.

Exit status:
  0  the file was written
  1  it exists already, or cannot be written; nothing was changed
  2  the command line is wrong`,
		Example: `  kgate init
  kgate init --paths`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			home := os.Getenv("HOME")
			made, err := policy.Init(home, os.Getenv("PATH"), paths)
			if err != nil {
				return fmt.Errorf("init: %w", err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "wrote %s\n", made.File)
			if len(made.Offers) > 0 {
				if made.Active {
					fmt.Fprintln(out, "shown read-only in the box, because the home directory is hidden there:")
				} else {
					fmt.Fprintln(out, "hidden in the box with the home directory; take the # off these in the file to show them read-only:")
				}
				for _, o := range made.Offers {
					fmt.Fprintf(out, "  %s  (%s)\n", oneLine(o.Short(filepath.Clean(home))), oneLine(o.Why))
				}
			}
			fmt.Fprintln(out, "next: kgate network off|restricted|open, then kgate doctor")
			return nil
		},
	}
	cmd.Flags().BoolVar(&paths, "paths", false, "put the offered read-only paths in force")
	return cmd
}

// usageArgs gives the errors of an argument check the status of a wrong
// command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &statusError{status: statusUsage, err: fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
		}
		return nil
	}
}
