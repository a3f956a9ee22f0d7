// Package terminal gives the command a terminal of its own when the person has
// one, and carries what is typed and what is shown between the two, masked.
//
// The command never gets the person's terminal itself: it could read what is
// typed after it, change its modes for good, and print past the mask. It gets a
// pseudo-terminal, and a small stage of kgate's own in the box makes that the
// controlling terminal of a session of its own, so that Ctrl-C, Ctrl-Z, Ctrl-\
// and a shell's job control work as without kgate.
//
// kgate takes the person's terminal (raw modes, reading keys) at once when
// stdin and stdout are terminals and kgate is in the foreground. Otherwise it
// takes it when the command first asks for it: in "kgate run -- CMD | less"
// the keys are less's. The command then starts in the background of its
// terminal, where reading stops it with SIGTTIN, and that is how it asks.
//
// Between the stage and the session go single bytes on a socket; see protocol.
// What is typed while the command has the terminal is the command's, also what
// it never reads: typing ahead for the shell is lost.
//
// The person's modes come back when the session is closed, whatever ended the
// command. Only SIGKILL of kgate itself leaves them as they are: nothing runs
// then that could restore them ("stty sane" does).
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/launcher/mask"
)

// hold is how long text that may be the start of a secret waits for more
// before its public part is shown. Programs that write a line in pieces write
// them within microseconds.
const hold = 500 * time.Microsecond

// quiet is how long nothing is printed when a command's output has settled.
const quiet = 10 * time.Millisecond

// linger is how long output of a box that is gone is awaited, when it does not
// end by itself.
const linger = 100 * time.Millisecond

// Session is the person's terminal and the command's, and what goes between.
type Session struct {
	master  *os.File // ours
	slave   *os.File // the command's
	control *os.File // ours
	stage   *os.File // the stage's end of control

	tty  *os.File // the person's terminal, for keys, modes and size
	own  bool     // tty was opened here
	out  *os.File // the person's terminal, for output
	both bool     // stdin and stdout are terminals

	mu      sync.Mutex
	saved   unix.Termios // the person's modes, when raw
	raw     bool
	wanted  bool   // the command has asked for the terminal
	started bool   // the command runs
	relayed bool   // Relay has been called
	wake    [2]int // a pipe: a byte, or its end, ends the wait for keys
	over    [2]int // a pipe: a byte asks for all output to be shown, its end says that the box is gone
	settled chan struct{}
	reading chan bool

	signals chan os.Signal
	done    chan struct{} // closed when the output has ended
	gone    chan struct{} // closed when the session is
	screen  screen
	clean   bool // the stage has reported an ordinary exit
	failure error
}

// Terminal says whether f is a terminal.
func Terminal(f *os.File) bool {
	if f == nil {
		return false
	}
	_, err := getModes(f)
	return err == nil
}

// Open makes a terminal for the command, with the size of the person's, and
// its modes when kgate is in the foreground. It returns nil and no error when none of the files is a terminal.
// The person's terminal is not touched before Relay.
func Open(in, out, errs *os.File) (*Session, error) {
	s := &Session{both: Terminal(in) && Terminal(out), gone: make(chan struct{}), settled: make(chan struct{}, 1)}
	for _, f := range []*os.File{out, errs, in} {
		if s.out == nil && Terminal(f) {
			s.out = f
		}
	}
	if s.out == nil {
		return nil, nil
	}
	s.tty = s.out
	if Terminal(in) {
		s.tty = in
	} else if f, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0); err == nil {
		s.tty, s.own = f, true
	}
	var err error
	if s.master, s.slave, err = pty.Open(); err != nil {
		s.release()
		return nil, fmt.Errorf("make a terminal for the command: %w", err)
	}
	// The command's side is blocking, as programs expect of a terminal. On ours
	// a command that does not read must not stop everything else.
	s.slave.Fd()
	syscall.SetNonblock(fd(s.master), true)
	// In the background the modes are those of whoever is in the foreground: of
	// a shell that edits its line.
	if modes, err := getModes(s.tty); err == nil && s.foreground() {
		setModes(s.slave, modes)
	}
	s.resize()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
		syscall.SetNonblock(fds[0], true)
		s.control = os.NewFile(uintptr(fds[0]), "terminal control")
		s.stage = os.NewFile(uintptr(fds[1]), "terminal control")
		if err = unix.Pipe(s.wake[:]); err == nil {
			err = unix.Pipe(s.over[:])
		}
	}
	if err != nil {
		s.release()
		return nil, fmt.Errorf("make the terminal's control socket: %w", err)
	}
	for _, n := range []int{s.wake[0], s.wake[1], s.over[0], s.over[1]} {
		syscall.CloseOnExec(n)
	}
	return s, nil
}

// Stream returns what the command gets in f's place: its terminal when f is
// one, else f.
func (s *Session) Stream(f *os.File) *os.File {
	if s != nil && Terminal(f) {
		return s.slave
	}
	return f
}

// Control is the descriptor that the stage inherits and that its first argument
// names.
func (s *Session) Control() *os.File { return s.stage }

