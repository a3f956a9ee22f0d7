package bubblewrap

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

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

// keepEvery is how often the mounts are looked at where the kernel does not tell of
// changes in all of the directories.
const keepEvery = 100 * time.Millisecond

// watchMost bounds the directories that are watched, each of which is a descriptor.
const watchMost = 512

// keepShare bounds what looking costs where a command makes and removes files in a
// watched directory as fast as it can: a tenth of a processor.
const keepShare = 10

// keeper is told of what is made, removed or moved in the directories above the
// covers, by a signal (F_NOTIFY in fcntl(2)). inotify(7) would tell more, but when its
// descriptor is closed, at the latest by the end of kgate, the kernel first waits to
// be rid of the watches: 5 to 16 ms (measured with Linux 6.18), which is half a launch.
type keeper struct {
	want   []string
	dirs   []int          // open directories
	change chan os.Signal // holds one when the mounts are to be looked at
	blind  bool           // not all directories are watched
}

// Of fcntl.h: what a directory tells of, and that it does so more than once.
const (
	dnCreate    = 0x4
	dnDelete    = 0x8
	dnRename    = 0x10
	dnMultishot = 0x80000000
)

// watch begins to watch the covers of a plan, before they are looked at for the
// first time.
func (p *box) watch(plan *backends.Plan) *keeper {
	k := &keeper{want: covers(plan, p.out), change: make(chan os.Signal, 1)}
	signal.Notify(k.change, unix.SIGIO)
	all := binds(plan)
	seen := map[string]bool{}
	for _, at := range k.want {
		tree := around(all, at, true)
		for name := at; tree != nil && within(name, tree.to) && name != tree.to; name = filepath.Dir(name) {
			// In the box it has the name that it has outside, or another tree's.
			dir := filepath.Join(tree.from, strings.TrimPrefix(filepath.Dir(name), tree.to))
			if !seen[dir] {
				seen[dir] = true
				k.add(dir)
			}
		}
	}
	return k
}

func (k *keeper) add(dir string) {
	if len(k.dirs) == watchMost {
		k.blind = true
		return
	}
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		k.blind = true
		return
	}
	k.dirs = append(k.dirs, fd)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, dnCreate|dnDelete|dnRename|dnMultishot)
	if err == nil {
		// It has made the calling thread the one that is told, which may end.
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, os.Getpid())
	}
	if err != nil {
		k.blind = true // sysctl fs.dir-notify-enable may be 0
	}
}

func (k *keeper) close() {
	signal.Stop(k.change)
	for _, fd := range k.dirs {
		unix.Close(fd)
	}
}

// keep ends the box as soon as one of its covers is gone. It returns with the box,
// and for no other reason: where something cannot be asked now, it is asked again.
// pid is the box's first process.
func (p *box) keep(k *keeper, pid int) {
	defer k.close()
	proc := fmt.Sprintf("/proc/%d", pid)
	blind := k.blind
	for {
		var again <-chan time.Time
		if blind {
			again = time.After(keepEvery)
		}
		select {
		case <-p.ctx.Done():
			return
		case <-k.change:
		case <-again:
		}
		start := time.Now()
		at, err := p.uncovered(proc, k.want)
		if p.gone(proc) {
			return
		}
		if blind = k.blind || err != nil; at != "" && !omit("keep") {
			p.mu.Lock()
			p.lost = at
			p.mu.Unlock()
			p.end()
			return
		}
		time.Sleep(keepShare * time.Since(start))
	}
}

// Test hook: what is read while a box ends.
var mountsOf = readMounts

// uncovered returns a cover that is gone from the mounts of a process, "" when there
// is none. The kernel tells a long table in pieces, so that the end of one can be
// missing of a box that is just ending: then it has none at all a moment later.
func (p *box) uncovered(proc string, want []string) (at string, err error) {
	for range 2 {
		made, err := mountsOf(proc + "/mountinfo")
		if err != nil || len(made) == 0 {
			return "", err
		}
		if at = missing(made, want); at == "" {
			return "", nil
		}
	}
	return at, nil
}
