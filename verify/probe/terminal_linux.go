package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// terminalAttacks are on the terminal of whoever started this. In a box that is
// another one than the person's, which these must not get at.
func terminalAttacks() map[string]attack {
	return map[string]attack{
		"tty-type":       onTerminal(func(fd uintptr) error { return ioctlByte(fd, unix.TIOCSTI, 'x') }),
		"tty-type-high":  onTerminal(func(fd uintptr) error { return ioctlByte(fd, 1<<32|unix.TIOCSTI, 'x') }),
		"tty-paste":      onTerminal(func(fd uintptr) error { return paste(fd, unix.TIOCLINUX) }),
		"tty-paste-high": onTerminal(func(fd uintptr) error { return paste(fd, 1<<32|unix.TIOCLINUX) }),
		"tty-find":       func(context.Context, string) error { return findTerminal(os.Getenv(personTTY)) },
		"tty-take":       onTerminal(takeTerminal),
		"tty-master":     func(_ context.Context, outside string) error { return takeMaster(outside) },
	}
}

// personTTY is the variable that tells which terminal is the person's, as a file
// system's and a file's number.
const personTTY = "PERSON_TTY"

// onTerminal gives an attack the controlling terminal.
func onTerminal(f func(fd uintptr) error) attack {
	return func(context.Context, string) error {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return unready(err)
		}
		defer tty.Close()
		return f(tty.Fd())
	}
}

func ioctlByte(fd, request uintptr, b byte) error {
	return call(unix.SYS_IOCTL, fd, request, ptr(&b))
}

// paste asks for the state of a console's shift keys, which harms nobody: what
// pastes is the same call (ioctl_console(2)). A terminal that is no console says so,
// which comes after every check of rights.
func paste(fd, request uintptr) error {
	return reached(ioctlByte(fd, request, 6), unix.ENOTTY, unix.EINVAL)
}

func identity(f string) string {
	var st unix.Stat_t
	if unix.Stat(f, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}

// findTerminal looks for the person's terminal wherever one can be named, and
// opens it for reading and writing.
func findTerminal(person string) error {
	if person == "" {
		return unready(errors.New(personTTY + " is not set"))
	}
	names := []string{"/dev/tty", "/dev/console", "/dev/stdin", "/dev/stdout"}
	for _, pattern := range []string{"/dev/pts/*", "/proc/[0-9]*/fd/*", "/proc/self/task/*/fd/*"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		names = append(names, more...)
	}
	for _, name := range names {
		if identity(name) != person {
			continue
		}
		if f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0); err == nil {
			f.Close()
			return nil
		}
	}
	return fmt.Errorf("not among %d names", len(names))
}

// takeTerminal leaves the session and takes its terminal along.
func takeTerminal(fd uintptr) error {
	if _, err := unix.Setsid(); err != nil {
		return unready(err)
	}
	return call(unix.SYS_IOCTL, fd, unix.TIOCSCTTY, 1)
}

// takeMaster takes the other side of a terminal from a process around this one:
// who has it reads what is shown and types. The machine's first process is left
// alone; outside is the machine's namespace of processes, by which a box's is told.
func takeMaster(outside string) error {
	here, err := os.Readlink("/proc/self/ns/pid")
	if err != nil || !strings.HasPrefix(outside, "pid:[") {
		return errUsage
	}
	looked := 0
	for pid := os.Getppid(); pid > 1 || pid == 1 && here != outside; pid = parent(pid) {
		of, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		looked++
		for n := range 64 {
			fd, err := unix.PidfdGetfd(of, n, 0)
			if err != nil {
				continue
			}
			_, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
			unix.Close(fd)
			if err == nil {
				return nil
			}
		}
		unix.Close(of)
	}
	return fmt.Errorf("none among the descriptors of %d processes", looked)
}

func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(after)
	if len(f) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(f[1])
	return n
}

// marker is what a command prints when the person may type, and cursor is the
// question for the cursor's place, to which every terminal types the answer
// (ECMA-48, DSR and CPR).
const (
	marker = "ready to type"
	cursor = "\x1b[6n"
	answer = "\x1b[1;1R"
)

// terminal is a person at a terminal. It runs a command there, types what
// "type=TEXT" says and the answer to a question for the cursor when the command
// prints the marker, and prints what was shown.
func terminal(ctx context.Context, args []string, out io.Writer) error {
	specs, argv := apartAtDashes(args)
	if len(argv) == 0 {
		return errUsage
	}
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer master.Close()
	text := ""
	for _, s := range specs {
		if t, ok := strings.CutPrefix(s, "type="); ok {
			text = t + "\n"
		}
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{Stage, "terminal-shell"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), personTTY+"="+identity(slave.Name()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		slave.Close()
		return err
	}
	shown := make(chan []byte)
	go func() { shown <- typeInto(master, text) }()
	err = cmd.Wait()
	slave.Close()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	select {
	case all := <-shown:
		out.Write(bytes.ReplaceAll(all, []byte("\r\n"), []byte("\n")))
	case <-time.After(time.Second):
		return errors.New("somebody holds the terminal open")
	}
	return err
}

// typeInto reads what a terminal shows until it is closed, and types once.
func typeInto(master *os.File, text string) []byte {
	var all []byte
	buf := make([]byte, 4096)
	for typed := false; ; {
		n, err := master.Read(buf)
		all = append(all, buf[:n]...)
		if !typed && bytes.Contains(all, []byte(marker)) {
			typed = true
			if bytes.Contains(all, []byte(cursor)) {
				text += answer
			}
			io.WriteString(master, text)
		}
		if err != nil {
			return all // EIO: nobody has the other side open
		}
	}
}

func apartAtDashes(args []string) (before, after []string) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

// terminalShell is the shell of that person: it runs the command and then says
// what became of the terminal. "modes=NAME" names an attack on its modes, and
// "input=NAME" one that leaves something typed for the shell.
func terminalShell(args []string) error {
	specs, argv := apartAtDashes(args)
	before, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Run()
	signals.Ignore(syscall.SIGTTOU)
	after, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	unix.IoctlSetTermios(0, unix.TCSETS, before)
	fmt.Println() // whatever the command printed last
	for _, s := range specs {
		kind, name, _ := strings.Cut(s, "=")
		switch {
		case kind == "modes" && *before == *after:
			fmt.Printf("held %s: the modes are as before\n", name)
		case kind == "modes":
			fmt.Printf("through %s\n", name)
		case kind == "input":
			left := waiting()
			fmt.Println() // what was typed may have been echoed
			if left != "" {
				fmt.Printf("through %s\nwhich typed %q\n", name, left)
			} else {
				fmt.Printf("held %s: nothing was typed\n", name)
			}
		}
	}
	fmt.Println("status", cmd.ProcessState.ExitCode())
	return nil
}

// waiting is what waits to be read by a shell, after a moment.
func waiting() string {
	fmt.Println(marker)
	modes, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err.Error()
	}
	modes.Lflag &^= unix.ICANON | unix.ECHO
	modes.Cc[unix.VMIN], modes.Cc[unix.VTIME] = 0, 3 // tenths of a second
	if err := unix.IoctlSetTermios(0, unix.TCSETS, modes); err != nil {
		return err.Error()
	}
	buf := make([]byte, 256)
	n, _ := unix.Read(0, buf)
	return string(buf[:max(n, 0)])
}
