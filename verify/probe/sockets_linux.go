package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// socketAttacks reach services of the machine by their sockets, or by what others
// hold open. A path that begins with @ is an abstract name (unix(7)).
func socketAttacks() map[string]attack {
	return map[string]attack{
		"connect":          greeted,
		"connect-datagram": func(ctx context.Context, path string) error { return exchanged(ctx, "unixgram", path) },
		"connect-packets":  func(ctx context.Context, path string) error { return exchanged(ctx, "unixpacket", path) },
		"connect-link":     func(ctx context.Context, path string) error { return renamed(ctx, path, os.Symlink) },
		"connect-hard":     func(ctx context.Context, path string) error { return renamed(ctx, path, os.Link) },
		"connect-moved":    socketMoved,
		"connect-bound":    socketMounted,
		"connect-root":     func(ctx context.Context, path string) error { return anyGreets(ctx, "root", path) },
		"connect-cwd":      func(ctx context.Context, path string) error { return anyGreets(ctx, "cwd", path) },
		"connect-fd":       byDescriptor,
		"abstract-any":     anyAbstract,
		"socket-names":     func(_ context.Context, name string) error { return contains("/proc/net/unix", name) },
		"socket-list":      plain(family(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)),
		"packet":           plain(family(unix.AF_PACKET, unix.SOCK_RAW, 0)),
		"inherited":        func(_ context.Context, kind string) error { return inherited(kind) },
		"received":         received,
		"passed":           passed,
		"their-fds":        func(_ context.Context, pid string) error { return theirFds(pid) },
		"their-fd":         func(_ context.Context, pid string) error { return theirFd(pid) },
	}
}

// greeted connects to a server that listen made, and hears it.
func greeted(ctx context.Context, path string) error {
	var said strings.Builder
	if err := local(ctx, path, &said); err != nil {
		return err
	}
	if !strings.HasPrefix(said.String(), "hello from ") {
		return errors.New("something else answered, or nothing")
	}
	return nil
}

// exchanged sends a datagram to a server, which says nothing, as its sender's name
// is another namespace's; of packets it hears the first.
func exchanged(ctx context.Context, network, path string) error {
	c, err := new(net.Dialer).DialContext(ctx, network, path)
	if err != nil {
		return err
	}
	defer c.Close()
	if network == "unixpacket" {
		_, err = c.Read(make([]byte, 64))
	} else {
		_, err = c.Write([]byte("hello"))
	}
	return err
}

// renamed gives a socket another name in the working directory and connects there.
func renamed(ctx context.Context, path string, give func(from, to string) error) error {
	name := fmt.Sprintf("attack-%d.sock", os.Getpid())
	if err := give(path, name); err != nil {
		return err
	}
	defer os.Remove(name)
	return greeted(ctx, name)
}

// socketMoved renames a socket, connects, and puts it back.
func socketMoved(ctx context.Context, path string) error {
	name := path + ".moved"
	if err := os.Rename(path, name); err != nil {
		return err
	}
	defer os.Rename(name, path)
	return greeted(ctx, name)
}

// socketMounted mounts a socket's directory elsewhere, in a namespace of mounts that ends
// with this process.
func socketMounted(ctx context.Context, path string) error {
	there, err := os.MkdirTemp("", "attack")
	if err != nil {
		return unready(err)
	}
	defer os.Remove(there)
	if err := unix.Mount(filepath.Dir(path), there, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %q: %w", there, err)
	}
	defer unix.Unmount(there, unix.MNT_DETACH)
	return greeted(ctx, filepath.Join(there, filepath.Base(path)))
}

