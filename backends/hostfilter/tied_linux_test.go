package hostfilter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The helpers end with kgate also when the ends of the pipes by which they
// learn of it do not come: somebody else has those open, or a helper does not
// look.
func TestHelpersAreTied(t *testing.T) {
	t.Run("as a user", func(t *testing.T) { tiedHelpers(t, false) })
	t.Run("as root", func(t *testing.T) { tiedHelpers(t, true) })
}

func tiedHelpers(t *testing.T, root bool) {
	needLab(t)
	answers(t, zone(abZone...))
	cmd := launchCommand(t, root, launchOrders{Config: Config{Hosts: hosts(t, "allowed.test")},
		Argv: []string{self(t), "client", "udp " + webAddr + ":9000 up", "sleep 20s still-here-marker"}})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := false
	for end := time.Now().Add(20 * time.Second); !up && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		_, datagrams := theLab.saw()
		up = strings.Contains(datagrams, "up")
	}
	if !up {
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatal("the command does not run")
	}
	var kept []int
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
	for _, name := range fds {
		if to, _ := os.Readlink(name); !strings.HasPrefix(to, "pipe:") {
			continue
		}
		if fd, err := unix.Open(name, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err == nil {
			kept = append(kept, fd)
		}
	}
	if len(kept) < 2 {
		t.Errorf("%d pipes of %q are open here as well", len(kept), fds)
	}
	cmd.Process.Kill()
	cmd.Wait()
	nothingLeft(t)
	for _, fd := range kept {
		unix.Close(fd)
	}
}
