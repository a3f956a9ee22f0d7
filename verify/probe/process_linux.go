package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processAttacks are on other processes: those that this one starts, where the
// filter of system calls stands in the way, and those that it should not see.
func processAttacks() map[string]attack {
	return map[string]attack{
		"ptrace-attach": onChild(unix.PtraceAttach),
		"ptrace-seize":  onChild(unix.PtraceSeize),
		"vm-read":       onChild(func(pid int) error { return remote(pid, unix.ProcessVMReadv) }),
		"vm-write":      onChild(func(pid int) error { return remote(pid, unix.ProcessVMWritev) }),
		"take-fd":       onChild(takeFd),
		"compare":       onChild(func(pid int) error { return call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), 1, 0, 0) }),
		"child-program": onChild(overwriteProgram),
		"first-program": onFirst(overwriteProgram),
		"stronger":      func(context.Context, string) error { return stronger() },
		"signal":        func(_ context.Context, pid string) error { return signal(pid) },
		"see":           func(_ context.Context, pid string) error { return see(pid) },
		"raise-limits":  func(context.Context, string) error { return raiseLimits() },
	}
}

// secretWord is at the same address in every process of this program.
var secretWord = [8]byte{'s', 'e', 'c', 'r', 'e', 't'}

// onChild starts this program once more and attacks it.
func onChild(f func(pid int) error) attack {
	return func(context.Context, string) error {
		runtime.LockOSThread()
		child := exec.Command("/proc/self/exe", Stage, "still", "now")
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		up, err := child.StdoutPipe()
		if err != nil {
			return err
		}
		if err := child.Start(); err != nil {
			return err
		}
		defer child.Wait()
		defer child.Process.Kill()
		if _, err := up.Read(make([]byte, 1)); err != nil {
			return err
		}
		return f(child.Process.Pid)
	}
}

// still says that it is there and waits to be killed, for a minute at most.
func still() error {
	fmt.Println("up", os.Getpid())
	time.Sleep(time.Minute)
	return nil
}

func remote(pid int, f func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error)) error {
	buf := make([]byte, len(secretWord))
	copy(buf, secretWord[:])
	_, err := f(pid, []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}},
		[]unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&secretWord[0])), Len: len(buf)}}, 0)
	return err
}

func takeFd(pid int) error {
	of, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	_, err = unix.PidfdGetfd(of, 1, 0)
	return err
}

// onFirst attacks the first process of the box, which kgate did not write and the
// person started. outside is the machine's namespace of processes: where that is
// this one there is no box, and the first process is the machine's, which nobody
// touches. That is reported as a way through, for it is one.
func onFirst(f func(pid int) error) attack {
	return func(_ context.Context, outside string) error {
		if !strings.HasPrefix(outside, "pid:[") {
			return errUsage
		}
		here, err := os.Readlink("/proc/self/ns/pid")
		if err != nil || here == outside {
			return nil
		}
		return f(1)
	}
}

// stronger looks for a process that this one sees and that has a capability, or
// no filter of system calls. Whoever may write its memory (/proc/PID/mem needs no
// ptrace(2)) has what it has; the first process of a box belongs to the same user.
func stronger() error {
	all, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil || len(all) == 0 {
		return unready(errors.New("no processes to be seen"))
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"\nCapEff:\t0000000000000000\n", "\nNoNewPrivs:\t1\n", "\nSeccomp:\t2\n"} {
			if !strings.Contains(string(text), want) {
				return nil
			}
		}
	}
	return fmt.Errorf("%d processes, and none can do more", len(all))
}

// overwriteProgram opens a running process's program for writing, and writes
// nothing. CVE-2019-5736 waited for a chance to.
func overwriteProgram(pid int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/exe", pid), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	if err == nil || errors.Is(err, unix.ETXTBSY) {
		// What nobody can write is of no use, whoever opens it.
		if f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
			f.Close()
			if err == nil && seals&unix.F_SEAL_WRITE != 0 {
				return errors.New("a copy in memory that is sealed")
			}
		}
	}
	// Busy is not refused: the process ends some time.
	return reached(err, unix.ETXTBSY)
}

// number reads the number of a process of the machine from the words "PID NAME":
// it must be that process that is meant, and not one which has its number here.
func number(arg string) (int, error) {
	word, name, _ := strings.Cut(arg, ",")
	pid, err := strconv.Atoi(word)
	if err != nil {
		return 0, errUsage
	}
	text, err := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
	if err != nil {
		// Without a look at it: the number may be reachable all the same.
		return pid, unix.Kill(pid, 0)
	}
	if !strings.Contains(string(text), name) {
		return 0, fmt.Errorf("process %d is another one here", pid)
	}
	return pid, nil
}

// signal asks whether a process may be sent signals, and sends none.
func signal(arg string) error {
	pid, err := number(arg)
	if err != nil {
		return err
	}
	return unix.Kill(pid, 0)
}

func see(arg string) error {
	word, name, _ := strings.Cut(arg, ",")
	text, err := os.ReadFile(filepath.Join("/proc", word, "cmdline"))
	if err == nil && !strings.Contains(string(text), name) {
		err = errors.New("another process has that number here")
	}
	return err
}

// raiseLimits raises a hard limit, as root alone may.
func raiseLimits() error {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		return err
	}
	now.Max++
	return unix.Prlimit(0, unix.RLIMIT_NOFILE, &now, nil)
}
