package hostfilter

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends/tied"
)

// launchOrders tell the stand-in for kgate what to launch.
type launchOrders struct {
	Config  Config
	Argv    []string
	Verbose bool
	Times   bool // say on stderr how long each step took
	Bare    bool // no filter: slirp4netns alone
	Waits   times
	Omit    []string // rules to leave out
}

// launchMain is the stand-in for kgate: a bwrap box, the filter, the command.
func launchMain(arg string) int {
	var o launchOrders
	if err := json.Unmarshal([]byte(arg), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if o.Verbose {
		o.Config.Verbose = os.Stderr
	}
	if o.Waits != (times{}) {
		filterTimes = o.Waits
	}
	omitted = func() []string { return o.Omit }
	leaveOut(o.Omit)
	var err error
	if o.Config.Resolver, err = HostResolver(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	t0 := time.Now()
	b, err := startBox(o.Argv, o.Bare, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	t1 := time.Now()
	if o.Bare {
		return bare(b, t0)
	}
	f, err := Attach(context.Background(), o.Config, b.pid)
	if err != nil {
		// The child itself: with bwrap's parent alone gone, it would take the
		// end of the block descriptor for its release.
		syscall.Kill(b.pid, syscall.SIGKILL)
		b.cmd.Process.Kill()
		b.cmd.Wait()
		fmt.Fprintln(os.Stderr, "kgate:", err)
		return 125
	}
	t2 := time.Now()
	b.release(false)
	go func() {
		err := <-f.Done()
		fmt.Fprintln(os.Stderr, "done:", err)
	}()
	b.cmd.Wait()
	// A bwrap that is killed early enough leaves its child alive.
	syscall.Kill(b.pid, syscall.SIGKILL)
	t3 := time.Now()
	f.Close()
	if o.Times {
		fmt.Fprintf(os.Stderr, "times %v %v %v %v\n", t1.Sub(t0), t2.Sub(t1), t3.Sub(t2), time.Since(t3))
	}
	return b.cmd.ProcessState.ExitCode()
}

// bare is what a launch is measured against: slirp4netns, configured by itself,
// and the command released when it says that it is ready.
func bare(b *box, t0 time.Time) int {
	ns, err := openNamespaces(b.pid)
	if err != nil {
		return 125
	}
	p, err := newPipes()
	if err != nil {
		return 125
	}
	s, err := start("slirp4netns", command{env: helperEnv, files: []*os.File{p.readyOut, p.exitIn, ns.user, ns.net},
		argv: []string{OnPath("slirp4netns"), "--configure", "--disable-host-loopback", "--mtu=65520", "--ready-fd=3", "--exit-fd=4",
			"--userns-path=/proc/self/fd/5", "--netns-type=path", "/proc/self/fd/6", Device}})
	if err != nil {
		return 125
	}
	p.closeOthers()
	p.readyIn.Read(make([]byte, 1))
	t2 := time.Now()
	b.release(true)
	b.cmd.Wait()
	t3 := time.Now()
	p.exitOut.Close()
	s.end()
	fmt.Fprintf(os.Stderr, "times %v %v %v\n", t2.Sub(t0), t3.Sub(t2), time.Since(t3))
	return b.cmd.ProcessState.ExitCode()
}

// box is a bwrap that holds its command back. bwrap takes the end of its block
// descriptor for a release, and its child does not die with its parent before
// that: so a first program in the box says that it is there, and then waits for
// a word, which an end is not.
type box struct {
	cmd        *exec.Cmd
	pid        int
	word, here *os.File
}

const awaitGo = `echo >&4; read -r go <&6 || exit 125; exec "$@" 4>&- 6<&-`

// startBox starts a box; a blocked one waits on bwrap's block descriptor.
func startBox(argv []string, blocked bool, out, errs *os.File) (*box, error) {
	var ends [8]*os.File
	for i := 0; i < len(ends); i += 2 {
		var err error
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	info, here, conf, word := ends[0:2], ends[2:4], ends[4:6], ends[6:8]
	fmt.Fprintf(conf[1], "nameserver %v\n", DNS)
	conf[1].Close()
	real, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return nil, err
	}
	args := []string{"--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent", "--new-session",
		"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--info-fd", "3", "--ro-bind-data", "5", real}
	if blocked {
		args = append(args, "--block-fd", "6", "--")
	} else {
		args = append(args, "--", "sh", "-c", awaitGo, "sh")
	}
	cmd := exec.Command("bwrap", append(args, argv...)...)
	cmd.ExtraFiles = []*os.File{info[1], here[1], conf[0], word[0]}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := startJanitor(); err != nil {
		return nil, err
	}
	tied.Do(func() { err = cmd.Start() })
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(leash, cmd.Process.Pid)
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	var said struct {
		Pid int `json:"child-pid"`
	}
	if err := json.NewDecoder(info[0]).Decode(&said); err != nil {
		cmd.Wait()
		return nil, fmt.Errorf("bwrap: %w", err)
	}
	info[0].Close()
	return &box{cmd, said.Pid, word[1], here[0]}, nil
}

// leash is the janitor's input.
var leash *os.File

// startJanitor starts what ends the box's process group once this process has
// ended: bwrap's child waits for ever for a bwrap that was killed before it has
// written the child's maps, as no launch of kgate's does (bubblewrap's
// TestJanitorEndsBwrap). The first line of its input names the group. That it is
// a socket is for TestHelpersAreTied, which keeps the pipes open.
func startJanitor() error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	in := os.NewFile(uintptr(fds[0]), "leash")
	defer in.Close()
	leash = os.NewFile(uintptr(fds[1]), "leash")
	j := exec.Command("sh", "-c", `read -r box; read -r _; [ -z "$box" ] || kill -KILL "-$box" 2>/dev/null`)
	j.Stdin, j.SysProcAttr = in, &syscall.SysProcAttr{Setsid: true}
	return j.Start()
}

// release lets the command run once its first program is there.
func (b *box) release(blocked bool) {
	if !blocked {
		b.here.Read(make([]byte, 1))
	}
	b.word.Write([]byte("go\n"))
	b.word.Close()
}
