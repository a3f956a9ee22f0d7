//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/verify/lab"
)

// stageName is the first argument of the part that runs in a network namespace
// of its own.
const stageName = "run-one"

// run is one start of a harness: what the part in the namespace is told, and
// where it writes what came of it.
type run struct {
	Dir    string // home and proj are in it
	Argv   []string
	Env    []string
	Steps  []step
	Signal syscall.Signal // sent to the harness once the file started is in the project; 0: none
	Mark   string         // what all processes of this run have in their environment
	Lab    bool           // on the lab's machine
	Moved  bool           // kgate is taken away after kgate integrate
	OwnBox bool           // the harness's own sandbox is on

	Late   bool     // it had to be killed for want of an end
	Status string   // how the harness ended
	Left   []string // what ran on 5 seconds after it
	Took   time.Duration
}

func (r *run) home() string     { return filepath.Join(r.Dir, "home") }
func (r *run) project() string  { return filepath.Join(r.Dir, "proj") }
func (r *run) requests() string { return filepath.Join(r.Dir, "requests.jsonl") }

// atMost is how long a harness may take.
const atMost = 4 * time.Minute

// do runs the harness and reads back what the inner part found.
func (r *run) do() error {
	spec := filepath.Join(r.Dir, "run.json")
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(spec, text, 0o600); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(r.Dir, "stage.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	if r.Lab {
		err = r.inLab(spec, log)
	} else {
		err = r.alone(spec, log)
	}
	if err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
	}
	if text, err = os.ReadFile(spec); err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

// alone makes a network namespace with nothing but a loopback interface.
func (r *run) alone(spec string, log *os.File) error {
	uid, gid := os.Geteuid(), os.Getegid()
	cmd := exec.Command("/proc/self/exe", stageName, spec)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_NET_ADMIN},
		Setsid:      true,
	}
	return cmd.Run()
}

func (r *run) inLab(spec string, log *os.File) error {
	l, err := lab.Start(lab.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	job, err := l.Start(lab.Command{Argv: []string{self, stageName, spec}, Dir: r.Dir, Env: os.Environ(), Files: [3]*os.File{null, log, log}})
	if err != nil {
		return err
	}
	status, err := job.Wait()
	if err == nil && status != 0 {
		err = fmt.Errorf("the run ended with status %d", status)
	}
	return err
}

// stage is the part in the namespace: the stand-in, and the harness.
func stage(spec string) int {
	if err := inside(spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func inside(spec string) error {
	text, err := os.ReadFile(spec)
	if err != nil {
		return err
	}
	var r run
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if !r.Lab {
		if err := loopback(); err != nil {
			return err
		}
	}
	requests, err := os.Create(r.requests())
	if err != nil {
		return err
	}
	defer requests.Close()
	s := &stub{steps: r.Steps, log: requests}
	if err := s.serve("127.0.0.1:" + port); err != nil {
		return err
	}
	if err := r.harness(); err != nil {
		return err
	}
	if text, err = json.Marshal(r); err != nil {
		return err
	}
	return os.WriteFile(spec, text, 0o600)
}

// loopback brings the one interface up.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, ifr); err != nil {
		return fmt.Errorf("bring the loopback interface up: %w", err)
	}
	others, err := net.Interfaces()
	if err != nil {
		return err
	}
	if len(others) != 1 {
		return fmt.Errorf("the namespace has %d interfaces, want the loopback one alone", len(others))
	}
	return nil
}

// harness starts the harness without a terminal, ends it if that is asked for,
// and looks for what is left.
func (r *run) harness() error {
	out, err := os.Create(filepath.Join(r.Dir, "output.log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := &exec.Cmd{
		Path: r.Argv[0], Args: r.Argv, Dir: r.project(), Env: append(r.Env, r.Mark+"=1"),
		Stdout: out, Stderr: out, SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	begun := time.Now()
	if err := withoutCaps(cmd.Start); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	kill := time.After(atMost)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	sent := r.Signal == 0
wait:
	for {
		select {
		case <-ended:
			break wait
		case <-kill:
			r.Late = true
			cmd.Process.Kill()
			<-ended
			break wait
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(r.project(), "started")); err == nil && !sent {
				sent = true
				if r.Signal == syscall.SIGKILL {
					// Gemini CLI is two processes, of which the other would clean up.
					syscall.Kill(-cmd.Process.Pid, r.Signal)
				} else {
					cmd.Process.Signal(r.Signal)
				}
				kill = time.After(20 * time.Second)
			}
		}
	}
	r.Took = time.Since(begun)
	r.Status = cmd.ProcessState.String()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if r.Left = left(r.Mark); len(r.Left) == 0 || time.Now().After(end) {
			break
		}
	}
	for _, l := range r.Left {
		var pid int
		if _, err := fmt.Sscan(l, &pid); err == nil {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil
}

// withoutCaps calls a function that makes a process on a thread that has no
// capabilities to hand on.
func withoutCaps(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
			result <- err
			return
		}
		result <- f()
	}()
	return <-result
}

// left lists the processes of a run that are there, by what is in their
// environment.
func left(mark string) []string {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var out []string
	for _, dir := range dirs {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil || !strings.Contains("\x00"+string(env), "\x00"+mark+"=1\x00") {
			continue // somebody else's, or gone
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		words := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		out = append(out, filepath.Base(dir)+" "+words[:min(len(words), 120)])
	}
	return out
}
