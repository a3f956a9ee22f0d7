//go:build unix

package seatbelt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/kgate-dev/kgate/backends"
)

// box is a started box. The process that was sandbox-exec becomes the stage and
// then the command, so its status is the command's own.
type box struct {
	name    string // the command, for messages
	process *os.Process
	temp    string
	guard   *guard
	done    chan struct{} // closed when exit and err stand

	exit backends.Exit
	err  error

	mu     sync.Mutex
	asked  syscall.Signal // asked to end before there was a command
	reaped bool
}

// launch starts the plan's program. What it makes on the host is removed when
// the box is gone, or at once when this fails.
func launch(plan *backends.Plan, std backends.Stdio) (_ *box, err error) {
	profile, ok := plan.Extra.(*Profile)
	if !ok {
		return nil, errors.New("seatbelt: start: the plan is another backend's")
	}
	if blocked := plan.Blocked(); len(blocked) > 0 {
		return nil, &backends.BlockedError{Findings: blocked}
	}
	if err := furnish(profile.Temp, plan.Files); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clear(profile.Temp))
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer statusEnd.Close()
	words, wordsEnd, err := os.Pipe()
	if err != nil {
		status.Close()
		return nil, err
	}
	defer wordsEnd.Close()

	or := func(f *os.File) *os.File {
		if f == nil {
			return null
		}
		return f
	}
	env := plan.Command.Env
	if env == nil {
		env = []string{}
	}
	argv := plan.Argv()
	b := &box{temp: profile.Temp, done: make(chan struct{})}
	if len(plan.Command.Argv) > 0 {
		b.name = plan.Command.Argv[0]
	}
	defer func() {
		if err != nil {
			status.Close()
			words.Close()
		}
	}()
	if b.guard, err = watch(profile.Temp); err != nil {
		return nil, err
	}
	b.process, err = os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir: plan.Command.Dir, Env: env,
		Files: []*os.File{or(std.In), or(std.Out), wordsEnd, or(std.Control), statusEnd, or(std.Err)},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		b.guard.dismiss()
		return nil, fmt.Errorf("start %q: %w", argv[0], err)
	}
	if err = b.guard.over(b.process.Pid); err != nil {
		b.Kill()
		b.process.Wait()
		b.guard.dismiss()
		return nil, fmt.Errorf("tell the guard of the launch: %w", err)
	}
	go b.run(status, words)
	return b, nil
}

// run sees the box through to its end and then cleans up.
func (b *box) run(status, words *os.File) {
	defer close(b.done)
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(io.LimitReader(words, 8<<10))
		io.Copy(io.Discard, words)
		words.Close()
		said <- string(text)
	}()
	// The end of the file comes when the stage has become the command.
	report, _ := io.ReadAll(io.LimitReader(status, 64))
	status.Close()
	state, err := b.process.Wait()
	b.mu.Lock()
	b.reaped = true
	asked := b.asked
	b.mu.Unlock()
	// Whatever the command left in its group ends with it; its own session has
	// no other name.
	syscall.Kill(-b.process.Pid, syscall.SIGKILL)
	text := <-said
	switch {
	case err != nil:
		b.err = fmt.Errorf("wait for the box: %w", err)
	default:
		b.exit, b.err = outcome(b.name, report, text, state.Sys().(syscall.WaitStatus), asked)
	}
	b.guard.dismiss()
	if err := clear(b.temp); err != nil && b.err == nil {
		b.err = fmt.Errorf("clean up after the launch: %w", err)
	}
}

// outcome tells the command's end from the box's: report is what the stage said,
// said what sandbox-exec did, asked a signal that was sent to the launch.
func outcome(name string, report []byte, said string, status syscall.WaitStatus, asked syscall.Signal) (backends.Exit, error) {
	ran := len(report) > 0 && report[0] == stood
	switch {
	case ran && len(report) > 1:
		n, err := strconv.Atoi(string(report[1:]))
		if err != nil {
			n = int(syscall.EIO)
		}
		return backends.Exit{}, commandError(name, syscall.Errno(n))
	case !ran && asked != 0 && status.Signaled():
		return backends.Exit{Signal: status.Signal()}, nil
	case !ran:
		return backends.Exit{}, launchError(said, status)
	case status.Signaled():
		return backends.Exit{Signal: status.Signal()}, nil
	}
	return backends.Exit{Code: status.ExitStatus()}, nil
}

// Wait returns how the command ended; see [backends.Process].
func (b *box) Wait() (backends.Exit, error) {
	<-b.done
	return b.exit, b.err
}

// Signal delivers to the command's own process, which is the one that was
// started.
func (b *box) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("no such signal: %v", sig)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reaped {
		return nil
	}
	b.asked = s
	return syscall.Kill(b.process.Pid, s)
}

// Kill ends the command and all of its process group at once.
func (b *box) Kill() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.reaped {
		return nil
	}
	b.asked = syscall.SIGKILL
	syscall.Kill(-b.process.Pid, syscall.SIGKILL)
	return syscall.Kill(b.process.Pid, syscall.SIGKILL)
}

// furnish makes the launch's directory with what the plan puts there.
func furnish(dir string, files []backends.File) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("make the launch's directory: %w", err)
	}
	err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700)
	for _, f := range files {
		if err != nil {
			break
		}
		err = write(f)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("furnish the launch's directory: %w", err), clear(dir))
	}
	return nil
}

func write(f backends.File) error {
	out, err := os.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode)
	if err != nil {
		return err
	}
	_, err = out.Write(f.Content)
	return errors.Join(err, out.Close())
}

// clear removes the launch's directory. The command may have taken the rights to
// its own directories away. They are given back through a root that nothing
// leads out of: what the command left may still be changing names.
func clear(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if root, err := os.OpenRoot(dir); err == nil {
		fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				root.Chmod(p, 0o700)
			}
			return nil
		})
		root.Close()
	}
	return os.RemoveAll(dir)
}
