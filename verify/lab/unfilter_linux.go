package lab

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// unfilter empties the packet filters of all boxes, in whichever of iptables'
// two ways they were made.
func (w *watch) unfilter() error {
	w.looking.Lock()
	defer w.looking.Unlock()
	if len(w.taps) == 0 {
		return errors.New("lab: there is no box")
	}
	for _, t := range w.taps {
		if err := inNamespace(int(t.net.Fd()), empty); err != nil {
			return fmt.Errorf("lab: %w", err)
		}
	}
	return nil
}

// empty empties the packet filters of the calling thread's network namespace. A
// child has the thread's namespace and, unlike the person's, its capabilities.
func empty() error {
	worked := false
	var failed []error
	for _, name := range []string{"iptables-nft-restore", "iptables-legacy-restore", "iptables-restore",
		"ip6tables-nft-restore", "ip6tables-legacy-restore", "ip6tables-restore"} {
		for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/usr/local/sbin"} {
			file := filepath.Join(dir, name)
			if unix.Access(file, unix.X_OK) != nil {
				continue
			}
			cmd := exec.Command(file)
			cmd.Env = []string{"XTABLES_LOCKFILE=/dev/null"}
			cmd.Stdin = strings.NewReader("*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n")
			out, err := cmd.CombinedOutput()
			worked = worked || err == nil
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w: %s", file, err, strings.TrimSpace(string(out))))
			}
			break
		}
	}
	if !worked {
		return errors.Join(append(failed, errors.New("no iptables emptied the filter"))...)
	}
	return nil
}
