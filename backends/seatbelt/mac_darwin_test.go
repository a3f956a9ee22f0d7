package seatbelt

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Every golden profile compiles and lets a program run that needs nothing but
// the system. What is denied on the way is in the kernel's log.
func TestMacCompiles(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.sb")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d golden profiles, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			cmd := exec.Command(Tool, "-f", file, "--", "/usr/bin/true")
			cmd.Dir = "/"
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// The kernel's path for a file is the one that its directories have.
func TestMacSpelling(t *testing.T) {
	f := ThisHost()
	for _, tt := range []struct{ name, want string }{
		{"/tmp", "/private/tmp"},
		{"/tmp/kgate-does-not-exist/x", "/private/tmp/kgate-does-not-exist/x"},
		{"/var", "/private/var"},
		{"/USR/BIN", "/usr/bin"},
		{"/System/Volumes/Data/Users", "/Users"},
	} {
		if got := f.Follow(tt.name).Path; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
