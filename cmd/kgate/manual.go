//go:build manual

// With the tag manual the program has one more word: "kgate manual DIR VERSION
// DATE" writes manual pages and completions below DIR. The packages' build runs
// it; it is in no kgate that is installed.

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kgate-dev/kgate/ci/manual"
)

func init() { stages["manual"] = writeManual }

func writeManual(args []string) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: kgate manual DIR VERSION DATE")
		return statusUsage
	}
	root := newRootCommand()
	files := map[string]string{}
	about := manual.About{
		Version: args[1], Date: args[2],
		Files: []string{
			"~/.kgate/config.yaml: the person's policy",
			".kgate.yaml: a project's policy, which can only narrow the person's",
			"~/.kgate/audit.jsonl: the audit log",
		},
		More: []string{"bwrap(1)", "slirp4netns(1)"},
	}
	for name, text := range manual.Pages(root, about) {
		files[filepath.Join("man1", name)] = text
	}
	files["man1/kgate-sh.1"] = ".so man1/kgate-shell.1\n"
	for shell, name := range map[string]string{"bash": "kgate", "zsh": "_kgate", "fish": "kgate.fish"} {
		var text strings.Builder
		root.SetOut(&text)
		root.SetArgs([]string{"completion", shell})
		if err := root.Execute(); err != nil {
			return report(os.Stderr, err)
		}
		files[filepath.Join(shell, name)] = text.String()
	}
	for name, text := range files {
		file := filepath.Join(args[0], name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		if err == nil {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "kgate: manual: %v\n", err)
			return statusFailed
		}
	}
	return 0
}
