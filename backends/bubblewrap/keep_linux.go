package bubblewrap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
)

// The kernel takes a mount away when what it lies on is removed or replaced in
// another mount namespace (rename(2) and unlink(2) outside the box; since Linux
// 3.18): git config, an editor that saves by renaming and git clean all do that, and
// the box's .git/config could be written from then on. A directory above it that is
// renamed takes the mount along.

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
	return fmt.Sprintf("box: %q was replaced or removed outside while the command ran, so that nothing kept the command from it: the box was ended (see that it is as it should be, and start the command again)", e.Path)
}

// keepEvery is how many milliseconds pass until the mounts are looked at where the
// kernel does not tell of changes in all of the directories (inotify(7) has limits).
const keepEvery = 100

// keeper is told of what is removed or replaced in directories.
type keeper struct {
	want  []string
	fd    int
	names map[int32]map[string]bool // by watch: the names that count
	blind bool                      // not all directories are watched
}

// watch begins to watch the covers of a plan, before they are looked at for the
// first time.
func (p *box) watch(plan *backends.Plan) *keeper {
	k := &keeper{want: covers(plan, p.out), names: map[int32]map[string]bool{}}
	var err error
	if k.fd, err = unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK); err != nil {
		k.fd, k.blind = -1, true
		return k
	}
	all := binds(plan)
	watched := map[string]int32{}
	for _, at := range k.want {
		tree := around(all, at, true)
		for name := at; tree != nil && within(name, tree.to) && name != tree.to; name = filepath.Dir(name) {
			// In the box it has the name that it has outside, or another tree's.
			dir := filepath.Join(tree.from, strings.TrimPrefix(filepath.Dir(name), tree.to))
			wd, ok := watched[dir]
			if !ok {
				n, err := unix.InotifyAddWatch(k.fd, dir, unix.IN_MOVED_FROM|unix.IN_MOVED_TO|unix.IN_DELETE|unix.IN_ONLYDIR)
				if err != nil {
					k.blind = true
					break
				}
				wd = int32(n)
				watched[dir] = wd
			}
			if k.names[wd] == nil {
				k.names[wd] = map[string]bool{}
			}
			k.names[wd][filepath.Base(name)] = true
		}
	}
	return k
}

func (k *keeper) close() {
	if k.fd >= 0 {
		unix.Close(k.fd)
	}
}

// told reads what the kernel has told, and says whether any of it counts.
func (k *keeper) told() bool {
	counts := false
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(k.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return counts
		}
		for rest := buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			if size > len(rest) {
				break
			}
			name := bytes.TrimRight(rest[unix.SizeofInotifyEvent:size], "\x00")
			if mask&(unix.IN_Q_OVERFLOW|unix.IN_IGNORED) != 0 || k.names[wd][string(name)] {
				counts = true
			}
			rest = rest[size:]
		}
	}
}

// keep ends the box as soon as one of its covers is gone. It returns with the box's
// first process, and for no other reason: where something cannot be asked now, it is
// asked again.
func (p *box) keep(k *keeper, pid int) {
	defer k.close()
	proc, wait := fmt.Sprintf("/proc/%d", pid), -1
	if k.blind {
		wait = keepEvery
	}
	init, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		init, wait = -1, keepEvery
	} else {
		defer unix.Close(init)
	}
	fds := []unix.PollFd{{Fd: int32(init), Events: unix.POLLIN}, {Fd: int32(k.fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, wait)
		if err == unix.EINTR {
			continue
		}
		if fds[0].Revents != 0 {
			return
		}
		if err == nil && n > 0 && !k.told() {
			continue
		}
		made, err := readMounts(proc + "/mountinfo")
		// A process that has ended and is not yet buried has no mounts left.
		if p.gone(proc) || err == nil && len(made) == 0 {
			return
		}
		if err != nil {
			wait = keepEvery
			continue
		}
		if at := missing(made, k.want); at != "" && !omit("keep") {
			p.mu.Lock()
			p.lost = at
			p.mu.Unlock()
			p.end()
			return
		}
	}
}
