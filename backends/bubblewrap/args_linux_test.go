package bubblewrap

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/backends"
)

// What bwrap is told is written at once, however long it is: Start does not wait
// for a bwrap that does not read, and so cannot be killed between two halves.
func TestArgumentsAreWrittenAtOnce(t *testing.T) {
	s := newSite(t)
	fakeTool(t, "bwrap", "[ \"$1\" = --version ] && { echo bubblewrap 0.11.0; exit 0; }\nexec sleep 60\n")
	plan := s.plan("true")
	size := 0
	for i := 0; size < 500<<10; i++ {
		p := backends.Part{Name: "more", Words: []string{"--tmpfs", fmt.Sprintf("/more/%d/%s", i, strings.Repeat("x", 90))}}
		size += len(p.Words[1])
		plan.Parts = append([]backends.Part{p}, plan.Parts...)
	}
	started := make(chan error, 1)
	var l *launch
	go func() {
		var err error
		l, err = s.start(plan, nil)
		started <- err
	}()
	select {
	case err := <-started:
		if err != nil {
			t.Fatal(err)
		}
		l.proc.Kill()
		l.wait()
	case <-time.After(20 * time.Second):
		t.Fatal("Start waits for bwrap to read")
	}
}

// What is longer than the kernel takes at once is not written in pieces.
func TestTooManyArguments(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may make a pipe of any size; a part of TestAsUser")
	}
	s := newSite(t)
	before := snapshot(t, s.project)
	plan := s.plan("true")
	plan.Parts = append([]backends.Part{{Name: "more", Words: []string{"--tmpfs", "/" + strings.Repeat("x", 2<<20)}}}, plan.Parts...)
	if _, err := s.start(plan, nil); err == nil || !strings.Contains(err.Error(), "pipe-max-size") {
		t.Errorf("error %v", err)
	}
	if after := snapshot(t, s.project); after != before {
		t.Errorf("left behind:\n%s", after)
	}
}

// The janitor waits for the end of a pipe that the box's first process holds, so
// that it takes nothing away while a process is there that could use it.
func TestBoxHoldsThePipe(t *testing.T) {
	s := newSite(t)
	l, err := s.start(s.plan("sleep", "60"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { l.proc.Kill(); l.wait() }()
	p := l.proc.(*box)
	eventually(t, "the command runs", p.running)
	pipe, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", p.held.janitor))
	if err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/fd/", p.init)
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink(dir + fd.Name()); to == pipe {
			return
		}
	}
	t.Errorf("the first process in the box does not hold %s", pipe)
}
