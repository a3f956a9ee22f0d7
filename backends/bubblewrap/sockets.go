package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kgate-dev/kgate/backends"
)

// hideSockets masks the unix sockets that the shown trees bring in: a read-only
// mount does not keep anybody from connecting to one (measured). The kernel's
// own list of bound sockets says where they are, in the project too. Sockets of
// other network namespaces are not on it, so the allowed directories are looked
// at as well, as far as that costs little. In the project a socket that its
// service has bound by a relative name, or moved, is not found and can be connected
// to; so can one that is made in a shown directory later on.
func (w *planner) hideSockets() {
	names, err := w.h.Sockets()
	listed := err == nil
	n := 0
	hide := func(path string) {
		real := w.real(path)
		info, err := w.h.Lstat(real)
		if err != nil || info.Mode()&fs.ModeSocket == 0 || !w.visible(real) || w.allowedByName(real) {
			return
		}
		w.hideReal("mask-socket:"+real, real, "a service outside the box answers there", built("sockets"))
		n++
	}
	for _, name := range names {
		if filepath.IsAbs(name) && w.near(name) {
			hide(filepath.Clean(name))
		}
	}
	whole := true
	for _, t := range w.roots {
		if t.dir && !t.project {
			whole = w.socketsIn(t.path, hide) && whole
		}
	}
	switch {
	case !listed && !whole:
		w.finding("sockets", backends.Degraded, "neither the kernel's list of sockets nor all allowed directories could be looked at", "allow smaller directories")
	default:
		w.finding("sockets", backends.Ready, fmt.Sprintf("%d sockets of services are masked: those in the box's trees by the name that the kernel lists", n), "")
	}
}

// near says whether a name may lead into a shown tree, without asking the host:
// the list holds hundreds, nearly all of them below /run and /tmp.
func (w *planner) near(name string) bool {
	for _, t := range w.roots {
		if within(name, t.path) || within(name, t.name) {
			return true
		}
	}
	return w.visible(name)
}

func (w *planner) allowedByName(path string) bool {
	for _, t := range w.roots {
		if t.path == path {
			return true
		}
	}
	return false
}

// socketsIn looks for sockets near the top of a directory, and says whether that
// was the whole of it.
func (w *planner) socketsIn(root string, found func(string)) bool {
	const most, wide = 24, 512
	queue := []string{root}
	whole := true
	for n := 0; n < len(queue); n++ {
		if n == most {
			return false
		}
		entries, more, err := w.h.ReadDir(queue[n], wide)
		if err != nil {
			continue
		}
		whole = whole && !more
		for _, e := range entries {
			path := filepath.Join(queue[n], e.Name())
			switch {
			case e.IsDir():
				queue = append(queue, path)
			case e.Type()&fs.ModeSocket != 0:
				found(path)
			}
		}
	}
	return whole
}
