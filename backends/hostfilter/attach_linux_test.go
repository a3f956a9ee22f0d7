package hostfilter

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

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

func self(t testing.TB) string {
	p, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// launch launches the client with the steps on the lab's machine, as an
// ordinary user unless root is set.
func launch(t testing.TB, root bool, o launchOrders, steps ...string) launched {
	t.Helper()
	o.Argv = append([]string{self(t), "client"}, steps...)
	cmd := launchCommand(t, root, o)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	cmd.Run()
	return launched{out.String(), errs.String(), cmd.ProcessState.ExitCode(), time.Since(began)}
}

func launchCommand(t testing.TB, root bool, o launchOrders) *exec.Cmd {
	t.Helper()
	o.Verbose = true
	arg, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self(t), "launch", string(arg))
	if !root {
		asUser(cmd)
	}
	return cmd
}

type finder = func(dns.Question, bool) ([]string, int, time.Duration)

// answers sets what the resolver says and forgets what it was asked.
func answers(t testing.TB, f finder) {
	t.Helper()
	theLab.mu.Lock()
	defer theLab.mu.Unlock()
	theLab.answer = f
	theLab.queries, theLab.datagram = nil, nil
}

func (l *lab) saw() (queries, datagrams string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.queries, "\n"), strings.Join(l.datagram, "\n")
}

// resolvConf sets the machine's resolv.conf for one test.
func resolvConf(t testing.TB, text string) {
	t.Helper()
	name := filepath.Join(theLab.dir, "resolv.conf")
	old, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(name, old, 0o644) })
}

// step is one thing the command does and what must come of it.
type step struct{ do, want string }

// scene is one launch and what must come of it.
type scene struct {
	name     string
	hosts    []string
	answer   finder
	resolv   string // the machine's resolv.conf; "": the lab's
	orders   launchOrders
	steps    []step
	refused  []string // what run -v says, as regular expressions
	unasked  []string // what the resolver was not asked
	unsent   []string // what no sink got
	bothWays bool     // as root as well
}

func TestScenes(t *testing.T) {
	needLab(t)
	for _, s := range scenes() {
		t.Run(s.name, func(t *testing.T) {
			for _, root := range []bool{false, true} {
				if root && !s.bothWays {
					continue
				}
				for _, p := range s.play(t, root) {
					t.Errorf("as root %v: %s", root, p)
				}
			}
		})
	}
}

// play launches a scene and returns what did not come of it as it should.
func (s scene) play(t *testing.T, root bool) (problems []string) {
	t.Helper()
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if s.answer == nil {
		s.answer = zone(abZone...)
	}
	answers(t, s.answer)
	if s.resolv != "" {
		resolvConf(t, s.resolv)
	}
	s.orders.Config.Hosts = hosts(t, s.hosts...)
	var do []string
	for _, st := range s.steps {
		do = append(do, st.do)
	}
	r := launch(t, root, s.orders, do...)
	if r.code != 0 {
		return []string{fmt.Sprintf("launch: status %d\n%s%s", r.code, r.out, r.errs)}
	}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	for i, st := range s.steps {
		_, got, _ := strings.Cut(lines[i], " => ")
		if !regexp.MustCompile(st.want).MatchString(got) {
			problem("%s: got %q, want %s", st.do, got, st.want)
		}
	}
	for _, want := range s.refused {
		if !regexp.MustCompile(want).MatchString(r.errs) {
			problem("run -v does not say %s:\n%s", want, r.errs)
		}
	}
	queries, datagrams := theLab.saw()
	for _, bad := range s.unasked {
		if strings.Contains(queries, bad) {
			problem("the resolver was asked %s:\n%s", bad, queries)
		}
	}
	for _, bad := range s.unsent {
		if strings.Contains(datagrams, bad) {
			problem("%s got out:\n%s", bad, datagrams)
		}
	}
	return problems
}
