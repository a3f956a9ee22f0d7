package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// ExecError says that the stage could not execute the command.
type ExecError struct {
	Errno syscall.Errno
}

func (e *ExecError) Error() string { return "execute the command: " + e.Errno.Error() }
func (e *ExecError) Unwrap() error { return e.Errno }

// ExitStatus is 127 when the command does not exist and 126 when it cannot be
// executed, as in a shell (POSIX, Shell Command Language 2.8.2).
func (e *ExecError) ExitStatus() int {
	if e.Errno == syscall.ENOENT || e.Errno == syscall.ENOTDIR {
		return 127
	}
	return 126
}

// StageName is the first argument under which kgate's own file becomes the
// stage.
const StageName = "terminal-stage"

// stageFailed is the exit status of a stage that could not do its part.
const stageFailed = 125

// Stage is the process in the box between kgate and the command. Its arguments
// are the number of the control descriptor and the command's words. It makes a
// session, takes the terminal among its standard streams as the session's own,
// runs the command in a process group of its own, and tells kgate when that
// stops. It returns the command's status, or 128+n.
//
// Signals sent to it reach the command: SIGINT, SIGQUIT and SIGTSTP its whole
// group, as from a key, the others the command alone.
func Stage(args []string) int {
	st, err := newStage(args)
	if err == nil {
		var status int
		if status, err = st.run(args[1:]); err == nil {
			return status
		}
	}
	var failed *ExecError
	if errors.As(err, &failed) {
		return failed.ExitStatus()
	}
	fmt.Fprintf(os.Stderr, "kgate: terminal: %v\r\n", err)
	return stageFailed
}

type stage struct {
	control *os.File
	signals chan os.Signal
	tty     int // 0, 1 or 2
	pid     int // of the command and of its group; 0 before it exists
}

func newStage(args []string) (*stage, error) {
	if len(args) < 2 {
		return nil, errors.New("the stage needs a descriptor and a command")
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 3 {
		return nil, fmt.Errorf("the stage's descriptor %q is not one", args[0])
	}
	// Nothing but the standard streams is the command's.
	if err := closeOthers(3); err != nil {
		return nil, fmt.Errorf("close descriptors: %w", err)
	}
	if err := syscall.SetNonblock(n, true); err != nil {
		return nil, fmt.Errorf("open the control descriptor: %w", err)
	}
	st := &stage{control: os.NewFile(uintptr(n), "control"), tty: -1, signals: make(chan os.Signal, 32)}
	for _, s := range []syscall.Signal{
		syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP, syscall.SIGALRM,
	} {
		if !signal.Ignored(s) {
			signal.Notify(st.signals, s)
		}
	}
	// SIGCHLD also comes when a child stops.
	signal.Notify(st.signals, syscall.SIGCHLD)
	for i, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if st.tty < 0 && Terminal(f) {
			st.tty = i
		}
	}
	if st.tty < 0 {
		return nil, errors.New("none of the standard streams is a terminal")
	}
	if _, err := unix.Setsid(); err != nil {
		if sid, _ := unix.Getsid(0); sid != os.Getpid() {
			return nil, fmt.Errorf("make a session: %w", err)
		}
	}
	if err := unix.IoctlSetInt(st.tty, unix.TIOCSCTTY, 0); err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	return st, nil
}

// run executes the command and stays until it has ended.
func (st *stage) run(argv []string) (int, error) {
	orders := make(chan byte)
	go st.orders(orders)
	st.tell(msgReady, 0)
	order, ok := <-orders
	if !ok {
		return 0, errors.New("kgate is gone")
	}
	started := make(chan start, 1)
	go func() {
		pid, err := execute(argv, &syscall.ProcAttr{
			Env:   os.Environ(),
			Files: []uintptr{0, 1, 2},
			Sys:   &syscall.SysProcAttr{Setpgid: true, Foreground: order == msgForeground, Ctty: st.tty},
		})
		started <- start{pid, err}
	}()
	var pending []syscall.Signal // that came before the command
	var early []change           // of children that may be the command
	for {
		select {
		case s := <-started:
			if s.err != nil {
				errno := syscall.EIO
				errors.As(s.err, &errno)
				st.tell(msgFailed, byte(errno))
				return 0, &ExecError{errno}
			}
			st.pid = s.pid
			st.tell(msgStarted, 0)
			for _, sig := range pending {
				st.signal(sig)
			}
			for _, c := range early {
				if status, ended := st.changed(c); ended {
					return status, nil
				}
			}
		case sig := <-st.signals:
			if sig, ok := sig.(syscall.Signal); ok && sig != syscall.SIGCHLD {
				if st.pid == 0 {
					pending = append(pending, sig)
				} else {
					st.signal(sig)
				}
			}
		case order, ok := <-orders:
			if !ok {
				// kgate is gone, and the terminal with it: the kernel sends SIGHUP.
				orders = nil
			} else {
				st.obey(order)
			}
		}
		for {
			c, ok := nextChange()
			if !ok {
				break
			}
			if st.pid == 0 {
				if c.Stopped() && c.StopSignal() == syscall.SIGTTOU && order == msgForeground {
					// The child asks for the foreground before it executes the
					// command, and the kernel stops it, since it asks from the
					// background. Give it what it asks for.
					st.foreground(c.pid)
					syscall.Kill(c.pid, syscall.SIGCONT)
					continue
				}
				early = append(early, c)
				continue
			}
			if status, ended := st.changed(c); ended {
				return status, nil
			}
		}
	}
}

