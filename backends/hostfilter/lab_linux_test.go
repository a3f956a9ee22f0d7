package hostfilter

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The tests run on a machine of their own: user, network and mount namespaces
// in which this same program is started again. A second network namespace,
// joined by a veth, is the internet.
const (
	machineAddr  = "203.0.113.1"
	resolverAddr = "203.0.113.53"
	webAddr      = "203.0.113.10"
	otherAddr    = "203.0.113.20"
	thirdAddr    = "203.0.113.30"
)

// resolverAddr6 is the resolver's other address.
const resolverAddr6 = "2001:db8:113::53"

var internetAddrs6 = []string{"2001:db8:113::10", "2001:db8:113::20", resolverAddr6}

var internetAddrs = []string{resolverAddr, webAddr, otherAddr, thirdAddr}

func TestMain(m *testing.M) {
	leaveOut = func(names []string) {
		omit = func(name string) bool { return slices.Contains(names, name) }
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case GateName:
			os.Exit(Gate())
		case "launch":
			os.Exit(launchMain(os.Args[2]))
		case "client":
			os.Exit(clientMain(os.Args[2:]))
		}
	}
	if os.Getenv("HOSTFILTER_LAB") == "" {
		if err := enterMachine(); err != nil {
			theLab.lacks = err
			os.Exit(m.Run())
		}
	}
	theLab.lacks = theLab.set()
	code := m.Run()
	os.RemoveAll(theLab.dir)
	os.Exit(code)
}

// needLab skips a test where the lab cannot be made, or fails it where
// KGATE_MUST says that it must be.
func needLab(t testing.TB) {
	t.Helper()
	if theLab.lacks == nil {
		return
	}
	if must := strings.Split(os.Getenv("KGATE_MUST"), ","); slices.Contains(must, "hostfilter") {
		t.Fatalf("KGATE_MUST says hostfilter: %v", theLab.lacks)
	}
	t.Skipf("the lab cannot be made here: %v", theLab.lacks)
}

// enterMachine starts this program again in namespaces of its own, and exits
// with its status. It returns an error if there can be none.
func enterMachine() error {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HOSTFILTER_LAB=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	runtime.LockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("make the machine's namespaces: %w", err)
	}
	cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		fmt.Fprintln(os.Stderr, "the machine ended:", cmd.ProcessState)
		code = 1
	}
	os.Exit(code)
	return nil
}

type lab struct {
	lacks    error // why there is none
	dir      string
	do       chan func() // runs on the internet's thread
	mu       sync.Mutex
	queries  []string
	answer   func(q dns.Question, tcp bool) (rrs []string, code int, wait time.Duration)
	datagram []string // what the sinks got: "ADDR text"
}

var theLab lab

func (l *lab) set() error {
	for _, tool := range []string{"bwrap", "slirp4netns", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			return err
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	l.do = make(chan func())
	started := make(chan error)
	var inside int
	go func() {
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		inside, _ = unix.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		started <- err
		for f := range l.do {
			f()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: "out", MTU: 65520})
	veth.PeerName = "in"
	veth.PeerMTU = 65520
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	peer, err := netlink.LinkByName("in")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(peer, inside); err != nil {
		return fmt.Errorf("move veth: %w", err)
	}
	if err := up("lo"); err != nil {
		return err
	}
	if err := up("out", machineAddr+"/24", "2001:db8:113::1/64"); err != nil {
		return err
	}
	l.run(func() {
		if err = up("lo"); err != nil {
			return
		}
		var all []string
		for _, a := range internetAddrs {
			all = append(all, a+"/24")
		}
		for _, a := range internetAddrs6 {
			all = append(all, a+"/64")
		}
		err = up("in", all...)
	})
	if err != nil {
		return err
	}
	l.dir, err = os.MkdirTemp("", "hostfilter")
	if err != nil {
		return err
	}
	if err := os.Chmod(l.dir, 0o755); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	conf := filepath.Join(l.dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver "+resolverAddr+"\n"), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(conf, real, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind resolv.conf: %w", err)
	}
	for _, addr := range []string{machineAddr, "127.0.0.1"} {
		for _, port := range []string{"7777", "7778"} {
			ln, err := net.Listen("tcp", net.JoinHostPort(addr, port))
			if err != nil {
				return err
			}
			go web(ln, "machine")
		}
	}
	for _, addr := range []string{"127.0.0.1:53", "[::1]:53"} {
		pc, err := net.ListenPacket("udp", addr)
		if err != nil {
			return err
		}
		go (&dns.Server{PacketConn: pc, Handler: l}).ActivateAndServe()
	}
	return l.serve()
}

// run runs f on the internet's thread.
func (l *lab) run(f func()) {
	done := make(chan struct{})
	l.do <- func() { f(); close(done) }
	<-done
}

func up(name string, addrs ...string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("find %s: %w", name, err)
	}
	for _, s := range addrs {
		a, err := netlink.ParseAddr(s)
		if err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, a); err != nil {
			return fmt.Errorf("add %s to %s: %w", s, name, err)
		}
	}
	return netlink.LinkSetUp(link)
}

// serve starts the internet's servers: names on the resolver's address, a web
// that says which address it is on ports 80 and 443, and sinks for datagrams.
func (l *lab) serve() (err error) {
	l.run(func() {
		for _, a := range append(internetAddrs6, internetAddrs...) {
			for _, port := range []string{"80", "443", "53"} {
				if port == "53" && (a == resolverAddr || a == resolverAddr6) {
					continue
				}
				ln, e := net.Listen("tcp", net.JoinHostPort(a, port))
				if e != nil {
					err = e
					return
				}
				go web(ln, a)
			}
			if a == resolverAddr || a == resolverAddr6 {
				continue
			}
			for _, port := range []string{"53", "80", "9000"} {
				pc, e := net.ListenPacket("udp", net.JoinHostPort(a, port))
				if e != nil {
					err = e
					return
				}
				go l.sink(pc, net.JoinHostPort(a, port))
			}
		}
		for _, a := range []string{resolverAddr, resolverAddr6} {
			pc, e := net.ListenPacket("udp", net.JoinHostPort(a, "53"))
			if e != nil {
				err = e
				return
			}
			pc.(*net.UDPConn).SetReadBuffer(4 << 20)
			ln, e := net.Listen("tcp", net.JoinHostPort(a, "53"))
			if e != nil {
				err = e
				return
			}
			go (&dns.Server{PacketConn: pc, Handler: l}).ActivateAndServe()
			go (&dns.Server{Listener: ln, Handler: l}).ActivateAndServe()
		}
	})
	return err
}
