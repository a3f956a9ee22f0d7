package command

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// offline is what puts a process into a network namespace of its own. Without
// one the lines are not run.
func offline(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	}
	probe := exec.Command("true")
	probe.SysProcAttr = attr
	if err := probe.Run(); err != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), "userns") {
			t.Fatalf("no network namespace here: %v", err)
		}
		t.Skipf("no network namespace here: %v", err)
	}
	return attr
}