// change is a change in the state of a child.
type change struct {
	pid int
	syscall.WaitStatus
}

// nextChange returns a change that has not been seen, if there is one.
func nextChange() (change, bool) {
	for {
		var c change
		pid, err := syscall.Wait4(-1, &c.WaitStatus, syscall.WNOHANG|syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		c.pid = pid
		return c, err == nil && pid > 0
	}
}

// changed tells kgate of a change and says whether the command has ended, and
// with which status.
func (st *stage) changed(c change) (status int, ended bool) {
	switch {
	case c.pid != st.pid: // a file that could not be executed
		return 0, false
	case c.Stopped():
		st.tell(msgStopped, byte(c.StopSignal()))
		return 0, false
	case c.Signaled():
		return 128 + int(c.Signal()), true
	}
	st.tell(msgExited, 0)
	return c.ExitStatus(), true
}

// start is how the execution of the command went.
type start struct {
	pid int
	err error
}

// orders reads what the session sends.
func (st *stage) orders(orders chan<- byte) {
	defer close(orders)
	var b [1]byte
	for {
		n, err := st.control.Read(b[:])
		if n == 1 {
			orders <- b[0]
		}
		if err != nil {
			return
		}
	}
}

func (st *stage) obey(order byte) {
	if st.pid == 0 {
		return
	}
	switch order {
	case msgForeground:
		group := st.pid
		if g, err := unix.Getpgid(st.pid); err == nil {
			group = g // it may have made another
		}
		st.foreground(group)
		syscall.Kill(-group, syscall.SIGCONT)
	case msgBackground:
		st.foreground(unix.Getpgrp())
		syscall.Kill(-st.pid, syscall.SIGCONT)
	case msgHangUp:
		syscall.Kill(-st.pid, syscall.SIGHUP)
		syscall.Kill(-st.pid, syscall.SIGCONT)
	case msgStop:
		syscall.Kill(-st.pid, syscall.SIGTSTP)
	}
}

// foreground makes a process group the terminal's foreground.
func (st *stage) foreground(group int) {
	quietly(func() error { return unix.IoctlSetPointerInt(st.tty, unix.TIOCSPGRP, group) })
}

// signal passes a signal on to the command.
func (st *stage) signal(sig syscall.Signal) {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP:
		syscall.Kill(-st.pid, sig)
	default:
		syscall.Kill(st.pid, sig)
	}
	if sig == syscall.SIGHUP || sig == syscall.SIGTERM {
		// A command that is stopped would never learn of its end. The kernel,
		// too, continues what it hangs up.
		syscall.Kill(-st.pid, syscall.SIGCONT)
	}
}

func (st *stage) tell(m, arg byte) { st.control.Write([]byte{m, arg}) }

// execute starts argv as execvp(3) does: without a slash its name is looked for
// along PATH, and a file that the kernel does not know how to execute is a
// script for the shell.
func execute(argv []string, attr *syscall.ProcAttr) (int, error) {
	name := argv[0]
	if strings.Contains(name, "/") {
		return executeFile(name, argv, attr)
	}
	path, ok := os.LookupEnv("PATH")
	if !ok {
		path = "/bin:/usr/bin"
	}
	found := error(syscall.ENOENT)
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		file := dir + "/" + name
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			if errors.Is(err, syscall.EACCES) {
				found = syscall.EACCES
			}
			continue
		}
		pid, err := executeFile(file, argv, attr)
		if err == nil {
			return pid, nil
		}
		if !errors.Is(err, syscall.EACCES) {
			return 0, err
		}
		found = err
	}
	return 0, found
}

func executeFile(file string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, err := syscall.ForkExec(file, argv, attr)
	if err == syscall.ENOEXEC {
		return syscall.ForkExec("/bin/sh", append([]string{"sh", file}, argv[1:]...), attr)
	}
	return pid, err
}
