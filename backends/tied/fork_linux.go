package tied

import (
	"os"
	"syscall"
)

// Fork starts a program in the root directory and returns its process's number.
// files are its descriptors from 0 on. It is os.StartProcess without the
// throwaway child that the latter makes once to see what the kernel can do.
func Fork(path string, argv, env []string, files []*os.File, sys *syscall.SysProcAttr) (pid int, err error) {
	fds := make([]uintptr, len(files))
	for i, f := range files {
		fds[i] = f.Fd()
	}
	return syscall.ForkExec(path, argv, &syscall.ProcAttr{Dir: "/", Env: env, Files: fds, Sys: sys})
}

// Wait reaps a child.
func Wait(pid int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
			return status, os.NewSyscallError("wait4", err)
		}
	}
}
