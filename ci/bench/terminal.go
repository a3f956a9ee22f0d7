package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
)

func init() { suites["terminal"] = echoes }

// typist is a terminal with a command in it.
type typist struct {
	terminal *os.File
	cmd      *exec.Cmd
}

// inTerminal gives a command a terminal of its own, to be started. The caller closes
// both ends: the second once it is started.
func (b *bench) inTerminal(cmd *exec.Cmd) (master, slave *os.File, err error) {
	if master, slave, err = pty.Open(); err != nil {
		return nil, nil, err
	}
	if err := b.own(slave.Name(), nil); err != nil {
		master.Close()
		slave.Close()
		return nil, nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	return master, slave, nil
}

// timeInTerminal runs a command in a terminal and says how long it took.
func (b *bench) timeInTerminal(cmd *exec.Cmd) (time.Duration, error) {
	master, slave, err := b.inTerminal(cmd)
	if err != nil {
		return 0, err
	}
	defer master.Close()
	go io.Copy(io.Discard, master) // ends with the last that has the other end
	start := time.Now()
	err = cmd.Start()
	slave.Close()
	if err == nil {
		err = cmd.Wait()
	}
	return time.Since(start), err
}

func (b *bench) typist(argv ...string) (*typist, error) {
	cmd := b.command(b.dir, argv...)
	master, slave, err := b.inTerminal(cmd)
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := cmd.Start(); err != nil {
		master.Close()
		return nil, err
	}
	t := &typist{master, cmd}
	if _, err := t.until("ready"); err != nil {
		t.end()
		return nil, err
	}
	time.Sleep(200 * time.Millisecond) // what follows "ready" is not measured
	return t, nil
}

func (t *typist) end() {
	t.terminal.Close() // hangs up
	timer := time.AfterFunc(5*time.Second, func() { t.cmd.Process.Signal(syscall.SIGKILL) })
	t.cmd.Wait()
	timer.Stop()
}

// until reads up to a text and says how long that took.
func (t *typist) until(text string) (time.Duration, error) {
	start := time.Now()
	var all []byte
	buf := make([]byte, 4096)
	for !bytes.Contains(all, []byte(text)) {
		n, err := t.terminal.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil {
			return 0, fmt.Errorf("waited for %q: %w after %q", text, err, all)
		}
	}
	return time.Since(start), nil
}

// echoes compares how long a key takes to its echo, in a terminal of kgate's and
// in a plain one: when the program prints it, as an editor or a prompt does, and
// when the terminal itself does.
func echoes(b *bench) (result, error) {
	out := result{Suite: "terminal"}
	for _, way := range []struct{ name, script, key string }{
		{"by the program", "stty raw -echo; echo ready; exec cat", "q"},
		{"by the terminal", "stty -icanon; echo ready; exec cat >/dev/null", "q"},
		{"by the program, of a secret's first", "stty raw -echo; echo ready; exec cat", "\ng"},
	} {
		var both [2]*typist
		for i, argv := range [][]string{
			{b.kgate, "run", "--network", "off", "--", "sh", "-c", way.script},
			{"sh", "-c", way.script},
		} {
			t, err := b.typist(argv...)
			if err != nil {
				return out, err
			}
			defer t.end()
			both[i] = t
		}
		var times [2][]float64
		for round := -5; round < b.rounds*5; round++ {
			for k := range both {
				i := (k + round + 10) % 2
				start := time.Now()
				if _, err := both[i].terminal.WriteString(way.key); err != nil {
					return out, err
				}
				if _, err := both[i].until(way.key); err != nil {
					return out, err
				}
				if round >= 0 {
					times[i] = append(times[i], milliseconds(time.Since(start)))
				}
			}
		}
		kgate, plain := summary("echo "+way.name+", kgate", times[0]), summary("echo "+way.name+", plain", times[1])
		out.Sides = append(out.Sides, kgate, plain)
		out.Notes = append(out.Notes, fmt.Sprintf("echo %s: %.2f ms later", way.name, kgate.Median-plain.Median))
	}
	return out, nil
}
