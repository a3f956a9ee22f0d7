package parent

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the watcher as well, and the harness above it.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	switch os.Args[1] {
	case "watcher": // says when it watches, and when its parent is gone
		gone := Watch()
		fmt.Println("watching", os.Getpid())
		select {
		case <-gone:
			os.WriteFile(os.Args[2], []byte("gone"), 0o600)
		case <-time.After(20 * time.Second):
			os.WriteFile(os.Args[2], []byte("still there"), 0o600)
		}
	case "harness": // starts the rest in a session of its own and waits
		cmd := exec.Command(os.Args[2], os.Args[3:]...)
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Run()
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

// tree starts a harness that starts argv, and returns it with the watcher's pid.
func tree(t *testing.T, argv ...string) (harness *os.Process, watcher int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, append([]string{"harness"}, argv...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	watcher, err = strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "watching "))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(watcher, syscall.SIGKILL) })
	return cmd.Process, watcher
}

func said(t *testing.T, file string, within time.Duration) string {
	t.Helper()
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

func TestWatch(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		argv func(file string) []string
	}{
		{"straight", func(f string) []string { return []string{self, "watcher", f} }},
		{"a shell between", func(f string) []string { return []string{"sh", "-c", self + " watcher " + f + "; true"} }},
		{"two shells between", func(f string) []string {
			return []string{"sh", "-c", "sh -c '" + self + " watcher " + f + "; true'; true"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "said")
			harness, _ := tree(t, tt.argv(file)...)
			if got := said(t, file, 100*time.Millisecond); got != "" {
				t.Fatalf("said %q while the harness was there", got)
			}
			harness.Kill()
			if got := said(t, file, 5*time.Second); got != "gone" {
				t.Fatalf("said %q after the harness was killed", got)
			}
		})
	}
}

// What is above a program that is no shell is nobody's business: its end means
// nothing.
func TestWatchStops(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "said")
	top, watcher := tree(t, self, "harness", self, "watcher", file)
	p, err := read(watcher)
	if err != nil {
		t.Fatal(err)
	}
	top.Kill()
	if got := said(t, file, 300*time.Millisecond); got != "" {
		t.Fatalf("said %q although its own parent lives", got)
	}
	syscall.Kill(p.parent, syscall.SIGKILL)
	if got := said(t, file, 5*time.Second); got != "gone" {
		t.Fatalf("said %q after its parent was killed", got)
	}
}

// Who starts to watch when the harness is gone already says so at once, whatever
// the process is called that took it over. What systemd itself starts has not
// been left by anybody.
func TestWatchLate(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	as := filepath.Join(dir, "systemd") // a program of that name
	if err := os.Link(self, as); err != nil {
		text, err := os.ReadFile(self)
		if err == nil {
			err = os.WriteFile(as, text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, want string
		program    string
		script     string
	}{
		{"left behind", "gone", self, `(sleep 0.3; exec "$0" watcher "$1") & exit`},
		{"its shell left behind", "gone", self, `(sleep 0.3; sh -c "'$0' watcher '$1'; true"; true) & exit`},
		{"taken over by systemd", "gone", as, `exec "$0" watcher "$1"`},
		{"started by systemd", "", as, `SYSTEMD_EXEC_PID=$$ exec "$0" watcher "$1"`},
		{"started by what systemd started", "gone", as, `SYSTEMD_EXEC_PID=1 exec "$0" watcher "$1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "said")
			cmd := exec.Command(tt.program, "harness", "sh", "-c", tt.script, self, file)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			if tt.want == "" {
				if got := said(t, file, 500*time.Millisecond); got != "" {
					t.Fatalf("said %q while systemd was there", got)
				}
				cmd.Process.Kill()
				tt.want = "gone"
			}
			if got := said(t, file, 5*time.Second); got != tt.want {
				t.Fatalf("said %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRead(t *testing.T) {
	p, err := read(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if p.parent != os.Getppid() || p.group != syscall.Getpgrp() {
		t.Errorf("read of this process: %+v", p)
	}
}
