package hostfilter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
)

// Probe makes the whole filter around a throwaway box and returns doctor's rows
// about it. bwrap is bubblewrap's path. The box's command is never released.
func Probe(c Config, bwrap string) []backends.Finding {
	if c.Tools.Slirp == "" && c.Tools.Nsenter == "" && len(c.Tools.Restore) == 0 {
		c.Tools = FindTools(OnPath)
	}
	rows := []backends.Finding{
		probeSlirp(c), probeTun(), probeEnter(c.Tools),
		probeRestore(RowFilter, c.Tools.Restore, true),
		probeRestore(RowFilter6, c.Tools.Restore6, c.IPv6),
		probeResolver(c),
	}
	for _, r := range rows {
		if r.Status == backends.Blocked {
			return rows
		}
	}
	err := tryAttach(c, bwrap)
	if err == nil {
		return append(rows, backends.Finding{
			Row: RowAttach, Status: backends.Ready,
			Reason: fmt.Sprintf("a throwaway box was filtered, and each listed name resolves in it; %s", sharedAddresses),
		})
	}
	f := asFault(err)
	row := backends.Finding{Row: f.Row, Status: backends.Blocked, Reason: f.Err.Error(), Mend: f.Mend}
	for i := range rows {
		if rows[i].Row == f.Row {
			rows[i] = row
			return rows
		}
	}
	return append(rows, row)
}

// sharedAddresses is what a filter of addresses cannot do.
const sharedAddresses = "a name that shares its address with a listed one can be reached by that address"

func blocked(row, mend, format string, args ...any) backends.Finding {
	return backends.Finding{Row: row, Status: backends.Blocked, Reason: fmt.Sprintf(format, args...), Mend: mend}
}

func probeSlirp(c Config) backends.Finding {
	if c.Tools.Slirp == "" {
		return blocked(RowSlirp, "install the package slirp4netns", "not installed")
	}
	version, err := ask(c.Tools.Slirp, "--version")
	if err != nil {
		return blocked(RowSlirp, "install the package slirp4netns again", "%s --version: %v", c.Tools.Slirp, err)
	}
	help, _ := ask(c.Tools.Slirp, "--help")
	for _, arg := range slirpArgs(c) {
		option, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(option, "--") && !strings.Contains(help, option) {
			return blocked(RowSlirp, "install slirp4netns 0.4 or later", "%s has no option %s: it is too old", words(firstLine(version)), option)
		}
	}
	reason := words(firstLine(version))
	for line := range strings.Lines(version) {
		if strings.HasPrefix(line, "libslirp:") {
			reason += ", " + strings.TrimSpace(line)
		}
	}
	return backends.Finding{Row: RowSlirp, Status: backends.Ready, Reason: reason}
}

// probeTun opens the device: that it is there does not say that it may be used
// (rootless-containers/slirp4netns#283).
func probeTun() backends.Finding {
	const name = "/dev/net/tun"
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		mend := mendTun
		if errors.Is(err, unix.ENOENT) {
			mend = "load the module tun, or make the device: sudo modprobe tun; sudo mkdir -p /dev/net && sudo mknod -m 666 /dev/net/tun c 10 200"
		}
		return blocked(RowTun, mend, "open %s: %v", name, err)
	}
	unix.Close(fd)
	return backends.Finding{Row: RowTun, Status: backends.Ready, Reason: "opens for reading and writing"}
}

func probeEnter(t Tools) backends.Finding {
	if t.Nsenter == "" {
		return blocked(RowEnter, "install the package util-linux", "not installed")
	}
	version, err := ask(t.Nsenter, "--version")
	if err != nil {
		return blocked(RowEnter, "install the package util-linux", "%s --version: %v", t.Nsenter, err)
	}
	return backends.Finding{Row: RowEnter, Status: backends.Ready, Reason: words(firstLine(version))}
}

func probeRestore(row string, progs []string, needed bool) backends.Finding {
	if len(progs) == 0 {
		if !needed {
			return backends.Finding{Row: row, Status: backends.Ready, Reason: "not installed: IPv6 is turned off in the box by its setting disable_ipv6"}
		}
		return blocked(row, "install the package iptables", "%s-restore is not installed", row)
	}
	var versions []string
	for _, p := range progs {
		if v, err := ask(p, "--version"); err == nil {
			v = words(firstLine(v))
			if len(versions) == 0 || versions[len(versions)-1] != v {
				versions = append(versions, v)
			}
		}
	}
	if len(versions) == 0 && needed {
		return blocked(row, "install the package iptables again", "%s --version fails", progs[0])
	}
	return backends.Finding{Row: row, Status: backends.Ready, Reason: strings.Join(versions, ", else ")}
}

func probeResolver(c Config) backends.Finding {
	at, err := c.Resolver.reach(c.IPv6)
	switch {
	case err != nil && !c.looksUp():
		return backends.Finding{Row: RowResolver, Status: backends.Ready, Reason: "not needed: only addresses are listed"}
	case err != nil:
		return blocked(RowResolver, mendResolver, "%v", err)
	case at == DNS6:
		return backends.Finding{Row: RowResolver, Status: backends.Ready, Reason: c.Resolver.V6.String()}
	}
	return backends.Finding{Row: RowResolver, Status: backends.Ready, Reason: c.Resolver.V4.String()}
}

// ask runs a tool that prints something about itself.
func ask(prog string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, prog, args...)
	cmd.Env = helperEnv
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// tryAttach makes the filter around a box that is never released.
func tryAttach(c Config, bwrap string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	holdR, holdW, err := os.Pipe()
	if err != nil {
		w.Close()
		return err
	}
	defer holdW.Close()
	box, err := start("bubblewrap", command{env: os.Environ(), files: []*os.File{w, holdR},
		argv: []string{bwrap, "--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--die-with-parent",
			"--ro-bind", "/", "/", "--dev", "/dev", "--info-fd", "3", "--block-fd", "4", "--", "/bin/false"}})
	w.Close()
	holdR.Close()
	if err != nil {
		return err
	}
	defer box.end()
	r.SetReadDeadline(time.Now().Add(filterTimes.Attach))
	var info struct {
		Pid int `json:"child-pid"`
	}
	if err := json.NewDecoder(r).Decode(&info); err != nil || info.Pid <= 0 {
		return fault(RowAttach, "", "no throwaway box could be made: %s", words(box.stderr.String()))
	}
	defer syscall.Kill(info.Pid, syscall.SIGKILL)
	c.Verbose = nil
	f, err := Attach(context.Background(), c, info.Pid)
	if err != nil {
		return err
	}
	f.Close()
	return nil
}
