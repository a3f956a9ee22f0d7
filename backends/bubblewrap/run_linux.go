package bubblewrap

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// listen reads bwrap's status stream: one JSON object a line, the first with the
// first process in the box, the last with the command's status if it ran.
func (p *box) listen(status *os.File, born chan<- int) {
	defer status.Close()
	defer close(born)
	lines := bufio.NewScanner(status)
	for lines.Scan() {
		var s struct {
			Child int  `json:"child-pid"`
			Exit  *int `json:"exit-code"`
		}
		if json.Unmarshal(lines.Bytes(), &s) != nil {
			continue
		}
		if s.Child > 0 && p.init == 0 {
			fd, err := unix.PidfdOpen(s.Child, 0)
			if err != nil {
				fd = -1
			}
			p.mu.Lock()
			p.init, p.initFD = s.Child, fd
			end := p.killed || p.ended != 0
			p.mu.Unlock()
			if end {
				p.killInit()
			}
			born <- s.Child
		}
		if s.Exit != nil {
			p.mu.Lock()
			first := p.code == nil
			p.code = s.Exit
			p.mu.Unlock()
			if first {
				close(p.over)
			}
		}
	}
}

// run sees the box through to its end and then cleans up.
func (p *box) run(b *Backend, o *own, plan *backends.Plan, release *os.File, born <-chan int, listened <-chan struct{}) {
	defer close(p.done)
	var failed error
	var closing sync.WaitGroup
	if pid, ok := <-born; ok {
		if plan.Network.Value == policy.Restricted {
			var filter *hostfilter.Filter
			if filter, failed = p.attach(b, plan, o.Tools, pid); filter != nil {
				// It takes the kernel some milliseconds to remove the device, so that
				// begins as soon as the command has ended; what of it is still there has no
				// network from then on, and ends with the box.
				closing.Go(func() {
					select {
					case <-p.over:
					case <-p.ctx.Done():
					}
					filter.Close()
				})
			}
		}
		whole := false
		var covers *keeper
		if failed == nil {
			covers = p.watch(plan)
			whole, failed = p.look(plan, pid)
		}
		// Anything else than this byte must not be: the end of the file alone
		// releases the command too.
		if whole && p.ctx.Err() == nil {
			release.Write([]byte{1})
			go p.keep(covers, pid)
		} else if covers != nil {
			covers.close()
		}
		if failed != nil {
			p.end()
		}
	}
	abandoned := p.abandoned()
	state, werr := wait(p.bwrap)
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	<-listened
	p.waitInit()
	p.cancel()
	release.Close()
	words := p.voice.finish(func() bool { return p.code != nil })
	herr := p.held.release()
	closing.Wait()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	switch {
	case failed != nil:
		p.err = failed
	case p.lost != "":
		p.err = &LostError{p.lost}
	case p.buried:
		p.exit = backends.Exit{Signal: p.ended}
	case p.code != nil:
		p.exit = backends.Exit{Code: *p.code}
	case p.ended != 0:
		p.exit = backends.Exit{Signal: p.ended}
	case werr != nil:
		p.err = fmt.Errorf("wait for bwrap: %w", werr)
	case p.killed:
		p.exit = backends.Exit{Signal: syscall.SIGKILL}
	case p.sent != 0 && state.ExitStatus() == backends.Exit{Signal: p.sent}.Status():
		// The process that was to become the command has died of the signal before
		// it became that, so bwrap does not speak of a command's end.
		p.exit = backends.Exit{Signal: p.sent}
	default:
		if abandoned {
			p.err = &EndedError{state.Signal()}
		} else {
			p.err = launchError(words, fmt.Sprintf("exit status %d", state.ExitStatus()), p.command)
		}
	}
	if herr != nil && b.Warnings != nil {
		// The command has run; that is not undone by what could not be removed.
		fmt.Fprintf(b.Warnings, "kgate: clean up after the launch: %v\n", herr)
	}
}

// abandoned waits until bwrap has ended, and says whether a signal ended it. Its
// first process in the box asks to die with it only late, so what is left of
// bwrap's process group is ended here, while nobody else can have its number.
func (p *box) abandoned() bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, p.bwrap, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return false
		}
	}
	if info.Code != cldKilled && info.Code != cldDumped {
		return false
	}
	syscall.Kill(-p.bwrap, syscall.SIGKILL)
	return true
}

// Of siginfo_t (sigaction(2)): how a child ended.
const (
	cldKilled = 2
	cldDumped = 3
)

