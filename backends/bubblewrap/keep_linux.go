package bubblewrap

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
)

// The kernel takes a mount away when what it lies on is removed or replaced in
// another mount namespace (rename(2) and unlink(2) outside the box; since Linux
// 3.18): git config, an editor that saves by renaming and git clean all do that, and
// the box's .git/config could be written from then on.

// covers are the places of a plan that must stay covered for as long as the command
// runs. A service's socket is not among them: services make theirs anew.
func covers(plan *backends.Plan, out func(part string) bool) []string {
	return points(plan, func(part string) bool {
		kind, _, _ := strings.Cut(part, ":")
		switch kind {
		case "freeze", "absent", "deny-read", "mask", "mask-exec", "hide":
			return out(part)
		}
		return true
	})
}

// LostError says that a box was ended because something in it was uncovered.
type LostError struct{ Path string }

func (e *LostError) Error() string {
	return fmt.Sprintf("box: %q was replaced or removed outside while the command ran, so that nothing kept the command from it: the box was ended (see that it is as it should be)", e.Path)
}

// keepEvery is how many milliseconds pass until the table is looked at although the
// kernel has not told of a change: it does not always (measured with Linux 6.18).
const keepEvery = 100

// keep ends the box as soon as one of its covers is gone. It returns with the box's
// first process.
func (p *box) keep(plan *backends.Plan, pid int) {
	want := covers(plan, p.out)
	name := fmt.Sprintf("/proc/%d/mountinfo", pid)
	table, err := os.Open(name)
	if err != nil {
		return // it is gone
	}
	defer table.Close()
	init, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(init)
	fds := []unix.PollFd{{Fd: int32(table.Fd()), Events: unix.POLLPRI}, {Fd: int32(init), Events: unix.POLLIN}}
	for {
		// What has changed since the table was opened, or was asked for last, is told.
		made, err := readMounts(name)
		if err != nil || len(made) == 0 {
			return
		}
		if at := missing(made, want); at != "" && !omit("keep") {
			p.mu.Lock()
			p.lost = at
			p.mu.Unlock()
			p.end()
			return
		}
		for {
			if _, err := unix.Poll(fds, keepEvery); err != unix.EINTR {
				break
			}
		}
		if fds[1].Revents != 0 {
			return
		}
	}
}
