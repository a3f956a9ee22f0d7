package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func init() { suites["mask"] = streams }

const (
	sample = 64 << 20 // bytes of each kind of text
	copies = 16       // how many of them one cat prints: 1 GiB
)

// samples are kinds of text. Numbers within them differ, so that no two lines are
// the same.
var samples = []struct {
	name string
	fill func(*rand.Rand, *bytes.Buffer)
}{
	{"random bytes", func(r *rand.Rand, b *bytes.Buffer) {
		var piece [4096]byte
		r.Read(piece[:])
		b.Write(piece[:])
	}},
	{"base64", func(r *rand.Rand, b *bytes.Buffer) {
		var piece [57]byte
		r.Read(piece[:])
		b.WriteString(base64.StdEncoding.EncodeToString(piece[:]))
		b.WriteByte('\n')
	}},
	{"a log full of URLs", func(r *rand.Rand, b *bytes.Buffer) {
		fmt.Fprintf(b, "2026-01-02T03:04:05Z INFO GET https://host-%d.example:8443/a/b?task=%x&user_name=u%d 200 http://r.example/%x in %d ms\n",
			r.Intn(1000), r.Int63(), r.Intn(1e6), r.Int63(), r.Intn(1000))
	}},
	{"source code", func(r *rand.Rand, b *bytes.Buffer) {
		fmt.Fprintf(b, "func (w *writer) step%d(b []byte, i int) (int, error) {\n\tif w.err != nil || i >= len(b)-%d {\n\t\treturn 0, w.err // the rest waits\n\t}\n\tsk := w.skip[b[i]]\n\treturn i + sk*%d, nil\n}\n\n",
			r.Intn(1e6), r.Intn(99), r.Intn(99))
	}},
}

// streams compares what a command prints through kgate's mask with the same
// through a plain pipe: how much of it a second, and how late its first byte is.
func streams(b *bench) (result, error) {
	out := result{Suite: "mask"}
	rounds := max(3, b.rounds/12)
	for i, s := range samples {
		file := filepath.Join(b.root, fmt.Sprint("sample", i))
		var text bytes.Buffer
		for rnd := rand.New(rand.NewSource(int64(i))); text.Len() < sample; {
			s.fill(rnd, &text)
		}
		err := os.WriteFile(file, text.Bytes()[:sample], 0o644)
		if err != nil {
			return out, err
		}
		cat := append([]string{"cat"}, strings.Fields(strings.Repeat(file+" ", copies))...)
		boxed := append([]string{b.kgate, "run", "--network", "off", "--allow-path", file, "--"}, cat...)
		var times [2][]float64
		for round := -1; round < rounds; round++ {
			for k := range 2 {
				side := (k + round + 2) % 2
				took, n, err := b.drain([][]string{boxed, cat}[side])
				if err != nil {
					return out, err
				}
				if n < sample*copies*9/10 {
					return out, fmt.Errorf("%s: only %d bytes came", s.name, n)
				}
				if round >= 0 {
					times[side] = append(times[side], milliseconds(took))
				}
			}
		}
		os.Remove(file)
		masked, plain := summary("1 GiB, masked: "+s.name, times[0]), summary("1 GiB, a plain pipe: "+s.name, times[1])
		out.Sides = append(out.Sides, masked, plain)
		out.Notes = append(out.Notes, fmt.Sprintf("%s: %.0f MiB/s masked, %.0f plain: ratio %.2f (target: at least 0.50)",
			s.name, 1024*1000/masked.Median, 1024*1000/plain.Median, plain.Median/masked.Median))
	}
	first, err := b.firstByte()
	out.Notes = append(out.Notes, first)
	return out, err
}

// drain reads all that a command prints to a pipe.
func (b *bench) drain(argv []string) (time.Duration, int64, error) {
	cmd := b.command(b.dir, argv...)
	var words bytes.Buffer
	cmd.Stderr = &words
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	var n int64
	buf := make([]byte, 256<<10)
	for {
		k, err := pipe.Read(buf)
		n += int64(k)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, n, err
		}
	}
	if err := cmd.Wait(); err != nil {
		return 0, n, fmt.Errorf("%s: %w: %s", argv[0], err, bytes.TrimSpace(words.Bytes()))
	}
	return time.Since(start), n, nil
}

// firstByte is how long a line of a command's takes to the reader, from the
// moment that date read the clock. What date needs to print is on both sides.
func (b *bench) firstByte() (string, error) {
	date := []string{"date", "+%s%N"}
	var times [2][]float64
	for round := -2; round < b.rounds; round++ {
		for k := range 2 {
			side := (k + round + 2) % 2
			argv := date
			if side == 0 {
				argv = append([]string{b.kgate, "run", "--network", "off", "--"}, date...)
			}
			cmd := b.command(b.dir, argv...)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				return "", err
			}
			if err := cmd.Start(); err != nil {
				return "", err
			}
			line, err := bufio.NewReader(pipe).ReadString('\n')
			now := time.Now()
			if werr := cmd.Wait(); err == nil {
				err = werr
			}
			if err != nil {
				return "", fmt.Errorf("%s: %w", argv[0], err)
			}
			ns, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				return "", err
			}
			if round >= 0 {
				times[side] = append(times[side], milliseconds(now.Sub(time.Unix(0, ns))))
			}
		}
	}
	masked, plain := summary("", times[0]), summary("", times[1])
	return fmt.Sprintf("first byte: %.2f ms masked (quartiles %.2f … %.2f), %.2f plain (%.2f … %.2f): %.2f ms later (target: at most 1.00), n %d",
		masked.Median, masked.Q1, masked.Q3, plain.Median, plain.Q1, plain.Q3, masked.Median-plain.Median, masked.Rounds), nil
}
