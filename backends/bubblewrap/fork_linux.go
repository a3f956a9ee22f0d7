package bubblewrap

import (
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// fork starts a program in the root directory. It is os.StartProcess without the
// throwaway child that the latter makes once to see what the kernel can do.
func fork(path string, argv, env []string, files []*os.File, sys *syscall.SysProcAttr) (pid int, err error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: "/", Env: env, Files: fds, Sys: sys})
}

// wait reaps a child.
func wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, os.NewSyscallError("wait4", err)
		}
	}
}

// tied runs a function that starts a child with a death signal. The signal comes
// when the thread that started the child ends, not when the process does
// (prctl(2), PR_SET_PDEATHSIG), so it must be a thread that lives as long. The
// process's first thread does, and is there already.
func tied(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() == unix.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	starter() <- func() { f(); close(done) }
	<-done
}

// starter runs functions on another such thread.
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})
