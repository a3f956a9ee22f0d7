package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageTrace is the argument that makes this program the tracer of one launch.
const stageTrace = "faults-trace"

// strike is what the tracer is to do to one process of a launch.
type strike struct {
	Role   string         // whose process, see role
	Step   int            // at which of its system calls, from 1; 0: none
	Signal syscall.Signal // what it gets
	Thaw   time.Duration  // when it gets SIGCONT after that; 0: never
	Term   time.Duration  // when the launcher gets End after that; 0: never
	End    syscall.Signal
}

// order is a launch to trace.
type order struct {
	Argv   []string
	Strike strike
	Over   string        // a file that the command makes when it is about to end
	Report string        // the file for the outcome
	Steps  bool          // count system calls, although there is no strike
	Within time.Duration // how long it may take; 0: launchWithin
}

// outcome is what the tracer saw.
type outcome struct {
	Status int            // the launcher's, as a shell would say it; -1: it did not end
	Struck bool           // the strike was made
	Call   string         // at this system call
	Late   bool           // after the command's last act
	Steps  map[string]int // how many system calls each role made
	AtRest map[string]int // the same when the command began to wait
	Left   []string       // processes that did not end
	Error  string
	Took   time.Duration
}

const (
	// endWithin is how long the other processes of a launch may live on when its
	// launcher has ended.
	endWithin = 8 * time.Second
	// launchWithin is how long a launch may take in all: there are waits of
	// kgate's own in it, of 10 seconds for a filter that does not get ready.
	launchWithin = 40 * time.Second
)

// tracer traces one launch.
type tracer struct {
	order order
	root  int // the launcher
	step  uintptr

	mu    sync.Mutex // the timers look at what follows
	roles map[int]string
	out   outcome
	begun time.Time
}

func traceMain(text string) int {
	runtime.LockOSThread() // a tracer is a thread
	t := &tracer{roles: map[int]string{}, begun: time.Now(), step: unix.PTRACE_CONT}
	if err := json.Unmarshal([]byte(text), &t.order); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		return 2
	}
	if t.order.Strike.Step > 0 || t.order.Steps {
		t.step = unix.PTRACE_SYSCALL
	}
	t.out = outcome{Status: -1, Steps: map[string]int{}}
	time.AfterFunc(cmp.Or(t.order.Within, launchWithin), func() { t.finish("the launch does not end") })
	if err := t.run(); err != nil {
		t.finish(err.Error())
	}
	t.finish("")
	return 0
}

// finish writes the outcome and ends this process, and with it what it traces.
func (t *tracer) finish(fault string) {
	t.mu.Lock()
	t.out.Error, t.out.Took = fault, time.Since(t.begun)
	for tid, role := range t.roles {
		if tgid(tid) == tid {
			t.out.Left = append(t.out.Left, fmt.Sprintf("%s: %q", role, words(tid)))
		}
	}
	text, _ := json.Marshal(t.out)
	os.WriteFile(t.order.Report+".new", text, 0o600)
	os.Rename(t.order.Report+".new", t.order.Report)
	os.Exit(0)
}

const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL

func ptrace(request uintptr, pid int, addr, data uintptr) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, request, uintptr(pid), addr, data, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// run starts the launch and sees every process of it through to its end.
func (t *tracer) run() error {
	// A shell, because it is one thread, waits until it is traced.
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", `read -r _ <&3; exec 3<&-; exec "$@"`, "sh"}, t.order.Argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{r}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.Close()
	t.root = cmd.Process.Pid
	t.roles[t.root] = "sh"
	if err := ptrace(unix.PTRACE_SEIZE, t.root, 0, options); err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	w.Write([]byte("\n"))
	w.Close()
	for {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.ECHILD:
			return nil
		case err != nil:
			return err
		}
		t.event(tid, ws)
	}
}

