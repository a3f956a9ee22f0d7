package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// bench is a place to measure in: a home and a project of their own, owned by
// an ordinary user.
type bench struct {
	kgate, empty string
	home         string
	dir, bare    string // projects: kgate's, and the plain command lines'
	root         string
	rounds       int
	whole        bool // what takes minutes too
	cred         *syscall.Credential
}

func newBench(kgate, account string, rounds int) (*bench, error) {
	root, err := os.MkdirTemp("", "kgate-bench")
	if err != nil {
		return nil, err
	}
	b := &bench{
		root: root, rounds: rounds, kgate: kgate,
		empty: filepath.Join(root, "empty"),
		home:  filepath.Join(root, "home"),
		dir:   filepath.Join(root, "project"),
		bare:  filepath.Join(root, "bare"),
	}
	if err := b.fill(account); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) fill(account string) error {
	for _, dir := range []string{b.home, b.dir, b.bare} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	src := filepath.Join(b.root, "empty.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err
	}
	if err := build(b.empty, src); err != nil {
		return fmt.Errorf("build an empty program: %w", err)
	}
	if b.kgate == "" {
		b.kgate = filepath.Join(b.root, "kgate")
		if err := build(b.kgate, "./cmd/kgate"); err != nil {
			return fmt.Errorf("build kgate: %w", err)
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(account)
	if err != nil {
		return fmt.Errorf("an ordinary user to measure as: %w (ci/test adds kgate-test, or name one with -user)", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	b.cred = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	for _, p := range []string{b.root, b.home, b.dir, b.bare} {
		if err := os.Chown(p, uid, gid); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) close() { os.RemoveAll(b.root) }

// command runs argv in a directory as the bench's user.
func (b *bench) command(dir string, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + b.home, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.cred}
	return cmd
}

// plan is one thing to time.
type plan struct {
	name string
	dir  string
	argv []string
	home string // "": the bench's own
	// status is what it ends with when all is right.
	status int
	// terminal: it has one, in place of no input and no output.
	terminal bool
}

// side is what was measured of one plan; milliseconds.
type side struct {
	Name   string  `json:"name"`
	Median float64 `json:"median_ms"`
	Q1     float64 `json:"q1_ms"`
	Q3     float64 `json:"q3_ms"`
	Rounds int     `json:"rounds"`
	times  []float64
}

// alternate runs every plan once a round, in an order that turns with the
// round, after two rounds that do not count.
func (b *bench) alternate(plans ...plan) ([]side, error) {
	sides := make([]side, len(plans))
	for i, p := range plans {
		sides[i].Name = p.name
	}
	for round := -2; round < b.rounds; round++ {
		for k := range plans {
			i := (k + round + len(plans)*2) % len(plans)
			cmd := b.command(plans[i].dir, plans[i].argv...)
			if plans[i].home != "" {
				cmd.Env[0] = "HOME=" + plans[i].home
			}
			var words bytes.Buffer
			start := time.Now()
			var took time.Duration
			var err error
			if plans[i].terminal {
				took, err = b.timeInTerminal(cmd)
			} else {
				cmd.Stderr = &words
				err = cmd.Run()
				took = time.Since(start)
			}
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != plans[i].status {
				return nil, fmt.Errorf("%s: %w: %s", plans[i].name, err, bytes.TrimSpace(words.Bytes()))
			}
			if round >= 0 {
				sides[i].times = append(sides[i].times, milliseconds(took))
			}
		}
	}
	for i := range sides {
		sides[i] = summary(sides[i].Name, sides[i].times)
	}
	return sides, nil
}

// summary is the median and the quartiles of times in milliseconds.
func summary(name string, times []float64) side {
	t := slices.Sorted(slices.Values(times))
	return side{Name: name, Rounds: len(t), Q1: t[len(t)/4], Median: t[len(t)/2], Q3: t[len(t)*3/4]}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
