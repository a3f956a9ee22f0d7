package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bareMain runs a command in bubblewrap and slirp4netns as a box without a
// filter would be: the control that shows what the filter is for. With -only it
// lets packets out to one address and nothing else, which shows that the three
// tools work together here. With -own the command is not in the box, but has every
// capability over the box's network.
func bareMain(args []string) int {
	f := flag.NewFlagSet(StageBare, flag.ContinueOnError)
	six := f.Bool("6", false, "IPv6 too")
	own := f.Bool("own", false, "with rights over the network")
	mtu := f.Int("mtu", 65520, "of the box's interface")
	only := f.String("only", "", "the one address to let out")
	if f.Parse(args) != nil || f.NArg() == 0 {
		return 2
	}
	b := bare{six: *six, own: *own, mtu: *mtu, only: *only}
	status, err := b.run(f.Args())
	if err != nil {
		fmt.Fprintf(os.Stderr, "kgate: bare box: %v\n", err)
		return 125
	}
	return status
}

type bare struct {
	six  bool
	own  bool
	mtu  int
	only string
}

func (b bare) run(argv []string) (int, error) {
	inside := argv
	if b.own {
		inside = []string{"true"}
	}
	resolv, err := b.resolv()
	if err != nil {
		return 0, err
	}
	defer os.Remove(resolv)
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return 0, err
	}
	infoR, infoW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer infoR.Close()
	blockR, blockW, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer blockW.Close()
	box := exec.Command("bwrap", append([]string{
		"--bind", "/", "/", "--ro-bind", resolv, target, "--dev", "/dev", "--proc", "/proc",
		"--unshare-user", "--unshare-net", "--unshare-pid", "--cap-drop", "ALL", "--die-with-parent",
		"--info-fd", "3", "--block-fd", "4", "--"}, inside...)...)
	box.Stdin, box.Stdout, box.Stderr = os.Stdin, os.Stdout, os.Stderr
	box.ExtraFiles = []*os.File{infoW, blockR}
	err = box.Start()
	infoW.Close()
	blockR.Close()
	if err != nil {
		return 0, err
	}
	n, err := spaces(infoR)
	if err != nil {
		box.Process.Kill()
		box.Wait()
		return 0, err
	}
	defer n.close()
	slirp, err := b.attach(n)
	if err != nil {
		box.Process.Kill()
		box.Wait()
		return 0, err
	}
	defer slirp()
	command := box
	if b.own {
		command = n.enter(argv...)
		command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = command.Run()
	}
	if _, err := blockW.Write([]byte("x")); err != nil {
		return 0, err
	}
	if ended := box.Wait(); !b.own {
		err = ended
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	if w, ok := command.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return command.ProcessState.ExitCode(), nil
}

func (b bare) resolv() (string, error) {
	f, err := os.CreateTemp("", "kgate-resolv-")
	if err != nil {
		return "", err
	}
	defer f.Close()
	_, err = f.WriteString("nameserver 10.0.2.3\n")
	return f.Name(), err
}

// boxSpaces are a box's network, and the user namespace that has rights over it.
type boxSpaces struct {
	child     int // its first process
	user, net *os.File
}

// spaces finds those of the box that the info stream tells of.
func spaces(info io.Reader) (*boxSpaces, error) {
	var said struct {
		Child int `json:"child-pid"`
	}
	if err := json.NewDecoder(info).Decode(&said); err != nil {
		return nil, fmt.Errorf("bwrap made no box: %w", err)
	}
	netns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", said.Child))
	if err != nil {
		return nil, err
	}
	// The user namespace that owns the box's network, which is not the one the
	// command lives in: ioctl_ns(2).
	fd, err := unix.IoctlRetInt(int(netns.Fd()), unix.NS_GET_USERNS)
	if err != nil {
		netns.Close()
		return nil, os.NewSyscallError("ioctl NS_GET_USERNS", err)
	}
	return &boxSpaces{said.Child, os.NewFile(uintptr(fd), "userns"), netns}, nil
}

func (n *boxSpaces) close() {
	n.user.Close()
	n.net.Close()
}

// enter is a command that runs in them, with every capability over them.
func (n *boxSpaces) enter(argv ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--user=/proc/self/fd/3", "--net=/proc/self/fd/4", "--preserve-credentials", "--"}, argv...)...)
	cmd.ExtraFiles = []*os.File{n.user, n.net}
	return cmd
}