// event handles what one thread has stopped for.
func (t *tracer) event(tid int, ws unix.WaitStatus) {
	if ws.Exited() || ws.Signaled() {
		t.mu.Lock()
		delete(t.roles, tid)
		if tid == t.root {
			t.out.Status = ws.ExitStatus()
			if ws.Signaled() {
				t.out.Status = 128 + int(ws.Signal())
			}
			time.AfterFunc(min(endWithin, cmp.Or(t.order.Within, endWithin)), func() { t.finish("processes are left") })
		}
		t.mu.Unlock()
		return
	}
	if !ws.Stopped() {
		return
	}
	t.mu.Lock()
	if _, known := t.roles[tid]; !known {
		t.roles[tid] = t.inherited(tid)
	}
	role := t.roles[tid]
	t.mu.Unlock()
	sig, event := ws.StopSignal(), int(ws)>>16
	switch {
	case event == unix.PTRACE_EVENT_STOP && sig != unix.SIGTRAP: // stopped by a signal
		ptrace(unix.PTRACE_LISTEN, tid, 0, 0)
		return
	case event == unix.PTRACE_EVENT_EXEC:
		t.mu.Lock()
		t.roles[tid] = becomes(role, tid)
		if t.roles[tid] == "command's" && filepath.Base(words(tid)[0]) == "sleep" && t.out.AtRest == nil {
			t.out.AtRest = map[string]int{}
			for r, n := range t.out.Steps {
				t.out.AtRest[r] = n
			}
		}
		t.mu.Unlock()
		sig = 0
	case event != 0:
		sig = 0
	case sig == unix.SIGTRAP|0x80:
		sig = 0
		if nr, entry := call(tid); entry && !idle[nr] {
			t.count(tid, role, nr)
		}
	}
	ptrace(t.step, tid, 0, uintptr(sig))
}

// count counts one system call, and strikes at the one that the order names.
func (t *tracer) count(tid int, role string, nr uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Steps[role]++
	s := t.order.Strike
	if t.out.Struck || role != s.Role || t.out.Steps[role] != s.Step {
		return
	}
	t.out.Struck, t.out.Call = true, name(nr)
	if _, err := os.Lstat(t.order.Over); err == nil {
		t.out.Late = true
	}
	pid := tgid(tid)
	unix.Kill(pid, s.Signal)
	if s.Thaw > 0 {
		time.AfterFunc(s.Thaw, func() { unix.Kill(pid, unix.SIGCONT) })
	}
	if s.Term > 0 {
		time.AfterFunc(s.Term, func() { unix.Kill(t.root, s.End) })
	}
	os.WriteFile(t.order.Report+".struck", nil, 0o600)
	t.step = unix.PTRACE_CONT // what comes now is nobody's count
}

// call is the number of the system call that a thread has stopped at, and
// whether it is only entering it: PTRACE_GET_SYSCALL_INFO of ptrace(2).
func call(tid int) (nr uint64, entry bool) {
	var info [88]byte
	if ptrace(unix.PTRACE_GET_SYSCALL_INFO, tid, uintptr(len(info)), uintptr(unsafe.Pointer(&info))) != nil {
		return 0, false
	}
	return *(*uint64)(unsafe.Pointer(&info[24])), info[0] == unix.PTRACE_SYSCALL_INFO_ENTRY
}

// inherited is the role of a thread or process that is seen for the first time.
func (t *tracer) inherited(tid int) string {
	if id := tgid(tid); id != tid {
		if role := t.roles[id]; role != "" {
			return role
		}
	}
	role := t.roles[field(tid, "PPid")]
	if role == "" {
		return "unknown"
	}
	if strings.HasPrefix(role, "command") {
		return "command's"
	}
	return role + "+" // a fork of it
}

// becomes is the role of a process that has just become another program.
func becomes(role string, pid int) string {
	argv := words(pid)
	program := filepath.Base(argv[0])
	switch {
	case strings.HasPrefix(role, "command"):
		return role
	case strings.HasPrefix(role, "bwrap"):
		return "command"
	case len(argv) > 3 && argv[3] == "kgate-janitor", strings.Contains(program, "janitor"):
		return "janitor"
	case strings.HasPrefix(role, "janitor"):
		return "janitor's"
	case strings.HasPrefix(argv[0], "/proc/self/") && len(argv) > 1:
		return filepath.Base(argv[1])
	}
	return program
}

func words(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
}

func tgid(tid int) int { return field(tid, "Tgid") }

func field(tid int, key string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(v))
			return n
		}
	}
	return 0
}
