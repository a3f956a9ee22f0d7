//go:build linux

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/verify/lab"
)

func main() {
	if status, ok := lab.Stage(os.Args); ok {
		os.Exit(status)
	}
	if len(os.Args) == 3 && os.Args[1] == stageName {
		os.Exit(stage(os.Args[2]))
	}
	claude := flag.Bool("claude", false, "Claude Code as well")
	only := flag.String("only", "", "these harnesses alone: `NAME,...`")
	keep := flag.Bool("keep", false, "leave the homes and projects behind, and say where")
	out := flag.String("o", "docs/harnesses.md", "the `FILE` to write")
	work := flag.String("work", "", "for its own use")
	flag.Parse()
	var chosen []*program
	for _, p := range programs {
		if *only == "" && (p.free || *claude) || slices.Contains(strings.Split(*only, ","), p.name) {
			chosen = append(chosen, p)
		}
	}
	err := error(nil)
	switch {
	case flag.NArg() > 0 || len(chosen) == 0:
		err = fmt.Errorf("usage: go run ./ci/harness [-claude] [-only NAME,...] [-keep] [-o FILE]")
	case *work != "":
		err = drive(*work, chosen)
	default:
		err = prepare(chosen, *out, *keep)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "ci/harness: %v\n", err)
		os.Exit(1)
	}
}

// prepare installs and builds, has the runs made by an ordinary user, and
// writes down what they found.
func prepare(chosen []*program, out string, keep bool) error {
	tools := exec.Command("ci/packages", "git", "bwrap=bubblewrap", "slirp4netns", "iptables",
		"ip=iproute2:iproute:iproute2:iproute2:iproute2", "nsenter=util-linux", "node=nodejs", "npm")
	tools.Stdout, tools.Stderr = os.Stderr, os.Stderr
	if err := tools.Run(); err != nil {
		return fmt.Errorf("ci/packages: %w (run this in the root of the repository)", err)
	}
	for _, p := range chosen {
		if err := p.install(); err != nil {
			return err
		}
	}
	// Not below $TMPDIR, which may be closed to others.
	work, err := os.MkdirTemp("/var/tmp", "kgate-harness-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Fprintf(os.Stderr, "kept: %s\n", work)
	} else {
		defer os.RemoveAll(work)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", filepath.Join(bin, "kgate"), "./cmd/kgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build kgate: %w (run this in the root of the repository)", err)
	}
	if err := os.Symlink("kgate", filepath.Join(bin, "kgate-sh")); err != nil {
		return err
	}
	if err := copyFile(self, filepath.Join(bin, "harness"), 0o755); err != nil {
		return err
	}
	var names []string
	for _, p := range chosen {
		names = append(names, p.name)
	}
	cmd := exec.Command(filepath.Join(bin, "harness"), "-only", strings.Join(names, ","), "-work", work)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", cacheVariable + "=" + cache()}
	if err := ordinary(cmd, work); err != nil {
		return err
	}
	if err := cmd.Run(); err != nil {
		return err
	}
	if err := remember(filepath.Join(work, resultsName), chosen); err != nil {
		return err
	}
	return report(out)
}

// ordinary has a command run by an ordinary user, who gets the directory.
func ordinary(cmd *exec.Cmd, dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil || os.Geteuid() != 0 {
		return err
	}
	const name = "kgate-test"
	u, err := user.Lookup(name)
	if err != nil {
		fmt.Fprintf(os.Stderr, "ci/harness: adding the ordinary user %s\n", name)
		if err := exec.Command("useradd", "--create-home", "--shell", "/bin/sh", name).Run(); err != nil {
			return fmt.Errorf("add the user %s: %w", name, err)
		}
		if u, err = user.Lookup(name); err != nil {
			return err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	for i, e := range cmd.Env {
		if strings.HasPrefix(e, "HOME=") {
			cmd.Env[i] = "HOME=" + u.HomeDir
		}
	}
	return os.Chown(dir, int(uid), int(gid))
}

func copyFile(from, to string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, mode)
}
