// Peers measures kgate and other programs that put a command into a box, side by
// side on this machine, and writes the table of README.md:
//
//	go run ./ci/peers [-n N] [-write]
//
// It installs the others through the registries that carry them, and runs each
// as an ordinary user with the settings in peers.go, which are those that each
// one's own documentation starts with, brought to the same end: this project
// writable, and, where there is a host list, one host on it. A probe is first run
// without any box, where it must succeed: that is the table's first column.
// Whatever cannot be installed or run here says so in its cell. N launches of
// "true" are timed for each (20).
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/kgate-dev/kgate/verify"
)

const (
	from = "<!-- peers -->\n"
	to   = "<!-- end of peers -->"
)

func main() {
	// The lab's machine is this program, started anew.
	if status, ok := verify.Stage(os.Args); ok {
		os.Exit(status)
	}
	n := flag.Int("n", 20, "launches to time")
	write := flag.Bool("write", false, "put the table into README.md instead of printing it")
	dir := flag.String("measure", "", "measure with what is installed in `DIR`, as this user (what this program starts itself)")
	flag.Parse()
	if err := run(*n, *write, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "ci/peers:", err)
		os.Exit(1)
	}
}

func run(n int, write bool, dir string) error {
	if dir != "" {
		table, err := measure(dir, n)
		if err != nil {
			return err
		}
		_, err = os.Stdout.WriteString(table)
		return err
	}
	// Not below a home: an ordinary user has to reach it.
	dir, err := os.MkdirTemp("", "kgate-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := install(dir); err != nil {
		return err
	}
	self := filepath.Join(dir, "peers")
	if out, err := exec.Command("go", "build", "-o", self, "./ci/peers").CombinedOutput(); err != nil {
		return fmt.Errorf("build ci/peers: %w\n%s", err, out)
	}
	// The account's own home, because some peers take no other: a scratch
	// directory lies over it while they are measured, for this program alone.
	if os.Geteuid() != 0 {
		return errors.New("this needs root, to lend an ordinary user a home; it measures as that user")
	}
	u, err := user.Lookup("kgate-test")
	if err != nil {
		return fmt.Errorf("%w (ci/test adds that user)", err)
	}
	home := filepath.Join(dir, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), exec.Command("chown", u.Uid+":"+u.Gid, home).Run()); err != nil {
		return err
	}
	argv := []string{"unshare", "--mount", "--propagation", "private", "sh", "-c", `mount --bind "$0" "$1" && shift && exec "$@"`, home, u.HomeDir,
		"env", "HOME=" + u.HomeDir, "USER=" + u.Username, "setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--init-groups", "--",
		self, "-n", fmt.Sprint(n), "-measure", dir}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = "/", os.Stderr
	table, err := cmd.Output()
	if err != nil {
		return err
	}
	if !write {
		_, err := os.Stdout.Write(table)
		return err
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	before, rest, ok := bytes.Cut(page, []byte(from))
	_, after, ok2 := bytes.Cut(rest, []byte(to))
	if !ok || !ok2 {
		return fmt.Errorf("README.md has no place for the table between %q and %q", from, to)
	}
	return os.WriteFile("README.md", bytes.Join([][]byte{before, []byte(from), table, []byte(to), after}, nil), 0o644)
}

// install brings each peer, and notes why one is not to be had: its cells say so.
func install(dir string) error {
	if out, err := exec.Command("ci/packages", "git", "bwrap=bubblewrap", "slirp4netns", "iptables", "nsenter=util-linux", "setpriv=util-linux",
		"npm", "node=nodejs", "python3", "curl", "socat", "rg=ripgrep").CombinedOutput(); err != nil {
		return fmt.Errorf("ci/packages: %w\n%s", err, out)
	}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+dir, "GOFLAGS=-mod=mod")
	for name, argv := range map[string][]string{
		"kgate":             {"go", "build", "-trimpath", "-ldflags=-s", "-o", filepath.Join(dir, "kgate"), "./cmd/kgate"},
		"sandbox-runtime":   {"npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", filepath.Join(dir, "npm"), "@anthropic-ai/sandbox-runtime@" + runtimeVersion},
		"landlock-restrict": {"go", "install", "github.com/landlock-lsm/go-landlock/cmd/landlock-restrict@" + landlockVersion},
		"firejail":          {"ci/packages", "firejail"},
	} {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			if name == "kgate" {
				return fmt.Errorf("build kgate: %w\n%s", err, out)
			}
			fmt.Fprintf(os.Stderr, "ci/peers: %s: %v: %s\n", name, err, strings.TrimSpace(string(out)))
			if err := os.WriteFile(filepath.Join(dir, name+".missing"), []byte("could not be installed here"), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