// anyGreets takes a path from the root or the directory of each process seen, of
// this one first.
func anyGreets(ctx context.Context, link, path string) error {
	all, err := filepath.Glob("/proc/[0-9]*/" + link)
	if err != nil || len(all) == 0 {
		return unready(errors.New("no processes to be seen"))
	}
	rel := path
	if link == "cwd" {
		// Up from wherever that is, as far as any directory is deep.
		rel = strings.Repeat("../", 40) + path
	}
	for _, link := range append([]string{"/proc/self/" + link}, all...) {
		// Not joined by package filepath, which would take the dots away.
		if byDescriptor(ctx, link+"/"+rel) == nil {
			return nil
		}
	}
	return fmt.Errorf("none of %d processes leads to it", len(all))
}

// byDescriptor connects through a descriptor, as an address holds 108 bytes.
func byDescriptor(ctx context.Context, path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return greeted(ctx, fmt.Sprintf("/proc/self/fd/%d", fd))
}

// anyAbstract connects to each abstract name that the kernel lists and that holds
// some text.
func anyAbstract(ctx context.Context, text string) error {
	list, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(list)) {
		if _, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " @"); ok && strings.Contains(name, text) && greeted(ctx, "@"+name) == nil {
			return nil
		}
	}
	return fmt.Errorf("none of %d sockets has such a name and answers", strings.Count(string(list), "\n"))
}

// inherited looks for a descriptor of a kind beside the first three. Go's own are
// of none of these kinds.
func inherited(kind string) error {
	is := map[string]func(fd int, mode uint32) bool{
		"file":      func(_ int, mode uint32) bool { return mode == unix.S_IFREG },
		"directory": func(_ int, mode uint32) bool { return mode == unix.S_IFDIR },
		"pipe":      func(_ int, mode uint32) bool { return mode == unix.S_IFIFO },
		"socket":    func(_ int, mode uint32) bool { return mode == unix.S_IFSOCK },
		"listening": func(fd int, mode uint32) bool {
			n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
			return err == nil && n == 1
		},
		"terminal": func(fd int, _ uint32) bool {
			_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
			return err == nil
		},
	}[kind]
	if is == nil {
		return errUsage
	}
	for fd := 3; fd < 256; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && is(fd, st.Mode&unix.S_IFMT) {
			return nil
		}
	}
	return fmt.Errorf("no %s among the descriptors", kind)
}

// received takes a file from a connection that this process was started with: by
// a descriptor of this number or a higher one.
func received(ctx context.Context, first string) error {
	from, err := strconv.Atoi(first)
	if err != nil {
		return errUsage
	}
	why := errors.New("no connection among the descriptors")
	for fd := from; fd < 256; fd++ {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
			continue
		}
		f := os.NewFile(uintptr(fd), "inherited")
		c, err := net.FileConn(f)
		if err != nil {
			why = err
			continue
		}
		defer c.Close()
		if why = takeFrom(ctx, c); why == nil {
			return nil
		}
	}
	return why
}

// passed takes the file that giveFile passes on its socket.
func passed(ctx context.Context, path string) error {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	return takeFrom(ctx, c)
}

// takeFrom receives a descriptor (SCM_RIGHTS, unix(7)) and reads the secret from it.
func takeFrom(ctx context.Context, c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("not a unix socket")
	}
	if end, ok := ctx.Deadline(); ok {
		u.SetDeadline(end)
	}
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := u.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return errors.Join(errors.New("no descriptor came"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return errors.Join(errors.New("no descriptor came"), err)
	}
	defer unix.Close(fds[0])
	buf := make([]byte, 64)
	got, err := unix.Pread(fds[0], buf, 0)
	if err == nil && !strings.Contains(string(buf[:max(got, 0)]), "the secret") {
		err = errors.New("it holds no secret")
	}
	return err
}

// theirFds looks at what another process holds open. The word is that of number.
func theirFds(arg string) error {
	pid, err := number(arg)
	if err != nil {
		return err
	}
	return found("/proc/" + strconv.Itoa(pid) + "/fd")
}

// theirFd takes a descriptor out of another process: pidfd_getfd(2).
func theirFd(arg string) error {
	pid, err := number(arg)
	if err != nil {
		return err
	}
	return takeFd(pid)
}
