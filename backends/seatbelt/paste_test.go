//go:build unix

package seatbelt

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/backends"
)

// The script gives the profile to sandbox-exec and the command its directory,
// environment and words, and leaves nothing behind.
func TestPaste(t *testing.T) {
	f := here(t)
	p := base(project(t.TempDir()))
	pl, err := New(f).Plan(p, backends.Command{
		Argv: []string{"sh", "-c", `pwd -P; echo "$1"; echo "$KEPT$TMPDIR"; test -z "$DROPPED" && exit 7`, "sh", "it's\n\"odd\" $HOME"},
		Dir:  p.Dir, Env: []string{"PATH=/usr/bin:/bin", "KEPT=a 'b'"},
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(t.TempDir(), "seen")
	pl.Parts[0].Words[0] = tool(t, `test "$1" = -f && cp "$2" `+seen+` && shift 3 && exec "$@"`+"\n")
	environ := []string{"PATH=/usr/bin:/bin", "DROPPED=value-of-it", "HOME=/nowhere"}
	script := Paste(pl, environ)
	if strings.Contains(script, "value-of-it") {
		t.Error("the script shows what is taken out")
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = environ
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%v: %s", err, out)
	}
	real, _ := filepath.EvalSymlinks(p.Dir)
	if want := real + "\nit's\n\"odd\" $HOME\na 'b'" + f.Temp + "/tmp\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if text, _ := os.ReadFile(seen); string(text) != profileOf(pl).Text() {
		t.Errorf("another profile: %s", difference(profileOf(pl).Text(), string(text)))
	}
	if exists(f.Temp) {
		t.Error("something is left")
	}
}
