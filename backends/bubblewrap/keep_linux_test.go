package bubblewrap

import (
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A watched directory tells as long as the process is there, and not only as long as
// the thread that began to watch it.
func TestWatchOutlivesItsThread(t *testing.T) {
	dir := t.TempDir()
	k := &keeper{change: make(chan os.Signal, 1)}
	signal.Notify(k.change, unix.SIGIO)
	defer k.close()
	thread := make(chan int)
	go func() {
		runtime.LockOSThread() // not unlocked: the thread ends with the goroutine
		k.add(dir)
		thread <- unix.Gettid()
	}()
	id := <-thread
	if id == os.Getpid() {
		t.Fatal("the process's first thread does not end")
	}
	for until := time.Now().Add(5 * time.Second); unix.Tgkill(os.Getpid(), id, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the thread does not end")
		}
	}
	if k.blind {
		t.Fatal("the directory is not watched")
	}
	if err := os.Mkdir(dir+"/new", 0o755); err != nil {
		t.Fatal(err)
	}
	select {
	case <-k.change:
	case <-time.After(5 * time.Second):
		t.Error("what was made in the directory is not told")
	}
}

// A box that is ending has a part of its mounts for a moment, and then none. One that
// is uncovered has the others for good.
func TestEndingBoxIsNotUncovered(t *testing.T) {
	defer func() { mountsOf = readMounts }()
	part := []mountLine{{point: "/p"}}
	whole := []mountLine{{point: "/p"}, {point: "/p/.git/config"}}
	for _, tc := range []struct {
		name string
		told [][]mountLine
		want string
	}{
		{"whole", [][]mountLine{whole}, ""},
		{"ending", [][]mountLine{part, nil}, ""},
		{"told in pieces", [][]mountLine{part, whole}, ""},
		{"uncovered", [][]mountLine{part, part}, "/p/.git/config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			told := tc.told
			mountsOf = func(string) ([]mountLine, error) {
				now := told[0]
				told = told[1:]
				return now, nil
			}
			if got, err := (&box{}).uncovered("", []string{"/p", "/p/.git/config"}); got != tc.want || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
