package hostfilter

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// host parses an entry as the host list writes it.
func host(t testing.TB, s string) policy.Host {
	t.Helper()
	var h policy.Host
	if a, err := netip.ParseAddr(s); err == nil {
		return policy.Host{Addr: a}
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return policy.Host{Addr: ap.Addr(), Port: ap.Port()}
	}
	name, port, ok := strings.Cut(s, ":")
	if ok {
		n, err := netip.ParseAddrPort("0.0.0.0:" + port)
		if err != nil {
			t.Fatal(err)
		}
		h.Port = n.Port()
	}
	h.Name, h.Wildcard = strings.CutPrefix(name, "*.")
	return h
}

func hosts(t testing.TB, all ...string) []policy.Host {
	var hs []policy.Host
	for _, s := range all {
		hs = append(hs, host(t, s))
	}
	return hs
}

// launched is what came of a launch.
type launched struct {
	out, errs string
	code      int
	took      time.Duration
}

// asUser makes a command run as an ordinary user of the lab's machine, who has
// no capability over its network.
func asUser(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}},
	}
}

// launch launches the client with the steps on the lab's machine.
func launch(t testing.TB, root bool, c Config, steps ...string) launched {
	t.Helper()
	cmd := launchCommand(t, root, c, append([]string{self(t), "client"}, steps...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	cmd.Run()
	return launched{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(began)}
}

func self(t testing.TB) string {
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func launchCommand(t testing.TB, root bool, c Config, argv ...string) *exec.Cmd {
	t.Helper()
	arg, err := json.Marshal(launchOrders{Config: c, Argv: argv, Verbose: true})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t), "launch", string(arg))
	if !root {
		asUser(cmd)
	}
	return cmd
}

func answers(t testing.TB, f func(dns.Question, bool) ([]string, int, time.Duration)) {
	t.Helper()
	theLab.mu.Lock()
	defer theLab.mu.Unlock()
	theLab.answer = f
	theLab.queries, theLab.datagram = nil, nil
}

func (l *lab) saw() (queries, datagrams []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.queries...), append([]string(nil), l.datagram...)
}

func TestListedHostAnswersAndOthersDoNot(t *testing.T) {
	for _, root := range []bool{false, true} {
		answers(t, zone("allowed.test. 60 A "+webAddr, "other.test. 60 A "+otherAddr))
		r := launch(t, root, Config{Hosts: hosts(t, "allowed.test")},
			"tcp allowed.test:80", "tcp "+otherAddr+":80", "lookup other.test", "udp "+webAddr+":80 hi", "udp "+otherAddr+":80 hi")
		t.Logf("root=%v %v code %d\n%s%s", root, r.took, r.code, r.out, r.errs)
		q, d := theLab.saw()
		t.Log(q, d)
	}
}
