package lab

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// jobs are the commands that the person runs on the machine.
type jobs struct {
	mu   sync.Mutex // held while a process is made, so that reap knows it
	next int
	all  map[int]*job
	pids map[int]bool
}

type job struct {
	cmd    *exec.Cmd
	done   chan struct{}
	status int
}

func newJobs() *jobs { return &jobs{all: map[int]*job{}, pids: map[int]bool{}} }

func (js *jobs) start(r request, files []*os.File) (int, error) {
	if len(r.Argv) == 0 || len(files) != 3 {
		return 0, fmt.Errorf("lab: a command needs arguments and three files")
	}
	path, err := look(r.Argv[0], r.Dir, r.Env)
	if err != nil {
		return 0, err
	}
	j := &job{done: make(chan struct{}), cmd: &exec.Cmd{
		Path: path, Args: r.Argv, Dir: r.Dir, Env: r.Env,
		Stdin: files[0], Stdout: files[1], Stderr: files[2],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}}
	js.mu.Lock()
	defer js.mu.Unlock()
	if err := asPerson(j.cmd.Start); err != nil {
		return 0, err
	}
	js.next++
	js.all[js.next] = j
	js.pids[j.cmd.Process.Pid] = true
	go js.ended(j)
	return js.next, nil
}

func (js *jobs) ended(j *job) {
	j.cmd.Wait()
	js.mu.Lock()
	delete(js.pids, j.cmd.Process.Pid)
	js.mu.Unlock()
	j.status = j.cmd.ProcessState.ExitCode()
	if w, ok := j.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		j.status = 128 + int(w.Signal())
	}
	close(j.done)
}

// asPerson runs f, which makes a process, on a thread that has nothing of the
// lab's capabilities to pass on. (Root's processes get theirs anew at exec.)
func asPerson(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			result <- os.NewSyscallError("prctl PR_CAP_AMBIENT_CLEAR_ALL", err)
			return
		}
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&head, &data[0]); err != nil {
			result <- os.NewSyscallError("capget", err)
			return
		}
		data[0].Inheritable, data[1].Inheritable = 0, 0
		if err := unix.Capset(&head, &data[0]); err != nil {
			result <- os.NewSyscallError("capset", err)
			return
		}
		result <- f()
	}()
	return <-result
}

// look finds a program as a shell with that environment would.
func look(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, d := range filepath.SplitList(path) {
		file := filepath.Join(d, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: not found on PATH", name)
}

func (js *jobs) find(id int) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.all[id]; j != nil {
		return j, nil
	}
	return nil, fmt.Errorf("lab: no job %d", id)
}

func (js *jobs) wait(id int) (int, error) {
	j, err := js.find(id)
	if err != nil {
		return 0, err
	}
	<-j.done
	return j.status, nil
}

func (js *jobs) signal(id int, sig syscall.Signal, group bool) error {
	j, err := js.find(id)
	if err != nil {
		return err
	}
	if group {
		return os.NewSyscallError("kill", syscall.Kill(-j.cmd.Process.Pid, sig))
	}
	return j.cmd.Process.Signal(sig)
}

// reap does what process 1 of any machine does: it buries orphans at once.
func (js *jobs) reap() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCHLD)
	for range c {
		js.mu.Lock()
		for _, pid := range children() {
			if !js.pids[pid] {
				unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		js.mu.Unlock()
	}
}

// children lists this process's own, whichever of its threads made them.
func children() []int {
	files, _ := filepath.Glob("/proc/self/task/[0-9]*/children")
	var out []int
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for _, f := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
