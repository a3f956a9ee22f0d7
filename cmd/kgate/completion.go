package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// completions is a script for each shell that kgate completes words in.
var completions = map[string]func(root *cobra.Command, cmd *cobra.Command) error{
	"bash": func(root, cmd *cobra.Command) error { return root.GenBashCompletionV2(cmd.OutOrStdout(), true) },
	"zsh":  func(root, cmd *cobra.Command) error { return root.GenZshCompletion(cmd.OutOrStdout()) },
	"fish": func(root, cmd *cobra.Command) error { return root.GenFishCompletion(cmd.OutOrStdout(), true) },
}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes kgate's words in a shell",
		Long: `Print a script that completes kgate's commands and flags in a shell. The packages
bring these scripts along; this is for a kgate that was built by hand. The one for
bash needs the package bash-completion.

Exit status:
  0  the script was printed
  1  it could not be written
  2  the command line is wrong`,
		Example: `  source <(kgate completion bash)
  kgate completion zsh >"${fpath[1]}/_kgate"
  kgate completion fish >~/.config/fish/completions/kgate.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args:      wordArgs(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			script, ok := completions[args[0]]
			if !ok {
				return &statusError{status: statusUsage, err: fmt.Errorf("completion: no script for %q%s (there is one for bash, zsh, fish)",
					args[0], didYouMean(nearest(args[0], cmd.ValidArgs)))}
			}
			if err := script(cmd.Root(), cmd); err != nil {
				return fmt.Errorf("completion: write the script: %w", err)
			}
			return nil
		},
	}
}
