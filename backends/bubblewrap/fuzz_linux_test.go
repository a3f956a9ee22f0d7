package bubblewrap

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"golang.org/x/sys/unix"
)

// Whatever comes on bwrap's status stream, reading it ends when the stream
// does, also when it speaks of more than one process.
func FuzzStatus(f *testing.F) {
	for _, s := range []string{
		"", "{", "\n\n", `{ "child-pid": 12 }`, "{ \"child-pid\": 2 , \"cgroup-namespace\": 4026531835 }\n{ \"exit-code\": 3 }\n",
		"{\"child-pid\": 1}\n{\"child-pid\": 1}\n{\"child-pid\": 1}\n", "{\"child-pid\": -1}\n{\"exit-code\": null}\n", "[]\n{\"exit-code\": 1e9}\n",
		"{\"child-pid\": 99999999999999999999}\n", "{\"exit-code\": \"x\"}\n{\"exit-code\": 0}\n", strings.Repeat("x", 70_000) + "\n{\"exit-code\": 0}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<17 {
			return
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { w.Write(data); w.Close() }()
		p := newBox(backends.Command{})
		defer p.cancel()
		born, done := make(chan int, 1), make(chan struct{})
		go func() { p.listen(r, born); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatalf("reading %q does not end", data)
		}
		if p.initFD >= 0 {
			unix.Close(p.initFD)
		}
		if pid := <-born; pid != p.init {
			t.Errorf("born is %d, the first process %d", pid, p.init)
		}
	})
}

// Whatever bwrap or a program in its place says before there is a command, the
// error that comes of it is one, and says something.
func FuzzWords(f *testing.F) {
	for _, s := range []string{
		"", "bwrap: execvp x: No such file or directory\n", "bwrap: execvp : Permission denied", "bwrap: Can't mkdir /x: Read-only file system\n",
		"bwrap: No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces.\n",
		"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", "bwrap: setting up uid map: Permission denied\n", "\x1b]0;x\x07bwrap: \n",
		"bwrap: execvp /bin/sh: Exec format error\n", "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, words string) {
		err := launchError(words, "exit status 1", backends.Command{Argv: []string{"x"}, Dir: "/", Env: []string{"PATH=/usr/bin"}})
		if err == nil || fmt.Sprint(err) == "" {
			t.Errorf("%q: %v", words, err)
		}
	})
}
