package parent

import (
	"golang.org/x/sys/unix"
)

func groupOf() int { return unix.Getpgrp() }

func read(pid int) (process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, err
	}
	return process{
		parent: int(k.Eproc.Ppid), group: int(k.Eproc.Pgid),
		name: clean(unix.ByteSliceToString(k.Proc.P_comm[:])),
	}, nil
}

// watch sends to over when the process ends (kqueue(2), EVFILT_PROC). It is
// false for a process that cannot be watched.
func watch(pid int, over chan<- struct{}) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	unix.CloseOnExec(kq)
	change := unix.Kevent_t{
		Ident: uint64(pid), Filter: unix.EVFILT_PROC,
		Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT,
	}
	_, err = unix.Kevent(kq, []unix.Kevent_t{change}, nil, nil)
	if err != nil {
		unix.Close(kq)
		if err == unix.ESRCH {
			over <- struct{}{}
			return true
		}
		return false
	}
	go func() {
		defer unix.Close(kq)
		events := make([]unix.Kevent_t, 1)
		for {
			n, err := unix.Kevent(kq, nil, events, nil)
			if err == unix.EINTR {
				continue
			}
			if err == nil && n > 0 {
				over <- struct{}{}
			}
			return
		}
	}()
	return true
}