// attach gives the box an interface, and returns what takes it away again.
func (b bare) attach(n *boxSpaces) (func(), error) {
	if err := loopbackUp(n.child); err != nil {
		return nil, err
	}
	readyR, readyW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer readyR.Close()
	exitR, exitW, err := os.Pipe()
	if err != nil {
		readyW.Close()
		return nil, err
	}
	args := []string{"--configure", "--mtu", fmt.Sprint(b.mtu), "--ready-fd", "3", "--exit-fd", "4"}
	if b.six {
		args = append(args, "--enable-ipv6")
	}
	args = append(args, "--userns-path", "/proc/self/fd/5", "--netns-type", "path", "/proc/self/fd/6", "tap0")
	slirp := exec.Command("slirp4netns", args...)
	var words bytes.Buffer
	slirp.Stdout, slirp.Stderr = &words, &words
	slirp.ExtraFiles = []*os.File{readyW, exitR, n.user, n.net}
	slirp.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err = slirp.Start()
	readyW.Close()
	exitR.Close()
	if err != nil {
		exitW.Close()
		return nil, err
	}
	stop := func() {
		exitW.Close()
		slirp.Wait()
	}
	if got, _ := readyR.Read(make([]byte, 1)); got != 1 {
		stop()
		return nil, fmt.Errorf("slirp4netns did not become ready: %s", strings.TrimSpace(words.String()))
	}
	if b.only != "" {
		if err := b.filter(n); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}

// loopbackUp waits until bubblewrap has set up the box's loopback. Both it and
// slirp4netns do that, and bubblewrap gives up when it is the second.
func loopbackUp(pid int) error {
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/fib_trie", pid))
		if err != nil {
			return fmt.Errorf("the box ended while it was made: %w", err)
		}
		if bytes.Contains(text, []byte("127.0.0.1")) {
			return nil
		}
		if time.Now().After(end) {
			return errors.New("bubblewrap did not set up the box's loopback")
		}
	}
}

// filter lets packets out to one address only.
func (b bare) filter(n *boxSpaces) error {
	rules := fmt.Sprintf("*filter\n:INPUT ACCEPT\n:FORWARD DROP\n:OUTPUT DROP\n-A OUTPUT -d %s -j ACCEPT\n-A OUTPUT -j REJECT\nCOMMIT\n", b.only)
	cmd := n.enter("iptables-restore", "-w", "5")
	cmd.Stdin = strings.NewReader(rules)
	cmd.Env = append(os.Environ(), "XTABLES_LOCKFILE="+filepath.Join(os.TempDir(), fmt.Sprintf("kgate-xtables-%d.lock", os.Getpid())))
	defer os.Remove(filepath.Join(os.TempDir(), fmt.Sprintf("kgate-xtables-%d.lock", os.Getpid())))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("iptables-restore in the box's network: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Probe makes a lab and takes it away again.
func Probe() error {
	l, err := Start(Options{})
	if err != nil {
		return err
	}
	return l.Close()
}

// ProbeFilter makes a lab and, on its machine, a box with a packet filter of
// three tools' making, and looks whether the filter tells two addresses apart.
func ProbeFilter() error {
	l, err := Start(Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	probe := func(addr, patience string) (int, string, error) {
		out, err := os.CreateTemp("", "kgate-probe-")
		if err != nil {
			return 0, "", err
		}
		defer os.Remove(out.Name())
		defer out.Close()
		null, err := os.Open(os.DevNull)
		if err != nil {
			return 0, "", err
		}
		defer null.Close()
		self, err := os.Executable()
		if err != nil {
			return 0, "", err
		}
		j, err := l.Start(Command{
			Argv: []string{self, StageBare, "-only", "203.0.113.10", "--", self, StageProbe, "-t", patience, "tcp", addr, "9999"},
			Dir:  "/", Env: []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "TMPDIR=" + os.TempDir()}, Files: [3]*os.File{null, out, out},
		})
		if err != nil {
			return 0, "", err
		}
		done := time.AfterFunc(20*time.Second, func() { j.Signal(syscall.SIGKILL, true) })
		defer done.Stop()
		status, err := j.Wait()
		text, _ := os.ReadFile(out.Name())
		return status, strings.TrimSpace(string(text)), err
	}
	if status, text, err := probe("203.0.113.10", "10s"); err != nil || status != 0 {
		return fmt.Errorf("bubblewrap, slirp4netns and iptables together: %w", errors.Join(err, fmt.Errorf("status %d: %s", status, text)))
	}
	// Its packets are dropped, so that all of this is waited.
	if status, text, err := probe("203.0.113.20", "2s"); err != nil || status != 1 {
		return fmt.Errorf("a packet filter that should refuse does not: %w", errors.Join(err, fmt.Errorf("status %d: %s", status, text)))
	}
	return nil
}
