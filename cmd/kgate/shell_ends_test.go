//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestShellParentVanishes kills what started kgate-sh at any moment of its
// launch, and expects that soon nothing is left of it.
func TestShellParentVanishes(t *testing.T) {
	needBox(t)
	shell, err := exec.LookPath(shellName)
	if err != nil {
		t.Fatal(err)
	}
	home, proj := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kgate"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".kgate/config.yaml"), []byte("version: 1\nnetwork: off\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(n int, line string) (*exec.Cmd, string) {
		mark := fmt.Sprintf("KGATE_VANISH_%d_%d", os.Getpid(), n)
		cmd := exec.Command("sh", "-c", line, shell)
		cmd.Dir = proj
		cmd.Env = append(os.Environ(), "HOME="+home, mark+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, mark
	}
	// What is killed is the shell above kgate-sh, or the one above that.
	lines := []string{
		`"$0" -c 'touch ready; sleep 60 & sleep 60'; true`,
		`sh -c '"$0" -c "touch ready; sleep 60 & sleep 60"; true' "$0"; true`,
	}
	// Control: without kgate it goes on.
	cmd, mark := start(0, `bash -c 'touch ready; sleep 60 & sleep 60'; true`)
	await(t, filepath.Join(proj, "ready"))
	cmd.Process.Kill()
	cmd.Wait()
	time.Sleep(50 * time.Millisecond)
	if len(marked(mark)) == 0 {
		t.Error("a command without kgate ended as well")
	}
	for _, pid := range marked(mark) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	var slowest time.Duration
	for n := 1; n <= 20; n++ {
		os.Remove(filepath.Join(proj, "ready"))
		cmd, mark := start(n, lines[n%2])
		time.Sleep(time.Duration(n) * 4 * time.Millisecond)
		if n > 18 {
			await(t, filepath.Join(proj, "ready"))
		}
		cmd.Process.Kill()
		cmd.Wait()
		killed := time.Now()
		// A process has no environment while it becomes another, on a busy machine
		// for longer than this: one that shows itself then is waited for as well.
		seen := killed
		for (time.Since(seen) < 50*time.Millisecond || len(marked(mark)) > 0) && time.Since(killed) < 10*time.Second {
			if len(marked(mark)) > 0 {
				seen = time.Now()
			}
			time.Sleep(2 * time.Millisecond)
		}
		slowest = max(slowest, seen.Sub(killed))
		if testing.Verbose() {
			t.Logf("killed after %d ms: gone after %v", 4*n, seen.Sub(killed))
		}
		if left := marked(mark); len(left) > 0 {
			t.Errorf("killed after %d ms: %d processes are left", 4*n, len(left))
			for _, pid := range left {
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				t.Logf("%d %.200q", pid, line)
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	t.Logf("all gone after %v at most", slowest)
	if slowest > 4*time.Second {
		t.Errorf("it took %v until all were gone", slowest)
	}
}

// TestShellParentVanishesAsUser does it again as an ordinary user.
func TestShellParentVanishesAsUser(t *testing.T) {
	if out := asUser(t, "^TestShellParentVanishes$"); !strings.Contains(out, "--- PASS: TestShellParentVanishes") {
		t.Fatalf("nothing was killed as uid %d:\n%s", ordinary, out)
	}
}

func await(t *testing.T, file string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if _, err := os.Lstat(file); err == nil {
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// marked lists the processes that have a variable in their environment.
func marked(mark string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		var pid int
		if _, serr := fmt.Sscan(filepath.Base(dir), &pid); err == nil && serr == nil && strings.Contains("\x00"+string(env), "\x00"+mark+"=1\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}
