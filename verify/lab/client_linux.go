package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Lab is a running machine with its internet. All of it ends with Close, or
// with the process that started it.
type Lab struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
	dir  string

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	broken  error
}

// saidFile, in the lab's directory, is what its machine said before it came up.
const saidFile = "machine.err"

// Start makes the lab and returns once everything in it answers.
func Start(o Options) (*Lab, error) {
	dir, err := os.MkdirTemp("", "kgate-lab-")
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: dir, waiting: map[int]chan reply{}}
	if err := l.start(o); err != nil {
		l.Close()
		return nil, fmt.Errorf("lab: %w", err)
	}
	return l, nil
}

func (l *Lab) start(o Options) error {
	upstream := o.Upstream
	if upstream == "" {
		upstream = "203.0.113.53"
	}
	resolv := filepath.Join(l.dir, "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver "+upstream+"\n"), 0o644); err != nil {
		return err
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "machine")
	defer theirs.Close()
	if l.conn, err = unixConn(fds[0]); err != nil {
		return err
	}

	said := filepath.Join(l.dir, saidFile)
	stderr, err := os.Create(said)
	if err != nil {
		return err
	}
	defer stderr.Close()
	attr, err := machineAttr()
	if err != nil {
		return err
	}
	l.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{"kgate", StageMachine, resolv},
		Env: []string{fmt.Sprintf("KGATE_LAB_OWNER=%d", os.Getpid()), "PATH=" + os.Getenv("PATH")},
		Dir: "/", Stderr: stderr, ExtraFiles: []*os.File{theirs}, SysProcAttr: attr,
	}
	if err := l.cmd.Start(); err != nil {
		l.cmd = nil
		return fmt.Errorf("cannot make a user namespace with a machine in it: %w", err)
	}
	theirs.Close()
	go l.receive()
	_, err = l.ask(request{Op: "hello"}, nil)
	if err != nil {
		text, _ := os.ReadFile(said)
		return fmt.Errorf("the machine did not come up: %w: %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// machineAttr asks for the machine's namespaces with every user who is known
// here known there by the same number: what runs in the lab is as much or as
// little root as the person is.
func machineAttr() (*syscall.SysProcAttr, error) {
	uids, err := idMap("/proc/self/uid_map", os.Geteuid())
	if err != nil {
		return nil, err
	}
	gids, err := idMap("/proc/self/gid_map", os.Getegid())
	if err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS |
			syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		UidMappings: uids, GidMappings: gids,
		GidMappingsEnableSetgroups: os.Geteuid() == 0,
		Setsid:                     true,
	}
	if os.Geteuid() != 0 {
		// Anybody but root would lose all capabilities at the exec.
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			attr.AmbientCaps = append(attr.AmbientCaps, c)
		}
	}
	return attr, nil
}

// idMap maps root's machine like the one it is on, and anybody else's own id.
func idMap(file string, id int) ([]syscall.SysProcIDMap, error) {
	if os.Geteuid() != 0 {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []syscall.SysProcIDMap
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var inside, outside, size int
		if _, err := fmt.Sscan(line, &inside, &outside, &size); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
	}
	return out, nil
}

func unixConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %d is no unix socket", fd)
	}
	return u, nil
}

