package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release's, set by the build of the packages; "" in other
// builds, which know their module's version or commit.
var version string

// versionText is what kgate --version prints after the name.
func versionText() string {
	text := version
	if info, ok := debug.ReadBuildInfo(); ok && text == "" {
		text = info.Main.Version
	}
	if text == "" || text == "(devel)" {
		text = "of a source tree"
	}
	return fmt.Sprintf("%s (%s/%s, %s)", text, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long: `Show the help of a command: the same as kgate COMMAND --help.

Exit status:
  0  the help was printed
  2  there is no such command`,
		Example: `  kgate help run
  kgate help log verify`,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if at, _, err := cmd.Root().Find(args); err == nil {
				for _, sub := range at.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			at := cmd.Root()
			for _, word := range args {
				next, _, err := at.Find([]string{word})
				if err != nil || next == at {
					return &statusError{status: statusUsage, err: fmt.Errorf("help: no command %q%s (all commands: kgate --help)",
						word, didYouMean(nearestCommand(at, word)))}
				}
				at = next
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
	}
}
