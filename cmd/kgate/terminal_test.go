package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/launcher/terminal/tmux"
)

// boxed is a shell with a terminal in which L runs a command in the box.
func boxed(t *testing.T) *tmux.Screen {
	t.Helper()
	needBox(t)
	kgate, err := exec.LookPath("kgate")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kgate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".kgate/config.yaml"), []byte("version: 1\nnetwork: off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return tmux.New(t, "HOME="+home+" "+kgate+" run --")
}

// TestTerminal drives commands in the real box through a terminal; package
// launcher/terminal's own tests do the same without a box and in more detail.
func TestTerminal(t *testing.T) {
	t.Run("streams and status", func(t *testing.T) {
		s := boxed(t)
		s.Enter(`L sh -c 'test -t 0 && test -t 1 && test -t 2 && tty && stty size; ls /proc/self/fd | wc -l; exit 7'; echo status=$?.`)
		s.Shows("\n/dev/", "\n24 80\n4\n", "status=7.")
		s.Enter(`clear; L no-such-program; echo status=$?.; L sh -c 'kill -KILL $$'; echo status=$?.`)
		s.Shows(`kgate: "no-such-program": not found`, "status=127.", "status=137.")
		// A tool of the home is named with what shows it, as without a terminal.
		s.Enter(`clear; printf '#!/bin/sh\n' >~/tool; chmod 755 ~/tool; L ~/tool; echo status=$?.; L /etc/passwd; echo status=$?.`)
		s.Shows("--allow-path", "status=127.", "permission denied", "status=126.")
		s.Sane()
	})
	t.Run("keys", func(t *testing.T) {
		s := boxed(t)
		s.Launch(`sh -c 'trap "echo trapped; exit 3" INT; echo waiting; while :; do sleep 0.05; done'`)
		s.Shows("waiting")
		s.Key("C-c")
		s.Shows("trapped")
		s.Status(3)
		s.Launch("sleep 100")
		s.Key(`C-\`)
		s.Status(131)
		s.Launch("cat")
		s.Enter("one")
		s.Shows("one\none")
		s.Key("C-z")
		s.Shows("Stopped")
		s.Sane()
		s.Enter("fg")
		s.Taken()
		s.Enter("two")
		s.Shows("two\ntwo")
		s.Key("C-d")
		s.Status(0)
		s.Sane()
	})
	t.Run("programs", func(t *testing.T) {
		s := boxed(t)
		s.Launch("env PS1='inner> ' sh")
		s.Shows("inner>")
		s.Run("resize-window", "-x", "90", "-y", "30")
		s.Enter("stty size")
		s.Shows("30 90")
		s.Enter(`echo ghp_""0123456789abcdefghijABCDEFGHIJ012345`)
		s.Shows("\n[masked: github-token]\n")
		s.Enter("exit 4")
		s.Status(4)
		if _, err := exec.LookPath("vim"); err == nil {
			s.Launch("vim -u NONE -N file.txt")
			s.Shows("~\n~")
			s.Type("ihello from vim")
			s.Key("Escape")
			s.Enter(":wq")
			s.Status(0)
			s.Enter("cat file.txt")
			s.Shows("hello from vim\nready>")
		}
		s.Sane()
	})
	t.Run("pipeline", func(t *testing.T) {
		if _, err := exec.LookPath("less"); err != nil {
			t.Skip("less is not installed")
		}
		s := boxed(t)
		for _, line := range []string{"L seq 500 | less", "seq 500 | L less"} {
			s.Enter("clear; " + line)
			s.Shows("1\n2\n3", ":")
			s.Key("G")
			s.Shows("499\n500\n(END)")
			s.Key("q")
			s.Sane()
		}
	})
	t.Run("restored", func(t *testing.T) {
		s := boxed(t)
		for _, signal := range []string{"TERM", "HUP", "KILL"} {
			s.Launch(`sh -c 'stty raw -echo; printf "\033[?1049h\033[?25l\033[Hfull screen"; while :; do sleep 0.05; done'`)
			s.Wait("the full screen", func(text string) bool { return text == "full screen" })
			target := s.Child()
			if signal == "KILL" {
				target = s.Child("bwrap") // kgate itself could restore nothing
			}
			if out, err := exec.Command("kill", "-"+signal, target).CombinedOutput(); err != nil {
				t.Fatalf("SIG%s: %v\n%s", signal, err, out)
			}
			s.Sane()
			if got := strings.TrimSpace(s.Run("display-message", "-p", "#{cursor_flag} #{alternate_on}")); got != "1 0" {
				t.Errorf("after SIG%s: cursor and alternate screen %q", signal, got)
			}
		}
	})
}

// TestTerminalAsUser does it again as an ordinary user.
func TestTerminalAsUser(t *testing.T) {
	if out := asUser(t, "^TestTerminal$"); !strings.Contains(out, "--- PASS: TestTerminal") {
		t.Fatalf("no terminal was driven as uid %d:\n%s", ordinary, out)
	}
}
