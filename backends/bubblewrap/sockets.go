package bubblewrap

import (
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/kgate-dev/kgate/backends"
)

// services is what is known of the sockets of the machine's services.
type services struct {
	all     []Bound
	files   bool           // the kernel tells the files, and not the names alone
	bound   map[Inode]bool // they are
	devices map[uint64]bool
	asked   bool // for the devices
}

// hideSockets masks the unix sockets that the shown trees bring in: a read-only
// mount does not keep anybody from connecting to one (measured). The kernel's own
// list of bound sockets says which, by the name that a socket was bound to and, as
// that may be relative, or another one by now, by its file. A socket file in the
// project that is not on it is left alone: nobody listens there, or a command in
// another box does, or a service in a network namespace of its own. In the allowed
// directories around the project every one is masked, as far as looking for them
// costs little. One that is made in a shown directory later on is reached.
func (w *planner) hideSockets() {
	k := &services{}
	var err error
	k.all, k.files, err = w.h.Sockets()
	masked := map[string]bool{}
	hide := func(path string) {
		real := w.real(path)
		info, err := w.h.Lstat(real)
		if err != nil || info.Mode()&fs.ModeSocket == 0 || !w.visible(real) || w.allowedByName(real) {
			return
		}
		w.hideReal("mask-socket:"+real, real, "a service outside the box answers there", built("sockets"))
		masked[real] = true
	}
	for _, b := range k.all {
		if filepath.IsAbs(b.Name) && w.near(b.Name) {
			hide(filepath.Clean(b.Name))
		}
	}
	project := w.real(w.p.Project)
	meet := func(path string) {
		if !within(path, project) || w.answered(k, path) {
			hide(path)
		}
	}
	for _, path := range w.met {
		meet(path)
	}
	for _, t := range w.roots {
		if t.dir && !t.project {
			w.unseen = !w.socketsIn(t.path, meet) || w.unseen
		}
	}
	if len(masked) > fewMasks {
		w.gather()
	}
	switch n := w.astray(k); {
	case err != nil && w.unseen:
		w.finding("sockets", backends.Degraded, "the kernel does not list its sockets, and the box's trees are too large to be looked through", "run kgate in a smaller project, allow smaller directories")
	case n > 0 && w.unseen:
		w.finding("sockets", backends.Degraded,
			fmt.Sprintf("%d sockets of services are masked; %d may lie anywhere, as their names do not lead to them, and the box's trees are too large to be looked through", len(masked), n),
			"run kgate in a smaller project, or let those services bind absolute names outside it")
	default:
		w.finding("sockets", backends.Ready, fmt.Sprintf("%d sockets of services are masked: those in the box's trees that the kernel lists, by name or by file", len(masked)), "")
	}
}

// answered says whether a service of the machine may be listening at a socket
// file: it is where the kernel does not tell.
func (w *planner) answered(k *services, path string) bool {
	if !k.files {
		return true
	}
	if k.bound == nil {
		k.bound = map[Inode]bool{}
		for _, b := range k.all {
			k.bound[b.File] = true
		}
	}
	file, ok := w.inode(path)
	return !ok || k.bound[file] || !w.comparable(k, file.Dev)
}

func (w *planner) inode(path string) (Inode, bool) {
	info, err := w.h.Lstat(path)
	if err != nil {
		return Inode{}, false
	}
	return w.h.Inode(info)
}

// comparable says whether files of a device are on the kernel's list under the
// inodes that stat(2) has.
func (w *planner) comparable(k *services, dev uint64) bool {
	if !k.asked {
		k.asked = true
		k.devices, _ = w.h.Devices() // none, then none is
	}
	return k.devices[dev]
}

// astray counts the sockets that may be in a shown tree without a name that leads
// there. It is asked only where not all of the trees was looked through.
func (w *planner) astray(k *services) int {
	if !w.unseen {
		return 0
	}
	devices := map[uint64]bool{}
	for _, t := range w.roots {
		if file, ok := w.inode(t.path); ok && t.dir {
			devices[file.Dev] = true
		}
	}
	elsewhere := func(f Inode) bool { // on another device than the trees, surely
		if !k.files || devices[f.Dev] {
			return false
		}
		for dev := range devices {
			if !w.comparable(k, dev) {
				return false
			}
		}
		return true
	}
	n := 0
	met := map[Inode]bool{}
	for _, path := range w.met {
		if file, ok := w.inode(path); ok {
			met[file] = true
		}
	}
	for _, b := range k.all {
		switch absolute := filepath.IsAbs(b.Name); {
		case absolute && !devices[b.File.Dev] && !w.near(b.Name), absolute && !k.files, met[b.File]:
			continue
		case absolute:
			if file, ok := w.inode(w.real(filepath.Clean(b.Name))); ok && file == b.File {
				continue // it is where its name says
			}
		}
		if !elsewhere(b.File) {
			n++
		}
	}
	return n
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

// allowedByName says whether the policy names that very socket.
func (w *planner) allowedByName(path string) bool {
	for _, g := range w.p.Paths {
		if g.Name == path {
			return true
		}
	}
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
