package lab

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Stage runs the lab's own programs when argv names one.
func Stage(argv []string) (status int, ok bool) {
	if len(argv) < 2 {
		return 0, false
	}
	switch argv[1] {
	case StageMachine:
		return machineMain(argv[2:]), true
	case StageBare:
		return bareMain(argv[2:]), true
	}
	return 0, false
}

// machine is process 1 of the lab's machine: it starts what the person runs,
// keeps the internet, and remembers all that was seen. When its socket closes
// it ends, and the kernel ends everything in its namespaces with it.
type machine struct {
	conn    *net.UnixConn
	jobs    *jobs
	servers *servers
	watch   *watch
	marks   *net.UDPConn // where the captures' markers arrive
}

func machineMain(args []string) int {
	if len(args) != 1 || os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "kgate: this is an inner program of kgate verify")
		return 2
	}
	m := &machine{jobs: newJobs(), servers: &servers{records: &Records{}, zone: NewZone()}}
	conn, err := unixConn(3)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kgate: lab: %v\n", err)
		return 1
	}
	m.conn = conn
	if err := m.setUp(args[0]); err != nil {
		fmt.Fprintf(os.Stderr, "kgate: lab: %v\n", err)
		return 1
	}
	m.serve()
	// Whoever made these may have been killed.
	dir := filepath.Dir(args[0])
	for _, name := range []string{args[0], filepath.Join(dir, saidFile), dir} {
		os.Remove(name)
	}
	return 0
}

func (m *machine) setUp(resolv string) error {
	if err := mounts(resolv); err != nil {
		return err
	}
	if err := m.network(); err != nil {
		return err
	}
	go m.jobs.reap()
	return nil
}

// mounts gives the machine its own view of processes and of the name server.
func mounts(resolv string) error {
	// Nothing mounted here is seen outside, and nothing outside comes in.
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return fmt.Errorf("the lab puts its name server over resolv.conf: %w", err)
	}
	if err := unix.Mount(resolv, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind resolv.conf over %q: %w", target, err)
	}
	return nil
}

// serve answers requests until the harness is gone.
func (m *machine) serve() {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(16*4))
	for {
		n, oobn, _, _, err := m.conn.ReadMsgUnix(buf, oob)
		if err != nil || n == 0 {
			return
		}
		var r request
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			return
		}
		files := received(oob[:oobn])
		go func() {
			answer, err := m.answer(r, files)
			for _, f := range files {
				f.Close()
			}
			answer.ID = r.ID
			if err != nil {
				answer.Error = err.Error()
			}
			m.conn.Write(encode(answer))
		}()
	}
}

// received takes the descriptors out of a control message.
func received(oob []byte) []*os.File {
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, msg := range messages {
		fds, err := unix.ParseUnixRights(&msg)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files
}

func (m *machine) answer(r request, files []*os.File) (reply, error) {
	switch r.Op {
	case "hello":
		return reply{}, nil
	case "start":
		id, err := m.jobs.start(r, files)
		return reply{Job: id}, err
	case "wait":
		status, err := m.jobs.wait(r.Job)
		return reply{Status: status}, err
	case "signal":
		return reply{}, m.jobs.signal(r.Job, r.Sig, r.Group)
	case "processes":
		lines, err := processes()
		return reply{Lines: lines}, err
	case "mark":
		if err := m.watch.sync(); err != nil {
			return reply{}, err
		}
		m.servers.records.clear()
		m.watch.clear()
		return reply{}, nil
	case "sinks":
		return m.sinks(r)
	case "packets":
		return m.packets(r)
	case "dns":
		if len(r.Words) < 2 {
			return reply{}, fmt.Errorf("lab: a rule needs a name and what to say")
		}
		rule, err := ParseRule(r.Words[1:])
		if err == nil {
			m.servers.zone.Set(r.Words[0], rule)
		}
		return reply{}, err
	case "unfilter":
		return reply{}, m.watch.unfilter()
	case "silence":
		m.servers.zone.Silence(r.Want)
		return reply{}, nil
	case "pcap":
		if len(files) != 1 {
			return reply{}, fmt.Errorf("lab: pcap needs a file")
		}
		n, err := m.watch.write(r.Link, files[0])
		return reply{Count: n}, err
	}
	return reply{}, fmt.Errorf("lab: no request %q", r.Op)
}

// processes lists what runs here but for this process and for zombies.
func processes() ([]string, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range dirs {
		pid := filepath.Base(dir)
		if pid == "1" {
			continue
		}
		stat, err := os.ReadFile(dir + "/stat")
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X") {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		line := pid + ": " + strings.ReplaceAll(strings.TrimRight(string(cmdline), "\x00"), "\x00", " ")
		if len(out) < 50 {
			out = append(out, line[:min(len(line), 300)])
		}
	}
	return out, nil
}

// inNamespace runs f on a thread that has entered a network namespace and is
// thrown away after it.
func inNamespace(fd int, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			result <- os.NewSyscallError("setns CLONE_NEWNET", err)
			return
		}
		result <- f()
	}()
	return <-result
}
