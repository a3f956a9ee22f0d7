package probe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// giveFile listens on a unix socket and passes a file, opened for reading, to
// whoever connects, until it is killed.
func giveFile(path, file string, out io.Writer) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on %s\n", path)
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return err
		}
		// Whoever has gone away already is no reason to stop.
		_, _, _ = c.WriteMsgUnix([]byte("x"), unix.UnixRights(int(f.Fd())), nil)
		c.Close()
	}
}

// hand becomes a program that has what it is told to open among its descriptors,
// as one has whose parent is careless: "input" is a connection for its standard
// input.
func hand(args []string) error {
	end := slices.Index(args, "--")
	if end < 1 || end == len(args)-1 {
		return errUsage
	}
	var keep []io.Closer // until the program is there
	for _, spec := range args[:end] {
		kind, path, _ := strings.Cut(spec, "=")
		files, err := opened(kind, path)
		if err != nil {
			return err
		}
		for _, f := range files {
			keep = append(keep, f)
			// Above those that Go makes, and open in the program: dup(2).
			_, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 20)
			if kind == "input" {
				err = unix.Dup3(int(f.Fd()), 0, 0)
			}
			if err != nil {
				return err
			}
		}
	}
	err := execute(args[end+1:])
	for _, f := range keep {
		err = errors.Join(err, f.Close())
	}
	return err
}

// opened opens what hand passes on.
func opened(kind, path string) ([]*os.File, error) {
	switch kind {
	case "file", "directory":
		f, err := os.Open(path)
		return []*os.File{f}, err
	case "socket", "input":
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return nil, err
		}
		defer c.Close()
		f, err := c.File()
		return []*os.File{f}, err
	case "listening":
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return nil, err
		}
		l.SetUnlinkOnClose(false)
		defer l.Close()
		f, err := l.File()
		return []*os.File{f}, err
	case "pipe":
		r, w, err := os.Pipe()
		return []*os.File{r, w}, err
	case "terminal":
		p, t, err := pty.Open()
		return []*os.File{p, t}, err
	}
	return nil, errUsage
}
