package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildsItself runs go build and go test of this module in the box, the way
// an agent at work on it would: the module cache and the toolchain read-only,
// the build cache writable, nothing else of home.
func TestBuildsItself(t *testing.T) {
	needBox(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	kgate, err := exec.LookPath("kgate")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	goenv := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	cache, modules, toolchain := goenv("GOCACHE"), goenv("GOMODCACHE"), goenv("GOROOT")
	for _, command := range [][]string{
		{"go", "build", "-o", os.DevNull, "./cmd/kgate"},
		{"go", "test", "-count=1", "./verify/sbpl"},
	} {
		args := []string{"run", "--network", "off", "--allow-path", modules, "--allow-path", toolchain, "--allow-path", cache + ":rw", "--"}
		cmd := exec.Command(kgate, append(args, command...)...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "HOME="+home, "GOCACHE="+cache, "GOMODCACHE="+modules, "GOPROXY=off", "GOFLAGS=-buildvcs=false", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%s", command, err, out)
		}
	}
}
