package probe

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// listen answers on a unix socket, as the services of a machine do, until it is
// killed. A name that begins with @ is abstract (unix(7)).
func listen(path string, out io.Writer) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "listening on %s\n", path)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprintf(c, "hello from %s\n", path)
		c.Close()
	}
}

// local prints what the server on a unix socket says.
func local(ctx context.Context, path string, out io.Writer) error {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	if end, ok := ctx.Deadline(); ok {
		c.SetDeadline(end)
	}
	_, err = io.Copy(out, c)
	return err
}

// execute becomes another program, as any program may try to whatever the text
// of the command line was.
func execute(argv []string) error {
	file := argv[0]
	if !strings.Contains(file, "/") {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			// The first that is there, executable or not.
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				file = filepath.Join(dir, file)
				break
			}
		}
	}
	return &os.PathError{Op: "exec", Path: file, Err: syscall.Exec(file, argv, os.Environ())}
}