// ask sends a request, with files if any, and waits for its answer.
func (l *Lab) ask(r request, files []*os.File) (reply, error) {
	answer := make(chan reply, 1)
	l.mu.Lock()
	if l.broken != nil {
		l.mu.Unlock()
		return reply{}, l.broken
	}
	l.next++
	r.ID = l.next
	l.waiting[r.ID] = answer
	l.mu.Unlock()

	text := encode(r)
	if len(text) > maxMessage {
		return reply{}, fmt.Errorf("lab: a request of %d bytes is too long", len(text))
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := l.conn.WriteMsgUnix(text, rights, nil); err != nil {
		return reply{}, fmt.Errorf("lab: the machine is gone: %w", err)
	}
	got, ok := <-answer
	if !ok {
		return reply{}, l.broken
	}
	if got.Error != "" {
		return got, errors.New(got.Error)
	}
	return got, nil
}

// receive hands each answer to whoever waits for it.
func (l *Lab) receive() {
	buf := make([]byte, maxMessage)
	for {
		n, err := l.conn.Read(buf)
		if err != nil || n == 0 {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.broken = errors.New("lab: the machine has ended")
			for id, c := range l.waiting {
				close(c)
				delete(l.waiting, id)
			}
			return
		}
		var r reply
		if err := json.Unmarshal(buf[:n], &r); err != nil {
			continue
		}
		l.mu.Lock()
		if c := l.waiting[r.ID]; c != nil {
			delete(l.waiting, r.ID)
			c <- r
		}
		l.mu.Unlock()
	}
}

// Close ends the machine, all that runs on it, and the internet.
func (l *Lab) Close() error {
	if l.conn != nil {
		l.conn.Close() // process 1 ends at this, and takes the rest with it
	}
	if l.cmd != nil {
		ended := make(chan struct{})
		go func() { l.cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(2 * time.Second):
			l.cmd.Process.Kill()
			<-ended
		}
	}
	return os.RemoveAll(l.dir)
}

// Job is a command on the machine.
type Job struct {
	lab *Lab
	id  int
}

// Start starts a command on the machine, as the person and without capabilities
// that the person does not have.
func (l *Lab) Start(c Command) (*Job, error) {
	r, err := l.ask(request{Op: "start", Argv: c.Argv, Dir: c.Dir, Env: c.Env}, c.Files[:])
	if err != nil {
		return nil, err
	}
	return &Job{l, r.Job}, nil
}

// Wait returns the status a shell would report once the command has ended.
func (j *Job) Wait() (int, error) {
	r, err := j.lab.ask(request{Op: "wait", Job: j.id}, nil)
	return r.Status, err
}

// Signal signals the command's process, or the group that it leads.
func (j *Job) Signal(sig syscall.Signal, group bool) error {
	_, err := j.lab.ask(request{Op: "signal", Job: j.id, Sig: sig, Group: group}, nil)
	return err
}

// Processes lists all processes on the machine but its first.
func (l *Lab) Processes() ([]string, error) {
	r, err := l.ask(request{Op: "processes"}, nil)
	return r.Lines, err
}

// Mark makes the witnesses forget what they saw.
func (l *Lab) Mark() error {
	_, err := l.ask(request{Op: "mark"}, nil)
	return err
}

// Sinks asks the servers what reached them. With want it waits up to a second
// for the first.
func (l *Lab) Sinks(words []string, want bool) (Answer, error) {
	r, err := l.ask(request{Op: "sinks", Words: words, Want: want}, nil)
	return Answer{r.Count, r.Total, r.Lines}, err
}

// Packets asks the captures on a link: "box", "outer" or "any".
func (l *Lab) Packets(link string, words []string, want bool) (Answer, error) {
	r, err := l.ask(request{Op: "packets", Link: link, Words: words, Want: want}, nil)
	return Answer{r.Count, r.Total, r.Lines}, err
}

// DNS scripts what the name server says of a name; see ParseRule.
func (l *Lab) DNS(name string, words []string) error {
	_, err := l.ask(request{Op: "dns", Words: append([]string{name}, words...)}, nil)
	return err
}

// Silence makes all name servers of the internet fall silent, or speak again.
func (l *Lab) Silence(on bool) error {
	_, err := l.ask(request{Op: "silence", Want: on}, nil)
	return err
}

// Unfilter takes the packet filter out of every box that is there, from outside
// and with rights that no box has: so it is seen what holds without it.
func (l *Lab) Unfilter() error {
	_, err := l.ask(request{Op: "unfilter"}, nil)
	return err
}

// Pcap writes the packets seen on a link to a file.
func (l *Lab) Pcap(link, file string) (int, error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	r, err := l.ask(request{Op: "pcap", Link: link}, []*os.File{f})
	if err != nil {
		f.Close()
		return 0, err
	}
	return r.Count, f.Close()
}
