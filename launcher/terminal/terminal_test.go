package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/kgate-dev/kgate/launcher/mask"
	"github.com/kgate-dev/kgate/launcher/terminal/tmux"
)

// The test's own file is both programs: the one outside, which launches a
// command with a terminal, and the stage.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "stage":
			os.Exit(Stage(os.Args[2:]))
		case "launch":
			os.Exit(launch(os.Args[2:]))
		}
	}
	os.Exit(m.Run())
}

// launch does what kgate run does, without a box.
func launch(argv []string) int {
	status, err := launchErr(argv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "launch: %v\n", err)
	}
	return status
}

func launchErr(argv []string) (int, error) {
	rules, err := mask.Compile(nil, nil)
	if err != nil {
		return 125, err
	}
	s, err := Open(os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		return 125, err
	}
	if s == nil {
		return 125, errors.New("no terminal")
	}
	defer s.Close()
	cmd := exec.Command("/proc/self/exe", append([]string{"stage", "3"}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stream(os.Stdin), s.Stream(os.Stdout), s.Stream(os.Stderr)
	cmd.ExtraFiles = []*os.File{s.Control()}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := cmd.Start(); err != nil {
		return 125, err
	}
	go func() {
		for sig := range signals {
			cmd.Process.Signal(sig)
		}
	}()
	relayed := make(chan error, 1)
	go func() { relayed <- s.Relay(rules) }()
	cmd.Wait()
	s.Drain()
	if err := <-relayed; err != nil {
		return 125, err
	}
	if err := s.Failure(); err != nil {
		s.Close()
		return err.(*ExecError).ExitStatus(), err
	}
	return cmd.ProcessState.ExitCode(), s.Close()
}

// newScreen is a shell in which L launches without a box.
func newScreen(t *testing.T) *tmux.Screen {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return tmux.New(t, self+" launch")
}
