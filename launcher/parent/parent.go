// Package parent tells when whoever started this process is gone. A harness
// that is killed tells nobody: its wrapper is handed over to another parent and
// goes on, with the box and everything in it.
package parent

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is what is known of one process.
type process struct {
	parent, group int
	name          string // of its program, without directories
}

// wrapper says whether a program is one that a harness puts between itself and
// what it starts, which only waits for it. One that is left behind when the
// harness is killed lives on as long as this process does, so its own parent
// counts.
func wrapper(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox":
		return true
	}
	return false
}

// most bounds the walk.
const most = 8

// every is how often the parent is asked for where the kernel does not tell.
var every = 50 * time.Millisecond

// Watch returns a channel that is closed when the parent of this process ends,
// or has ended already. While what is above is a shell in this process's own
// group, which is a shell that waits for one command, the shell's parent is
// watched as well. The watch lasts as long as the process.
func Watch() <-chan struct{} {
	gone := make(chan struct{})
	first := os.Getppid()
	if orphan(first) {
		close(gone)
		return gone
	}
	over := make(chan struct{}, 2*most) // nobody waits to send
	watched := watch(first, over)
	group := groupOf()
	for pid, n := first, 0; n < most && pid > 1; n++ {
		p, err := read(pid)
		if err != nil || p.group != group || !wrapper(p.name) {
			break
		}
		if left(pid, p.parent) {
			over <- struct{}{}
			break
		}
		if p.parent <= 1 {
			break
		}
		watch(p.parent, over)
		// The number is worth something only if it was still the parent's once it
		// was watched.
		if again, err := read(pid); err != nil || again.parent != p.parent {
			over <- struct{}{}
			break
		}
		pid = p.parent
	}
	go func() {
		defer close(gone)
		if watched {
			<-over
			return
		}
		poll := time.NewTicker(every)
		defer poll.Stop()
		for os.Getppid() == first {
			select {
			case <-over:
				return
			case <-poll.C:
			}
		}
	}()
	if os.Getppid() != first {
		over <- struct{}{}
	}
	return gone
}

// left says whether a process has another parent than the one that started it:
// one that leads no session is in that of whoever did.
func left(pid, ppid int) bool {
	own, err := unix.Getsid(pid)
	theirs, perr := unix.Getsid(ppid)
	return err == nil && perr == nil && ppid > 0 && own > 0 && own != pid && own != theirs
}

// orphan says whether a parent is one that took this process over, because
// whoever started it is gone already.
func orphan(ppid int) bool {
	if left(os.Getpid(), ppid) {
		return true
	}
	// The system's own first process starts no wrappers, but for systemd's units
	// (systemd.exec(5), SYSTEMD_EXEC_PID). In a container the first process may be
	// the harness itself.
	p, err := read(ppid)
	return err == nil && ppid > 0 && (p.name == "systemd" || p.name == "init" || p.name == "launchd") &&
		os.Getenv("SYSTEMD_EXEC_PID") != strconv.Itoa(os.Getpid())
}

// clean is a program's name as the kernel has it, without the dash of a login
// shell.
func clean(name string) string { return strings.TrimPrefix(filepath.Base(name), "-") }
