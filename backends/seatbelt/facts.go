package seatbelt

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// follow resolves a path link by link. What does not exist is kept as it is,
// below the deepest directory that does. tidy may give an existing path the
// spelling that its directories have.
func follow(name string, tidy func(string) string) Real {
	var r Real
	rest, done := filepath.Clean(name), "/"
	for hops := 0; rest != "" && rest != "/"; {
		part, more, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
		at := filepath.Join(done, part)
		info, err := os.Lstat(at)
		if err == nil && info.Mode()&os.ModeSymlink != 0 && hops < 64 {
			if target, err := os.Readlink(at); err == nil {
				hops++
				r.Links = append(r.Links, at)
				if !filepath.IsAbs(target) {
					target = filepath.Join(done, target)
				}
				rest, done = filepath.Join(target, more), "/"
				continue
			}
		}
		done, rest = at, more
	}
	r.Path = done
	if tidy != nil {
		r.Path = tidy(done)
	}
	return r
}

// private gives a path the place it has on a Mac, where three directories of
// the root are symlinks.
func private(name string) Real {
	for _, dir := range []string{"/tmp", "/var", "/etc"} {
		if within(name, dir) {
			return Real{Path: "/private" + name, Links: []string{dir}}
		}
	}
	return Real{Path: name}
}

// Elsewhere are the facts of a Mac as far as another system can know them, so
// that a plan can be explained there: this system's symlinks, a Mac's own, the
// developer tools in their usual place, and the temporary directory of a user
// whose number is not known.
func Elsewhere() Facts {
	const user = "/private/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T"
	return Facts{
		Follow: func(name string) Real {
			r := follow(name, nil)
			mac := private(r.Path)
			return Real{mac.Path, append(r.Links, mac.Links...)}
		},
		Exists:    func(string) bool { return false },
		ReadFile:  readSmall,
		Developer: "/Library/Developer/CommandLineTools",
		Kgate:     "/usr/local/bin/kgate",
		Temp:      user + "/kgate-0000000000000000",
		UserTemp:  user,
	}
}

// readSmall returns at most the first MiB of a regular file. The project may hold
// anything under a name that should be a file: a FIFO must not hang kgate.
func readSmall(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %q: not a regular file", name)
	}
	return io.ReadAll(io.LimitReader(f, 1<<20))
}

// launchDir is a new name for a launch's directory in the user's own temporary
// directory. The name only has to be one that nothing else has.
func launchDir(userTemp string) string {
	var b [8]byte
	rand.Read(b[:])
	return filepath.Join(userTemp, launchPrefix+hex.EncodeToString(b[:]))
}

const launchPrefix = "kgate-"
