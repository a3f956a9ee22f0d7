package bubblewrap

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// What the kernel says of a socket's file is what stat(2) says of it, wherever it
// has been moved to, and both of its lists have the names.
func TestSocketsOfThisHost(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"relative", filepath.Join(dir, "with a space: x"), filepath.Join(dir, "before"), "@abstract-" + filepath.Base(dir)} {
		l, err := net.Listen("unix", name)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	// A datagram socket is bound and does not listen.
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "datagrams"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Rename("before", "after"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link("after", "linked"); err != nil {
		t.Fatal(err)
	}
	all, files, err := ThisHost().Sockets()
	if err != nil || !files {
		t.Fatalf("files: %v, %v", files, err)
	}
	for file, name := range map[string]string{
		"relative": "relative", "with a space: x": dir + "/with a space: x", "after": dir + "/before", "linked": dir + "/before", "datagrams": dir + "/datagrams",
	} {
		info, err := os.Lstat(file)
		if err != nil {
			t.Fatal(err)
		}
		inode, _ := ThisHost().Inode(info)
		if !slices.Contains(all, Bound{name, inode}) {
			t.Errorf("%s: not bound as %q, %v", file, name, inode)
		}
	}
	names, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"relative", dir + "/with a space: x", dir + "/before", dir + "/datagrams"} {
		if !slices.Contains(names, Bound{Name: name}) {
			t.Errorf("%q is not listed", name)
		}
	}
	for _, b := range append(all, names...) {
		if b.Name == "" || b.Name[0] == '@' || b.Name[0] == 0 {
			t.Errorf("%q is no file's name", b.Name)
		}
	}
	devices, err := ThisHost().Devices()
	var st unix.Stat_t
	if err := unix.Stat("/proc", &st); err != nil {
		t.Fatal(err)
	}
	if err != nil || !devices[st.Dev] {
		t.Errorf("the device of /proc is not among %d: %v", len(devices), err)
	}
}

func TestSocketMessages(t *testing.T) {
	for _, part := range []string{
		"\xff\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // longer than what came
		"\x01\x00\x00\x00\x14\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", // shorter than a head
		"\x14\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff",
		"\x14\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xfe\xff\xff\xff",
		"\x10\x00\x00\x00\x03\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00", // interrupted
	} {
		var all []Bound
		if done, err := messages([]byte(part), &all); err == nil || done {
			t.Errorf("%q: %v, %v", part, done, err)
		}
	}
	var all []Bound
	if done, err := messages([]byte("\x14\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"), &all); !done || err != nil {
		t.Errorf("%v, %v", done, err)
	}
}
