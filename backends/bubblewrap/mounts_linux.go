package bubblewrap

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
)

// bwrap follows each path once more when it mounts what is there. A command in
// another box, in whose project some of them lie, can put a symlink in the place
// of a directory between the plan and that moment, and back: then a directory of
// the home is shown, for writing. So nothing runs before the mounts of the
// finished box have been looked at from outside, in the kernel's own words, in
// which there are no symlinks (proc_pid_mountinfo(5)).

// readMounts reads a mount table.
func readMounts(file string) ([]mountLine, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []mountLine
	for line := range bytes.Lines(text) {
		before, after, ok := strings.Cut(string(line), " - ")
		f := strings.Fields(before)
		if !ok || len(f) < 5 {
			return nil, fmt.Errorf("read %q: not understood: %q", file, line)
		}
		kind, _, _ := strings.Cut(after, " ")
		all = append(all, mountLine{device: f[2], root: unmangle(f[3]), point: unmangle(f[4]), kind: kind})
	}
	return all, nil
}

// Mounts reads the table of this process's own mount namespace.
func (thisHost) Mounts() ([]mountLine, error) { return readMounts("/proc/self/mountinfo") }

// unmangle undoes the kernel's spelling of blanks, line ends and backslashes.
var unmangle = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`, `\043`, "#").Replace

// bound is one bind of a plan.
type bound struct {
	from, to string
	write    bool
}

// binds lists the binds of a plan.
func binds(plan *backends.Plan) []bound {
	var all []bound
	for _, part := range plan.Parts {
		if len(part.Words) != 3 {
			continue
		}
		switch part.Words[0] {
		case "--bind", "--ro-bind":
			all = append(all, bound{part.Words[1], part.Words[2], part.Words[0] == "--bind"})
		}
	}
	return all
}

// points lists the places at which a plan's words mount something. Parts that are
// left out are not counted.
func points(plan *backends.Plan, out func(part string) bool) []string {
	var all []string
	for _, part := range plan.Parts {
		if part.Name == "end" {
			break
		}
		if out(part.Name) {
			continue
		}
		for i, word := range part.Words {
			switch rest := part.Words[i+1:]; {
			case word == "--tmpfs" && len(rest) > 0:
				all = append(all, rest[0])
			case (word == "--bind" || word == "--ro-bind" || word == "--ro-bind-data") && len(rest) > 1:
				all = append(all, rest[1])
			}
		}
	}
	return all
}

// missing returns a place at which something should be mounted and nothing is, ""
// when there is none: bwrap was led to another place, where a mask or what holds
// a name covers nothing.
func missing(box []mountLine, want []string) string {
	have := make(map[string]bool, len(box))
	for _, m := range box {
		have[m.point] = true
	}
	for _, p := range want {
		if !have[p] {
			return p
		}
	}
	return ""
}

// around returns the bind with the longest place that contains a path, nil when
// none does. One at the path itself does not count when below is set.
func around(all []bound, path string, below bool) *bound {
	var found *bound
	for i, b := range all {
		if within(path, b.to) && !(below && b.to == path) && (found == nil || len(b.to) >= len(found.to)) {
			found = &all[i]
		}
	}
	return found
}

// whole returns the bind whose source everything at a path must be from: the
// outermost of the writable ones that show a part of each other.
func whole(all []bound, path string) *bound {
	b := around(all, path, false)
	for b != nil {
		outer := around(all, b.to, true)
		if outer == nil || !outer.write || !within(b.from, outer.from) {
			break
		}
		b = outer
	}
	return b
}

// astray returns a mount of a box that shows what the plan does not, nil when
// there is none. What no bind contains is bwrap's own: nobody else can have
// changed what it was made from.
func astray(host, box []mountLine, all []bound) *mountLine {
	devices := map[string]bool{}
	for _, h := range host {
		devices[h.device] = true
	}
	for i, m := range box {
		if within(m.point, "/proc") || within(m.point, "/dev") {
			continue
		}
		t := whole(all, m.point)
		if t == nil || m.kind == "tmpfs" && !devices[m.device] || shows(host, m, t.from) {
			continue
		}
		return &box[i]
	}
	return nil
}

// shows says whether a mount shows something of what the host has at a path.
func shows(host []mountLine, m mountLine, path string) bool {
	deep := -1 // the length of the place of the file system that the path is in
	for _, h := range host {
		if within(path, h.point) {
			deep = max(deep, len(h.point))
		}
	}
	for _, h := range host {
		if m.device != h.device {
			continue
		}
		root := h.root
		switch {
		case within(path, h.point) && len(h.point) == deep:
			root = filepath.Join(root, strings.TrimPrefix(path, h.point))
		case !within(h.point, path):
			continue
		}
		if within(m.root, root) {
			return true
		}
	}
	return false
}

// lookEvery is how often it is asked whether bwrap has finished the box.
const lookEvery = 100 * time.Microsecond

// lookWithin bounds the wait for a box that never gets what every box has. One
// of some thousand mounts takes seconds.
var lookWithin = 60 * time.Second

// look waits until the box is finished and says whether it shows what it should.
// pid is its first process. False and no error: it has ended before that, and
// whoever waits for it says why.
func (p *box) look(plan *backends.Plan, pid int) (bool, error) {
	proc := fmt.Sprintf("/proc/%d", pid)
	host, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	// The last thing that bwrap does is to make what it has built its root. Where
	// kgate is in a box itself, its own root has such a place too.
	var mine, its unix.Stat_t
	unix.Stat(InsidePath, &mine)
	until := time.Now().Add(lookWithin)
	for wait := lookEvery; ; wait = min(wait*21/20, 5*time.Millisecond) {
		err := unix.Stat(proc+"/root"+InsidePath, &its)
		if err == nil && (its.Dev != mine.Dev || its.Ino != mine.Ino) {
			break
		}
		if p.ctx.Err() != nil || p.gone(proc) {
			return false, nil
		}
		if time.Now().After(until) {
			return false, fmt.Errorf("box: it is not finished %v after its first process was made (nothing was started: see whether bwrap is stopped)", lookWithin)
		}
		time.Sleep(wait)
	}
	made, err := readMounts(proc + "/mountinfo")
	if err != nil {
		if p.gone(proc) {
			err = nil
		}
		return false, err
	}
	if m := astray(host, made, binds(plan)); m != nil && !omit("look") {
		return false, fmt.Errorf("box: what is at %q changed while the box was made: it would have shown %q (nothing was started: look for what replaces directories there, a command in another box may)", m.point, m.root)
	}
	if at := missing(made, points(plan, p.out)); at != "" && !omit("look-missing") {
		return false, fmt.Errorf("box: what is at %q changed while the box was made: what should cover it does not (nothing was started: look for what replaces directories there, a command in another box may)", at)
	}
	return true, nil
}

// gone says whether bwrap or the box's first process, which proc is about, has ended.
func (p *box) gone(proc string) bool {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, p.bwrap, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil); err == nil && info.Signo != 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var st unix.Stat_t
	if p.initFD < 0 {
		return unix.Stat(proc, &st) != nil
	}
	fds := []unix.PollFd{{Fd: int32(p.initFD), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