// Relay is called when the stage has been started. It takes the terminal,
// carries what is typed and what is shown, and returns when the command's side
// is closed for good. Signals that job control and the terminal's size need
// (SIGTSTP, SIGCONT, SIGWINCH) are the session's meanwhile; all others are the
// caller's to forward to the stage, which passes them on.
func (s *Session) Relay(rules *mask.Rules) error {
	s.slave.Close()
	s.stage.Close()
	s.done = make(chan struct{})
	s.reading = make(chan bool, 1)
	s.relayed = true
	s.signals = make(chan os.Signal, 16)
	signal.Notify(s.signals, syscall.SIGCONT, syscall.SIGWINCH)
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(s.signals, syscall.SIGTSTP)
	}
	defer signal.Stop(s.signals)
	messages := make(chan [2]byte)
	go s.listen(messages)
	keys, err := unix.FcntlInt(uintptr(fd(s.master)), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return fmt.Errorf("open the command's terminal: %w", err)
	}
	go copyKeys(fd(s.tty), keys, s.wake[0], s.reading)
	loop := make(chan struct{})
	go func() {
		defer close(loop)
		s.loop(messages)
	}()
	err = s.show(rules)
	close(s.done)
	<-loop
	return err
}

// show copies the command's output to the person's terminal.
func (s *Session) show(rules *mask.Rules) error {
	w := rules.Writer(writer(fd(s.out)))
	var failed error
	// When the person's terminal is gone the command's output still has to go
	// somewhere, or the command would hang in the middle of it.
	discard := func(err error) {
		failed = s.shown(err)
		w = rules.Writer(io.Discard)
	}
	end := func() error {
		if err := w.Close(); failed == nil {
			failed = s.shown(err)
		}
		return failed
	}
	buf := make([]byte, 64<<10)
	fds := []unix.PollFd{{Fd: int32(fd(s.master)), Events: unix.POLLIN}, {Fd: int32(s.over[0]), Events: unix.POLLIN}}
	asked := false // somebody waits for the output to settle
	for {
		wait := time.Duration(-1)
		switch {
		case len(fds) == 1:
			wait = linger
		case asked:
			wait = quiet
		}
		if w.Held() {
			wait = hold
		}
		ready, err := await(fds, wait)
		switch {
		case err != nil:
			return fmt.Errorf("wait for the command's terminal: %w", err)
		case ready == 0 && w.Held():
			if err := w.Release(); err != nil {
				discard(err)
			}
			continue
		case ready == 0 && asked:
			asked = false
			select {
			case s.settled <- struct{}{}:
			default:
			}
			continue
		case ready == 0:
			return end()
		case len(fds) == 2 && fds[1].Revents != 0:
			if n, _ := unix.Read(s.over[0], make([]byte, 1)); n > 0 {
				asked = true
			} else {
				fds = fds[:1]
			}
			continue
		}
		n, err := unix.Read(int(fds[0].Fd), buf)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
		case err == unix.EIO, err == nil && n == 0:
			// EIO is how Linux says that nobody has the other side open.
			return end()
		case err != nil:
			w.Close()
			return fmt.Errorf("read the command's terminal: %w", err)
		default:
			s.screen.see(buf[:n])
			if _, err := w.Write(buf[:n]); err != nil {
				discard(err)
			}
		}
	}
}

// shown judges an error of writing to the person's terminal. A terminal that
// has gone away is not an error: SIGHUP says so to the command.
func (s *Session) shown(err error) error {
	if err == nil || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return fmt.Errorf("write to the terminal: %w", err)
}

// settle returns when what the command has printed so far has been shown, or
// after a moment when the person's terminal is slow or is gone.
func (s *Session) settle() {
	s.mu.Lock()
	end := s.over[1]
	if end != 0 {
		unix.Write(end, []byte{0})
	}
	s.mu.Unlock()
	if end == 0 {
		return
	}
	select {
	case <-s.settled:
	case <-s.done:
	case <-time.After(time.Second):
	}
}

// Drain is called when the command and all its box are gone: what is left of
// the output is shown, and Relay returns even if a stranger holds the
// command's terminal open.
func (s *Session) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	closeEnd(&s.over[1])
}

// closeEnd closes an end of a pipe, once.
func closeEnd(n *int) {
	if *n != 0 {
		unix.Close(*n)
		*n = 0
	}
}

// Failure is why the stage could not execute the command, or nil: an
// *ExecError. It is known when Relay has returned.
func (s *Session) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// Close gives the person's terminal back as it was and releases everything. It
// may be called at any time, and again.
func (s *Session) Close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.giveBack()
	if s.master != nil && !s.clean {
		// Killed in the middle of a full screen: no program is left to undo it.
		if undo := s.screen.undo(); undo != "" {
			writer(fd(s.out)).Write([]byte(undo))
		}
	}
	s.release()
	return err
}

// release closes what is open.
func (s *Session) release() {
	for _, f := range []**os.File{&s.master, &s.slave, &s.control, &s.stage} {
		if *f != nil {
			(*f).Close()
			*f = nil
		}
	}
	select {
	case <-s.gone:
	default:
		close(s.gone)
	}
	if s.own {
		s.tty.Close()
		s.own = false
	}
	closeEnd(&s.over[1])
	closeEnd(&s.over[0])
	if s.reading != nil { // keys has the other end of wake
		close(s.reading)
		s.reading = nil
	} else if !s.relayed {
		closeEnd(&s.wake[0])
	}
	closeEnd(&s.wake[1])
}
