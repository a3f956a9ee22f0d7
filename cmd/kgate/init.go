package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher/integrate"
	"github.com/kgate-dev/kgate/launcher/policy"
)

func newInitCommand() *cobra.Command {
	var paths bool
	cmd := &cobra.Command{
		Use:        "init [--paths]",
		Short:      "Write ~/.kgate/config.yaml",
		SuggestFor: []string{"setup", "config", "install"},
		Long: `Write the default policy, with comments, to ~/.kgate/config.yaml. A file that
exists is never touched, and nothing is asked. The network mode it sets is
restricted, with no hosts.

The box hides the home directory, and with it the programs that PATH finds
there. For these the file has read-only paths, commented out; with --paths they
are in force. What was found, and why each line is proposed, is printed, and so
are the agents that kgate can get between and their shell.

Exit status:
  0  the file was written
  1  it exists already, or cannot be written; nothing was changed
  2  the command line is wrong`,
		Example: `  kgate init
  kgate init --paths
  HOME=$(mktemp -d) kgate init`,
		Args: wordArgs(0, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			home := os.Getenv("HOME")
			made, err := policy.Init(home, os.Getenv("PATH"), schemaFile(), paths)
			if err != nil {
				return fmt.Errorf("init: %w", err)
			}
			printCreated(cmd.OutOrStdout(), made, filepath.Clean(home))
			return nil
		},
	}
	cmd.Flags().BoolVar(&paths, "paths", false, "put the offered read-only paths in force")
	return cmd
}

// schemaFile is the schema of the policy file that a package has installed with
// this kgate, for the editor; "" where it was not.
func schemaFile() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		exe = real
	}
	file := filepath.Join(filepath.Dir(filepath.Dir(exe)), "share", "kgate", "schema", "config.schema.json")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	return file
}

// printCreated says what was written, what was found and why it matters, and
// what to type next.
func printCreated(out io.Writer, made *policy.Created, home string) {
	fmt.Fprintf(out, "wrote %s\n", made.File)
	if len(made.Offers) > 0 {
		if made.Active {
			fmt.Fprintln(out, "\nshown read-only in the box, because the home directory is hidden there:")
		} else {
			fmt.Fprintln(out, "\nhidden in the box with the home directory; take the # off these in the file to show them read-only:")
		}
		for _, o := range made.Offers {
			fmt.Fprintf(out, "  %s  (%s)\n", oneLine(o.Short(home)), oneLine(o.Why))
		}
	}
	found := integrate.Installed(&integrate.Host{Home: home, OS: runtime.GOOS, Getenv: os.Getenv})
	if len(found) > 0 {
		fmt.Fprintln(out, "\nagents found; kgate gets between one and its shell only when told to:")
		for _, f := range found {
			fmt.Fprintf(out, "  kgate integrate %-12s  (%s: %s)\n", f.Name, f.Title, oneLine(policy.Offer{Path: f.Where}.Short(home)))
		}
	}
	fmt.Fprintln(out, "\nnext: kgate network off|restricted|open, then kgate doctor")
}
