package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func init() {
	suites["parts"] = parts
}

// parts takes a launch apart, with and without a network.
func parts(b *bench) (result, error) {
	dir, err := os.MkdirTemp(b.root, "parts")
	if err != nil {
		return result{}, err
	}
	list, err := overlay(dir)
	if err != nil {
		return result{}, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return result{}, err
	}
	whole := b.kgate
	defer func() { b.kgate = whole }()
	b.kgate = filepath.Join(dir, "kgate")
	if err := build(b.kgate, "./cmd/kgate", "-overlay", list); err != nil {
		return result{}, fmt.Errorf("build kgate with marks: %w", err)
	}
	sides, err := b.apart(without, b.home, b.dir, []string{b.kgate, "run", "--network", "off", "--", "true"})
	if err != nil {
		return result{}, err
	}
	more, err := b.inLab(order{Parts: true})
	return result{Suite: "parts", Sides: append(sides, more.Sides...)}, err
}

// parts is that part in the lab.
func (o order) parts() (result, error) {
	home := filepath.Join(o.Home, "parts")
	if err := writePolicy(home, "allow:\n  hosts: [allowed.test]\n"); err != nil {
		return result{}, err
	}
	b := &bench{rounds: o.Rounds}
	sides, err := b.apart(oneHost, home, o.Dir, []string{o.Kgate, "run", "--", "true"})
	return result{Suite: "parts", Sides: sides}, err
}

// apart runs a launch of a marked kgate and returns how long each part took.
func (b *bench) apart(kind, home, dir string, argv []string) ([]side, error) {
	times := make([][]float64, len(marks)+2)
	for round := -2; round < b.rounds; round++ {
		at, err := b.once(home, dir, argv)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		}
		if round < 0 {
			continue
		}
		for i := range len(at) - 1 {
			times[i] = append(times[i], float64(at[i+1]-at[i])/1e6)
		}
		times[len(at)-1] = append(times[len(at)-1], float64(at[len(at)-1]-at[0])/1e6)
	}
	var sides []side
	for i, t := range times {
		sides = append(sides, summary(kind+": "+partName(i), t))
	}
	return sides, nil
}

// once is one launch: the times before it, at each mark and after it, in
// nanoseconds.
func (b *bench) once(home, dir string, argv []string) ([]int64, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := b.command(dir, argv...)
	cmd.Env[0] = "HOME=" + home
	cmd.ExtraFiles = []*os.File{w}
	var words bytes.Buffer
	cmd.Stderr = &words
	at := []int64{time.Now().UnixNano()}
	err = cmd.Run()
	end := time.Now().UnixNano()
	w.Close()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(words.Bytes()))
	}
	said := make([]byte, 64*len(marks))
	n, err := r.Read(said)
	if err != nil {
		return nil, fmt.Errorf("read its marks: %w", err)
	}
	for _, f := range strings.Fields(strings.Trim(string(said[:n]), "[]\n")) {
		t, err := strconv.ParseInt(f, 10, 64)
		if err != nil || t < at[len(at)-1] {
			return nil, fmt.Errorf("its marks %q are not in order", said[:n])
		}
		at = append(at, t)
	}
	if len(at) != len(marks)+1 {
		return nil, fmt.Errorf("%d marks, want %d", len(at)-1, len(marks))
	}
	return append(at, end), nil
}
