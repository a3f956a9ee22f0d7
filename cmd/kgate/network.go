package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher/policy"
)

func newNetworkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "network [off|restricted|open]",
		Short: "Set the network mode in ~/.kgate/config.yaml",
		Long: `Set the network mode in ~/.kgate/config.yaml. Nothing else in the file changes:
comments, order and spacing stay. Without a mode, print the one that is set.

  off         no network at all
  restricted  the hosts in allow.hosts and no others; off while there are none
  open        the whole network: the network box is gone, and doctor says so

Exit status:
  0  the mode is set, or was printed
  1  the file does not exist, is wrong, or cannot be written; it is unchanged
  2  the command line is wrong`,
		Example: `  kgate network off
  kgate network`,
		ValidArgs: []string{string(policy.Off), string(policy.Restricted), string(policy.Open)},
		Args:      wordArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			home := os.Getenv("HOME")
			if !filepath.IsAbs(home) {
				return errors.New("network: no home directory (set HOME to an absolute path)")
			}
			file := filepath.Join(home, ".kgate", "config.yaml")
			if len(args) == 0 {
				m, err := policy.ReadNetwork(file)
				if err != nil {
					return fmt.Errorf("network: %w", err)
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  (%s)\n", m.Value, m.From); err != nil {
					return fmt.Errorf("network: write the mode: %w", err)
				}
				return nil
			}
			mode, err := policy.ParseNetwork(args[0])
			if err != nil {
				return &statusError{status: statusUsage, err: fmt.Errorf("network: %w%s", err, didYouMean(nearest(args[0], cmd.ValidArgs)))}
			}
			if err := policy.SetNetwork(file, mode); err != nil {
				return fmt.Errorf("network: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "network: %s in %s\nnext: kgate doctor\n", mode, file)
			return nil
		},
	}
}
