package terminal

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// person is a terminal with nobody at it, and a program that runs in it.
func person(tb testing.TB, argv ...string) *os.File {
	tb.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	slave.Close()
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		master.Close()
	})
	return master
}

// until reads from f until text has come.
func until(tb testing.TB, f *os.File, text string) {
	tb.Helper()
	var all bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(all.String(), text) {
		n, err := f.Read(buf)
		if err != nil {
			tb.Fatalf("waited for %q: %v after %q", text, err, all.String())
		}
		all.Write(buf[:n])
	}
}

// echoes is a program that prints what is typed, byte by byte.
const echoes = `stty raw -echo; echo ready; exec cat`

// BenchmarkKey is the time from a key to its echo by a program.
func BenchmarkKey(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name string
		key  string
		argv []string
	}{
		{"plain", "q", []string{"sh", "-c", echoes}},
		{"relayed", "q", []string{self, "launch", "sh", "-c", echoes}},
		{"relayed-may-be-secret", "\ng", []string{self, "launch", "sh", "-c", echoes}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			f := person(b, bb.argv...)
			until(b, f, "ready\n")
			for b.Loop() {
				f.WriteString(bb.key)
				until(b, f, bb.key)
			}
		})
	}
}

// TestKeyDelay: a key's echo comes well under what a person notices, also when
// it may be the start of a secret. The figures are the benchmark's.
func TestKeyDelay(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := person(t, self, "launch", "sh", "-c", echoes)
	until(t, f, "ready\n")
	best := time.Hour
	for range 50 {
		start := time.Now()
		f.WriteString("\ng")
		until(t, f, "\ng")
		best = min(best, time.Since(start))
	}
	if best > 20*time.Millisecond {
		t.Errorf("the quickest of 50 keys took %v", best)
	}
}
