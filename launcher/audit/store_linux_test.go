package audit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func mountSmall(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,mode=700"); err != nil {
		return fmt.Errorf("mount a small file system: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 16<<10), 0o600)
}

func TestFullDisk(t *testing.T) {
	cmd := writer("full", t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 77) {
		if slices.Contains(strings.Split(os.Getenv("KGATE_MUST"), ","), "userns") {
			t.Fatalf("no user namespace with a file system of its own: %v\n%s", err, out)
		}
		t.Skipf("no user namespace with a file system of its own: %v\n%s", err, out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
