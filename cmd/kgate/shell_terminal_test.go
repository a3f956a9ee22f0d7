package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/launcher/terminal/tmux"
)

// TestShellTerminal uses kgate-sh as a person or an editor's agent does a
// terminal: one shell, in one box, that lives on from command to command.
func TestShellTerminal(t *testing.T) {
	needBox(t)
	shell, err := exec.LookPath(shellName)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for name, text := range map[string]string{".kgate/config.yaml": "version: 1\nnetwork: off\ndeny:\n  exec: [tac]\n", ".bashrc": "PS1='hidden> '\n"} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := tmux.New(t, "HOME="+home+" "+shell)
	// Control: the denied program is there, and starts outside.
	s.Enter("clear; echo fetched | tac")
	s.Shows("fetched\nready>")

	s.Launch("--norc --noprofile")
	s.Enter("PS1='in the box> '; clear")
	s.Shows("in the box>")
	// What is set and where it is last.
	s.Enter("mkdir -p sub; cd sub; x=kept")
	s.Enter(`clear; echo "${PWD##*/} $x $(tty | cut -c1-5)"`)
	s.Shows("sub kept /dev/")
	// Its lines are not seen by kgate, so that it is the box that refuses.
	s.Enter("clear; echo no >~/written; echo fetched | tac; echo status=$?.")
	s.Shows("status=126.")
	if strings.Contains(s.Text(), "\nfetched\n") || strings.HasPrefix(s.Text(), "fetched") {
		t.Errorf("the denied program started:\n%s", s.Text())
	}
	if _, err := os.Lstat(filepath.Join(home, "written")); err == nil {
		t.Error("a write to home reached it")
	}
	// Ctrl-C ends the command and not the shell. The command itself says that it
	// is there: a Ctrl-C between two commands is the shell's, which forgets it.
	s.Enter("clear; sh -c 'echo going; exec sleep 100'")
	s.Shows("going")
	s.Key("C-c")
	s.Enter(`clear; echo "alive, $x"`)
	s.Shows("alive, kept")
	s.Enter("exit 5")
	s.Status(5)
	s.Sane()
}

// TestShellTerminalAsUser does it again as an ordinary user.
func TestShellTerminalAsUser(t *testing.T) {
	if out := asUser(t, "^TestShellTerminal$"); !strings.Contains(out, "--- PASS: TestShellTerminal") {
		t.Fatalf("no terminal was driven as uid %d:\n%s", ordinary, out)
	}
}
