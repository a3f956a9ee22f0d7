package terminal

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The protocol between the session and the stage. Each message of the stage is
// two bytes, each of the session one. The command can reach the stage, so its
// messages are not believed further than a command may go anyway: it can stop,
// and it can end.
const (
	msgReady   = 'R' // the terminal is the stage's, the command may start; and 0
	msgStarted = 'S' // the command has started; and 0
	msgStopped = 'Z' // and the signal that stopped the command
	msgExited  = 'E' // the command has ended by itself; and 0
	msgFailed  = 'X' // the command could not be executed; and the error number

	msgForeground = 'f' // start, or go on, in the foreground of the terminal
	msgBackground = 'b' // the same in the background
	msgStop       = 't' // stop, as Ctrl-Z does
	msgHangUp     = 'h' // the terminal that was asked for is not to be had
)

// listen reads the stage's messages until it is gone.
func (s *Session) listen(messages chan<- [2]byte) {
	defer close(messages)
	control := s.control
	var m [2]byte
	for n := 0; ; {
		k, err := control.Read(m[n:])
		if n += k; n == len(m) {
			select {
			case messages <- m:
			case <-s.gone:
				return
			}
			n = 0
		}
		if err != nil {
			return
		}
	}
}

// loop handles messages and signals until the output has ended.
func (s *Session) loop(messages <-chan [2]byte) {
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				break
			}
			s.message(m)
		case sig := <-s.signals:
			switch sig {
			case syscall.SIGWINCH:
				s.resize()
			case syscall.SIGTSTP:
				s.tell(msgStop)
			case syscall.SIGCONT:
				s.continued()
			}
		case <-s.done:
			// The stage's last message may still be on its way.
			timer := time.NewTimer(linger)
			defer timer.Stop()
			for messages != nil {
				select {
				case m, ok := <-messages:
					if !ok {
						return
					}
					if m[0] == msgExited || m[0] == msgFailed {
						s.message(m)
					}
				case <-timer.C:
					return
				}
			}
			return
		}
	}
}

func (s *Session) message(m [2]byte) {
	switch m[0] {
	case msgReady:
		s.resume()
		return
	case msgStopped:
		s.stopped(syscall.Signal(m[1]))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m[0] {
	case msgStarted:
		s.started = true
		s.read(s.raw)
	case msgExited:
		s.clean = true
	case msgFailed:
		s.clean = true
		s.failure = &ExecError{Errno: syscall.Errno(m[1])}
	}
}

// tell sends the stage a message. A stage that is gone needs none.
func (s *Session) tell(m byte) { s.control.Write([]byte{m}) }

// foreground says whether kgate may use the person's terminal now.
func (s *Session) foreground() bool {
	group, err := unix.IoctlGetInt(fd(s.tty), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// take puts the person's terminal into raw modes and starts reading keys. It
// says whether the command is now in the foreground.
func (s *Session) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master == nil || !(s.both || s.wanted) || !s.foreground() {
		return false
	}
	if !s.raw {
		modes, err := getModes(s.tty)
		if err != nil {
			return false
		}
		s.saved = modes
		s.raw = true
	}
	// Other programs of a pipeline may print to the same terminal: when stdout
	// is not one, line feeds go on being translated.
	setModes(s.tty, rawModes(s.saved, !s.both))
	// A key that comes before the command would interrupt nobody: it waits.
	s.read(s.started)
	return true
}

// giveBack restores the person's modes if they are ours. The caller has the
// lock.
func (s *Session) giveBack() error {
	s.read(false)
	if !s.raw {
		return nil
	}
	s.raw = false
	return setModes(s.tty, s.saved)
}

// resume starts the command, or lets it go on.
func (s *Session) resume() {
	s.resize()
	if s.take() {
		s.tell(msgForeground)
	} else {
		s.tell(msgBackground)
	}
}

// stopped is called when the command has stopped. If it stopped for want of
// the terminal and kgate can have it, it gets it. Otherwise kgate stops as well,
// with its whole group, as if the key had been typed to it, and lets the
// command go on when it is continued.
func (s *Session) stopped(sig syscall.Signal) {
	asks := sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
	s.mu.Lock()
	if asks {
		s.wanted = true
	}
	if asks && s.foreground() {
		s.mu.Unlock()
		s.resume()
		return
	}
	s.mu.Unlock()
	// What a program prints before it stops, as an editor does to leave its
	// screen, comes before the shell's prompt.
	s.settle()
	s.mu.Lock()
	s.giveBack()
	s.mu.Unlock()

	if !asks {
		sig = syscall.SIGTSTP
	}
	for len(s.signals) > 0 {
		<-s.signals
	}
	stopGroup(sig)
	// Stopped here, until somebody continues the group. In an orphaned group,
	// where nobody could, the kernel discards the signal: then the command goes
	// on at once, or learns that the terminal is not to be had.
	timer := time.NewTimer(linger)
	defer timer.Stop()
	alone := false
	for waiting := true; waiting; {
		select {
		case got := <-s.signals:
			waiting = got != syscall.SIGCONT
		case <-timer.C:
			// Both are ready when the stop was long.
			waiting, alone = !alone, true
			timer.Reset(linger)
		case <-s.done:
			return
		}
	}
	if alone && asks && !s.foreground() {
		s.tell(msgHangUp)
	}
	s.resume()
}

// continued is called on SIGCONT that did not follow a stop of the command's:
// somebody stopped kgate itself. The shell may have changed the modes since.
func (s *Session) continued() {
	if !s.foreground() {
		s.mu.Lock()
		s.read(false)
		s.raw = false
		s.mu.Unlock()
	}
	s.resume()
}

// resize gives the command's terminal the size of the person's. The kernel
// tells the command.
func (s *Session) resize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master == nil {
		return
	}
	for _, f := range []int{fd(s.out), fd(s.tty)} {
		if size, err := unix.IoctlGetWinsize(f, unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			raw, err := s.master.SyscallConn()
			if err == nil {
				raw.Control(func(m uintptr) { unix.IoctlSetWinsize(int(m), unix.TIOCSWINSZ, size) })
			}
			return
		}
	}
}
