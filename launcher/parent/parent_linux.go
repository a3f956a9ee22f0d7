package parent

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func groupOf() int { return unix.Getpgrp() }

// read looks at /proc/PID/stat (proc_pid_stat(5)): number, name in brackets,
// state, parent, group.
func read(pid int) (process, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	open, shut := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || shut < open {
		return process{}, fmt.Errorf("/proc/%d/stat: no name", pid)
	}
	fields := strings.Fields(string(data[shut+1:]))
	if len(fields) < 3 {
		return process{}, fmt.Errorf("/proc/%d/stat: too short", pid)
	}
	p := process{name: clean(string(data[open+1 : shut]))}
	if p.parent, err = strconv.Atoi(fields[1]); err == nil {
		p.group, err = strconv.Atoi(fields[2])
	}
	return p, err
}

// watch sends to over when the process ends. It is false for a process that
// cannot be watched: on an old kernel, or when it is outside this process's own
// view of processes (pidfd_open(2)).
func watch(pid int, over chan<- struct{}) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		over <- struct{}{}
		return true
	}
	if err != nil {
		return false
	}
	go func() {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); err != unix.EINTR {
				break
			}
		}
		over <- struct{}{}
	}()
	return true
}
