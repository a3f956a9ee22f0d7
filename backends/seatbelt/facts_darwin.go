package seatbelt

import (
	"os"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ThisHost are the facts of this machine.
func ThisHost() Facts {
	f := Facts{
		Follow:   memo(func(name string) Real { return follow(name, onDisk) }),
		Exists:   func(name string) bool { _, err := os.Lstat(name); return err == nil },
		ReadFile: readSmall,
	}
	if exe, err := os.Executable(); err == nil {
		f.Kgate = f.Follow(exe).Path
	}
	f.UserTemp = f.Follow(os.TempDir()).Path
	f.Temp = launchDir(f.UserTemp)
	for _, dir := range []string{selected(), "/Applications/Xcode.app/Contents/Developer", "/Library/Developer/CommandLineTools"} {
		if dir != "" && f.Exists(dir) {
			f.Developer = f.Follow(dir).Path
			break
		}
	}
	return f
}

// selected is what xcode-select --switch has chosen, "" when it has not.
func selected() string {
	dir, err := os.Readlink("/private/var/db/xcode_select_link")
	if err != nil {
		return ""
	}
	return dir
}

// memo keeps answers for the length of a launch, so that one plan sees one
// answer for one path.
func memo(f func(string) Real) func(string) Real {
	var mu sync.Mutex
	known := map[string]Real{}
	return func(name string) Real {
		mu.Lock()
		defer mu.Unlock()
		r, ok := known[name]
		if !ok {
			r = f(name)
			known[name] = r
		}
		return r
	}
}

// pathBuffer is where the kernel writes a path. It is no local variable, because
// a stack may move under an address that is passed as a number. memo's lock
// guards it.
var pathBuffer [unix.PathMax]byte

// onDisk gives a path the spelling that the directories have: the usual file
// system finds ~/.SSH when the disk says ~/.ssh, and the kernel's path is the
// disk's (fcntl(2), F_GETPATH). What does not exist keeps its spelling.
func onDisk(name string) string {
	rest := ""
	for dir := name; dir != "/"; {
		fd, err := unix.Open(dir, unix.O_EVTONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == nil {
			defer unix.Close(fd)
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETPATH, int(uintptr(unsafe.Pointer(&pathBuffer)))); err != nil {
				return name
			}
			real, _, _ := strings.Cut(string(pathBuffer[:]), "\x00")
			return strings.TrimSuffix(real, "/") + rest
		}
		i := strings.LastIndexByte(dir, '/')
		rest, dir = dir[i:]+rest, dir[:i]
		if dir == "" {
			dir = "/"
		}
	}
	return name
}
