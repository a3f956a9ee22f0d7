package bubblewrap

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The janitor takes nothing away before the box is gone, nor while another
// launch holds the same names; and then it does.
func TestJanitorWaits(t *testing.T) {
	for _, tt := range []struct {
		name string
		lock bool
	}{{"for the box", false}, {"for another launch", true}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.git("init", "-q")
			before := snapshot(t, s.project)
			h, err := hold(s.plan("true").Extra.(*own), nil)
			if err != nil {
				t.Fatal(err)
			}
			held := snapshot(t, s.project)
			var others []*os.File
			for _, l := range h.ledgers {
				if tt.lock {
					f, err := os.Open(l.path)
					if err != nil {
						t.Fatal(err)
					}
					if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
						t.Fatal(err)
					}
					others = append(others, f)
				}
				l.file.Close()
			}
			h.leash.Close() // kgate is gone
			if tt.lock {
				h.box.Close() // and the box, but the other launch is there
				wait(h.janitor)
			} else {
				time.Sleep(300 * time.Millisecond)
			}
			if now := snapshot(t, s.project); now != held {
				t.Errorf("taken away too early:\n%s", now)
			}
			for _, f := range others {
				f.Close()
			}
			if !tt.lock {
				h.box.Close()
				wait(h.janitor)
			} else {
				sweepOthers(s.home + "/.kgate/run") // what the other launch does last
			}
			if now := snapshot(t, s.project); now != before {
				t.Errorf("left behind:\n%s", now)
			}
		})
	}
}

// What is left of bwrap's process group ends with kgate: its processes ask to
// die with their parents late, and one that has not is stood for here by one
// that never does.
func TestJanitorEndsBwrap(t *testing.T) {
	s := newSite(t)
	h, err := hold(s.plan("true").Extra.(*own), nil)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	pid, err := fork("/bin/sleep", []string{"sleep", "60"}, nil, []*os.File{null, null, null}, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		t.Fatal(err)
	}
	h.started(pid)
	for _, l := range h.ledgers {
		l.file.Close()
	}
	h.leash.Close()
	h.box.Close()
	ended := make(chan syscall.WaitStatus, 1)
	go func() { state, _ := wait(pid); ended <- state }()
	select {
	case state := <-ended:
		if !state.Signaled() || state.Signal() != syscall.SIGKILL {
			t.Errorf("it ended with %v", state)
		}
	case <-time.After(5 * time.Second):
		t.Error("it is still there")
		syscall.Kill(pid, syscall.SIGKILL)
		<-ended
	}
	wait(h.janitor)
}

// The end of the pipe that bwrap waits at lets the command go, so that it must
// not come with kgate's: the janitor has it open as well.
func TestJanitorHoldsTheRelease(t *testing.T) {
	s := newSite(t)
	waits, release, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	h, err := hold(s.plan("true").Extra.(*own), release)
	if err != nil {
		t.Fatal(err)
	}
	release.Close() // as the end of kgate does
	fds := []unix.PollFd{{Fd: int32(waits.Fd()), Events: unix.POLLIN}}
	if n, _ := unix.Poll(fds, 200); n != 0 {
		t.Error("the pipe's end has come")
	}
	h.leash.Close()
	h.box.Close()
	for _, l := range h.ledgers {
		l.file.Close()
	}
	wait(h.janitor)
	if n, err := unix.Poll(fds, 5000); n != 1 {
		t.Error(fmt.Errorf("nor does it come when the janitor ends: %w", err))
	}
}

// Wait returns when the whole box is gone, and not when bwrap is: a process with
// much memory, which takes its time to go, and without the box's streams.
func TestWaitIsForTheWholeBox(t *testing.T) {
	for range 3 {
		wholeBox(t)
	}
}

func wholeBox(t *testing.T) {
	t.Helper()
	s := newSite(t)
	l, err := s.start(s.plan("sh", "-c", "tail /dev/zero >/dev/null 2>&1 & echo $! >pid; exec sleep 60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := l.proc.(*box)
	eventually(t, "the command runs", p.running)
	large := 0
	eventually(t, "a process has 200 MiB", func() bool {
		all, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.child(), p.child()))
		fmt.Sscan(string(all), &large)
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", large))
		var size, resident int
		fmt.Sscan(string(text), &size, &resident)
		return resident > 200<<20/os.Getpagesize()
	})
	below := []string{started(large), started(p.init)}
	syscall.Kill(p.bwrap, syscall.SIGKILL)
	l.wait()
	if left := alive(below); len(left) > 0 {
		t.Errorf("Wait has returned, and there is still %q", left)
	}
}
