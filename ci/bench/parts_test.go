package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The marks follow the code: each place is there once, and kgate with all of them
// builds.
func TestMarks(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	list, err := overlay(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-overlay", list, "-o", filepath.Join(dir, "kgate"), "./cmd/kgate")
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
