package verify

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgate-dev/kgate/verify/lab"
)

// process is a command of a script that runs while the script goes on. Its
// streams are files, so that a descendant that is left cannot hold them open
// and hang the script.
type process struct {
	out, err string
	done     chan struct{} // closed when it has ended
	status   int
	failed   error
	send     func(sig syscall.Signal, group bool) error
}

// launch starts a command in the script's directory and environment, on the
// lab's machine if there is one and out is false.
func (s *script) launch(ts *testscript.TestScript, in string, out bool, argv []string, base string) (*process, error) {
	env := s.environ(ts)
	stdin := os.DevNull
	if in != "" {
		stdin = ts.MkAbs(in)
	}
	p := &process{out: base + ".out", err: base + ".err", done: make(chan struct{})}
	var files [3]*os.File
	for i, open := range []func() (*os.File, error){
		func() (*os.File, error) { return os.Open(stdin) },
		func() (*os.File, error) { return os.Create(p.out) },
		func() (*os.File, error) { return os.Create(p.err) },
	} {
		f, err := open()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		files[i] = f
	}
	dir := filepath.Clean(ts.MkAbs("."))
	if s.lab != nil && !out {
		return p, p.startIn(s.lab, lab.Command{Argv: argv, Dir: dir, Env: env, Files: files})
	}
	return p, p.start(argv, dir, env, files)
}

func (p *process) start(argv []string, dir string, env []string, files [3]*os.File) error {
	name, err := lookPath(argv[0], env)
	if err != nil {
		return err
	}
	cmd := &exec.Cmd{
		Path: name, Args: argv, Dir: dir, Env: env,
		Stdin: files[0], Stdout: files[1], Stderr: files[2],
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.send = func(sig syscall.Signal, group bool) error {
		if group {
			return syscall.Kill(-cmd.Process.Pid, sig)
		}
		return cmd.Process.Signal(sig)
	}
	go func() {
		defer close(p.done)
		cmd.Wait()
		p.status = cmd.ProcessState.ExitCode()
		if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			p.status = 128 + int(w.Signal())
		}
	}()
	return nil
}

func (p *process) startIn(l *lab.Lab, c lab.Command) error {
	job, err := l.Start(c)
	if err != nil {
		return err
	}
	p.send = job.Signal
	go func() {
		defer close(p.done)
		p.status, p.failed = job.Wait()
	}()
	return nil
}

// lookPath finds a program on the PATH of an environment.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range strings.Split(path, ":") {
		file := dir + "/" + name
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: not found on PATH", name)
}

// wait returns the exit status, or an error if the process has not ended in
// time, and then ends it.
func (p *process) wait(d time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.status, p.failed
	case <-time.After(d):
		p.kill()
		return 0, fmt.Errorf("still running after %v", d)
	}
}

func (p *process) signal(sig syscall.Signal, group bool) error { return p.send(sig, group) }

func (p *process) kill() {
	select {
	case <-p.done:
	default:
		p.send(syscall.SIGKILL, true)
		<-p.done
	}
}

// copy hands what the process has said so far to stdout and stderr.
func (p *process) copy(ts *testscript.TestScript) {
	for name, w := range map[string]io.Writer{p.out: ts.Stdout(), p.err: ts.Stderr()} {
		text, err := os.ReadFile(name)
		ts.Check(err)
		w.Write(text)
	}
}

func signalNumber(name string) syscall.Signal {
	return map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT,
		"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "STOP": syscall.SIGSTOP,
		"CONT": syscall.SIGCONT, "TSTP": syscall.SIGTSTP, "SEGV": syscall.SIGSEGV,
		"ABRT": syscall.SIGABRT, "PIPE": syscall.SIGPIPE, "ALRM": syscall.SIGALRM,
		"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
	}[name]
}
