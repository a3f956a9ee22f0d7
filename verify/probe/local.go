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

// listen answers on unix sockets, as the services of a machine do, until it is
// killed. A name that begins with @ is abstract (unix(7)); "datagram:" and
// "packets:" before a name make another kind of socket. To a datagram it says
// nothing.
func listen(names []string, out io.Writer) error {
	failed := make(chan error, len(names))
	for _, name := range names {
		if path, ok := strings.CutPrefix(name, "datagram:"); ok {
			c, err := net.ListenPacket("unixgram", path)
			if err != nil {
				return err
			}
			go func() {
				for {
					if _, _, err := c.ReadFrom(make([]byte, 64)); err != nil {
						failed <- err
						return
					}
				}
			}()
		} else {
			path, packets := strings.CutPrefix(name, "packets:")
			network := "unix"
			if packets {
				network = "unixpacket"
			}
			l, err := net.Listen(network, path)
			if err != nil {
				return err
			}
			go func() { failed <- greet(l, path) }()
		}
		fmt.Fprintf(out, "listening on %s\n", name)
	}
	return <-failed
}

func greet(l net.Listener, path string) error {
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
