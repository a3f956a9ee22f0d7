package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kgate-dev/kgate/launcher"
	"github.com/kgate-dev/kgate/launcher/parent"
)

// shellName is the one word under which kgate stands in for a shell: a link to
// the same file. A harness's setting takes one word and no arguments
// (anthropics/claude-code's CLAUDE_CODE_SHELL_PREFIX quotes it as a program's
// name).
const shellName = "kgate-sh"

// calledShell says whether this process was started under that name. The dash
// is a login shell's.
func calledShell(argv []string) bool {
	return len(argv) > 0 && strings.TrimPrefix(filepath.Base(argv[0]), "-") == shellName
}

func newShellCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "shell [OPTION...] [-c STRING [NAME ARG...] | COMMAND-LINE | CMD ARG... | SCRIPT ARG...]",
		Short:      "Stand in for bash: run a shell's command line in the box",
		SuggestFor: []string{"sh", "bash"},
		Long: `Stand in for bash wherever a program takes a shell, or a prefix for its command
lines. A link to kgate with the name kgate-sh is the same in one word:

  ln -s kgate bin/kgate-sh

The command line is inspected as that of kgate run is, then bash (sh where there
is none) runs it in one box. Bash gets its options as they are. A single
argument is a whole command line, several are a program and its arguments, or a
script and its arguments as for bash; without any the shell is interactive.

The box ends when whoever started kgate ends, however it ends, and shortly
after a signal that asks kgate to. Nothing of kgate's is printed but the one line
of a refusal.

Exit status:
  that of kgate run: see kgate run --help`,
		Example: `  kgate shell -c 'make test && git status'
  kgate-sh 'cd src && ls'
  SHELL=/usr/local/bin/kgate-sh aider`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
				return cmd.Help()
			}
			return shell("kgate shell", args)
		},
	}
}

// shellGrace is how long a shell's command has to end after a signal. Harnesses
// send one, and some nothing after it.
const shellGrace = 200 * time.Millisecond

// errAlone is for whoever reads it: the harness is gone.
var errAlone = errors.New("shell: the program that started this one has ended, so nothing is started")

// shell runs what a shell called with these arguments would run. Name is how
// it was called.
func shell(name string, args []string) error {
	over := parent.Watch()
	select {
	case <-over:
		return &statusError{status: statusLaunch, err: errAlone}
	default:
	}
	real, err := realShell(os.Getenv("PATH"), os.Getenv("HOME"))
	if err != nil {
		return &statusError{status: statusLaunch, err: err}
	}
	return run(launcher.Request{
		Argv: shellArgv(real, args, strings.HasPrefix(name, "-")),
		// What the command itself starts through $SHELL is in the box already.
		Env:   setenv(os.Environ(), "SHELL", real),
		Over:  over,
		Grace: shellGrace,
	})
}

// realShell finds the shell that runs the command lines: the person's bash, or
// sh. One in the home directory is the last choice, because the box hides it.
func realShell(path, home string) (string, error) {
	self, _ := os.Executable()
	own, _ := os.Stat(self)
	var hidden string
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range append(filepath.SplitList(path), "/bin", "/usr/bin", "/usr/local/bin") {
			if !filepath.IsAbs(dir) {
				continue
			}
			file := filepath.Join(dir, name)
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
				continue
			}
			if own != nil && os.SameFile(info, own) {
				continue // a link that puts kgate in bash's place
			}
			if home != "" && strings.HasPrefix(file, filepath.Clean(home)+"/") {
				if hidden == "" {
					hidden = file
				}
				continue
			}
			return file, nil
		}
	}
	if hidden != "" {
		return hidden, nil
	}
	return "", errors.New("shell: neither bash nor sh was found on PATH or in /bin (install one)")
}

// shellArgv is the command to run in the box for a shell called with args.
func shellArgv(real string, args []string, login bool) []string {
	argv := []string{real}
	if login {
		argv = append(argv, "-l")
	}
	n, text := shellOptions(args)
	if text || n == len(args) {
		return append(argv, args...)
	}
	options, rest := args[:n], args[n:]
	if rest[0] == "--" || rest[0] == "-" {
		rest = rest[1:]
	}
	switch {
	case isScript(rest[0]):
		return append(append(argv, options...), rest...)
	case len(rest) == 1 && !(strings.Contains(rest[0], "/") && isProgram(rest[0])):
		return append(append(append(argv, options...), "-c"), rest...)
	case n == 0 && !login:
		return rest
	default:
		// The shell's options count for a program as well: -l reads profiles first.
		return append(append(append(argv, options...), "-c", `exec "$@"`, real), rest...)
	}
}

// shellOptions returns how many of the arguments are options of bash's with
// their own arguments, and whether they say that the command is text or comes
// from standard input.
func shellOptions(args []string) (n int, given bool) {
	for n < len(args) {
		a := args[n]
		switch {
		case a == "--" || a == "-":
			return n, given || n+1 == len(args)
		case a == "--rcfile" || a == "--init-file":
			n++
		case strings.HasPrefix(a, "--"):
		case len(a) > 1 && (a[0] == '-' || a[0] == '+'):
			for _, letter := range a[1:] {
				switch {
				case letter == 'o' || letter == 'O':
					n++
				case a[0] == '-' && (letter == 'c' || letter == 's'):
					given = true
				}
			}
		default:
			return n, given
		}
		n++
	}
	return min(n, len(args)), given
}

// isScript says whether bash would read a first operand as a script and it is
// nothing that can be executed by itself.
func isScript(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 == 0
}

// isProgram says whether a name is a file that can be executed, whatever
// characters it has.
func isProgram(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// setenv replaces a variable of an environment.
func setenv(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			out = append(out, e)
		}
	}
	return append(out, name+"="+value)
}