// attach puts the host filter around the box's network namespace.
func (p *box) attach(b *Backend, plan *backends.Plan, tools hostfilter.Tools, pid int) (*hostfilter.Filter, error) {
	resolver, err := hostfilter.HostResolver()
	if err != nil {
		return nil, err
	}
	c := filterConfig(plan, tools)
	c.Resolver, c.Verbose = resolver, b.Verbose
	f, err := hostfilter.Attach(p.ctx, c, pid)
	if err != nil {
		if p.ctx.Err() != nil {
			return nil, nil // asked to end; how is known elsewhere
		}
		return nil, err
	}
	go func() {
		select {
		case err := <-f.Done():
			if b.Warnings != nil {
				fmt.Fprintf(b.Warnings, "kgate: %v\n", err)
			}
		case <-p.ctx.Done():
		}
	}()
	return f, nil
}

// waitInit waits until the first process in the box is gone, and with it every
// other: bwrap itself ends a moment earlier.
func (p *box) waitInit() {
	if p.initFD < 0 {
		return
	}
	fds := []unix.PollFd{{Fd: int32(p.initFD), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			break
		}
	}
	p.mu.Lock()
	unix.Close(p.initFD)
	p.initFD = -1
	p.mu.Unlock()
}

// Wait returns how the command ended; see [backends.Process].
func (p *box) Wait() (backends.Exit, error) {
	<-p.done
	return p.exit, p.err
}

// end kills the whole box. While bwrap is making it, its two processes would
// survive each other, so it is the process group that is killed.
func (p *box) end() {
	p.cancel()
	p.killInit()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.bwrap, syscall.SIGKILL)
	}
}

func (p *box) killInit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.initFD >= 0 {
		unix.PidfdSendSignal(p.initFD, unix.SIGKILL, nil, 0)
	}
}

// Kill ends the whole box at once.
func (p *box) Kill() error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	p.end()
	return nil
}

// child returns the command's own process, 0 when there is none (yet). It is the
// first child of the first process in the box; what is orphaned there comes
// after it.
func (p *box) child() int {
	p.mu.Lock()
	init := p.init
	p.mu.Unlock()
	if init == 0 {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", init, init))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	pid, _ := strconv.Atoi(first)
	return pid
}

// running says whether the command has been executed, as far as one can tell.
func (p *box) running() bool {
	pid := p.child()
	if pid == 0 {
		return false
	}
	p.mu.Lock()
	init := p.init
	p.mu.Unlock()
	// Until then it is called what bwrap's first process is called.
	was, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", init))
	if err != nil {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && string(name) != string(was)
}

// burial is how long the box may be there when its command is not.
const burial = 3 * time.Second

// oversee ends the box when the command has died and bwrap, stopped by somebody
// or stuck, does not tell: whoever sent a signal waits for an end.
func (p *box) oversee(pid int) {
	tick := time.NewTicker(burial / 10)
	defer tick.Stop()
	for dead := 0; dead < 10; {
		select {
		case <-p.done:
			return
		case <-tick.C:
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, after, _ := strings.Cut(string(stat), ") ")
		if dead++; err == nil && !strings.HasPrefix(after, "Z") {
			dead = 0
		}
	}
	p.mu.Lock()
	if p.stopped {
		p.mu.Unlock() // how it ended is being said
		return
	}
	if p.ended == 0 {
		p.ended = p.sent
	}
	// What bwrap says from here on is of its box's end, not of the command's.
	p.buried = p.code == nil
	p.mu.Unlock()
	p.end()
}

// Signal delivers to the command's own process.
func (p *box) Signal(sig os.Signal) error {
	s, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal %v: not a signal of this system", sig)
	}
	p.mu.Lock()
	over := p.stopped || p.code != nil
	p.mu.Unlock()
	if over {
		return os.ErrProcessDone
	}
	if pid := p.child(); pid != 0 {
		p.mu.Lock()
		first := p.sent == 0
		p.sent = s
		p.mu.Unlock()
		if first {
			go p.oversee(pid)
		}
		return syscall.Kill(pid, s)
	}
	switch s {
	case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSTOP, syscall.SIGCONT,
		syscall.SIGCHLD, syscall.SIGURG, syscall.SIGWINCH:
		return nil // do not end a program that has not said otherwise
	}
	p.mu.Lock()
	if p.ended == 0 {
		p.ended = s
	}
	p.mu.Unlock()
	p.end()
	return nil
}
