package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

func init() { suites["log"] = manyLines }

// lines is how long the log is that a launch is measured with.
const lines = 1_000_000

// manyLines compares a launch that writes its line after a million others with
// one whose log is nearly empty.
func manyLines(b *bench) (result, error) {
	homes := []string{filepath.Join(b.root, "short"), filepath.Join(b.root, "long")}
	argv := []string{b.kgate, "run", "--network", "off", "--", "true"}
	for _, home := range homes {
		if err := b.own(home, os.Mkdir(home, 0o755)); err != nil {
			return result{}, err
		}
		cmd := b.command(b.dir, argv...)
		cmd.Env[0] = "HOME=" + home
		if out, err := cmd.CombinedOutput(); err != nil {
			return result{}, fmt.Errorf("first launch: %w: %s", err, bytes.TrimSpace(out))
		}
	}
	if err := b.lengthen(filepath.Join(homes[1], ".kgate")); err != nil {
		return result{}, err
	}
	verify := b.command(b.dir, b.kgate, "log", "verify")
	verify.Env[0] = "HOME=" + homes[1]
	said, err := verify.CombinedOutput()
	if err != nil {
		return result{}, fmt.Errorf("the long log: %w: %s", err, bytes.TrimSpace(said))
	}
	sides, err := b.alternate(
		plan{name: "launch, 1,000,000 lines in the log", dir: b.dir, argv: argv, home: homes[1]},
		plan{name: "launch, a new log", dir: b.dir, argv: argv, home: homes[0]},
	)
	if err != nil {
		return result{}, err
	}
	crowd, err := b.crowd()
	if err != nil {
		return result{}, err
	}
	return result{Suite: "log", Sides: sides, Ratio: sides[0].Median / sides[1].Median, Target: 1.1,
		Notes: []string{"the long log: " + string(bytes.TrimSpace(said)), crowd}}, nil
}

// atOnce is how many launches write to one log at the same time.
const atOnce = 200

// crowd starts many launches at once with a log of their own, which must hold a
// line of each, and none that does not fit the one before.
func (b *bench) crowd() (string, error) {
	home := filepath.Join(b.root, "crowd")
	if err := b.own(home, os.Mkdir(home, 0o755)); err != nil {
		return "", err
	}
	var (
		wg     sync.WaitGroup
		failed = make([]error, atOnce)
	)
	start := time.Now()
	for i := range failed {
		wg.Go(func() {
			cmd := b.command(b.dir, b.kgate, "run", "--network", "off", "--", "true", strconv.Itoa(i))
			cmd.Env[0] = "HOME=" + home
			if out, err := cmd.CombinedOutput(); err != nil {
				failed[i] = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
			}
		})
	}
	wg.Wait()
	took := time.Since(start)
	if err := errors.Join(failed...); err != nil {
		return "", fmt.Errorf("of %d at once: %w", atOnce, err)
	}
	verify := b.command(b.dir, b.kgate, "log", "verify")
	verify.Env[0] = "HOME=" + home
	said, err := verify.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("after %d at once: %w: %s", atOnce, err, bytes.TrimSpace(said))
	}
	text, err := os.ReadFile(filepath.Join(home, ".kgate", "audit.jsonl"))
	if err != nil {
		return "", err
	}
	for i := range atOnce {
		if n := bytes.Count(text, fmt.Appendf(nil, `"argv":["true","%d"]`, i)); n != 1 {
			return "", fmt.Errorf("after %d at once: launch %d has %d lines", atOnce, i, n)
		}
	}
	return fmt.Sprintf("%d launches at once in %.1f s: %s", atOnce, took.Seconds(), bytes.TrimSpace(said)), nil
}

// own gives what was just made to the bench's user.
func (b *bench) own(name string, err error) error {
	if err != nil || b.cred == nil {
		return err
	}
	return os.Chown(name, int(b.cred.Uid), int(b.cred.Gid))
}

// lengthen makes of a log of one line one of a million, in files of the size
// at which kgate sets them aside.
func (b *bench) lengthen(dir string) error {
	const (
		setAside = 60 << 20
		hashKey  = `,"hash":"`
	)
	name := filepath.Join(dir, "audit.jsonl")
	first, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	// The first line without its number, the hash before it, and its own.
	_, rest, ok := strings.Cut(string(first), `,"prev":"`)
	_, rest, ok2 := strings.Cut(rest, `"`)
	middle, hash, ok3 := strings.Cut(rest, hashKey)
	if !ok || !ok2 || !ok3 {
		return errors.New("the log's line has another form")
	}
	prev, _, _ := strings.Cut(hash, `"`)
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	w, size, aside := bufio.NewWriterSize(file, 1<<20), 0, 0
	end := func() error { return errors.Join(w.Flush(), file.Sync(), file.Close()) }
	for n := 2; n <= lines; n++ {
		if size > setAside {
			aside++
			if err := errors.Join(end(), os.Rename(name, fmt.Sprintf("%s.%d", name, aside))); err != nil {
				return err
			}
			file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err := b.own(name, err); err != nil {
				return err
			}
			w.Reset(file)
			size = 0
		}
		body := fmt.Sprintf(`{"seq":%d,"prev":"%s"%s`, n, prev, middle)
		sum := sha256.Sum256([]byte(body))
		prev = hex.EncodeToString(sum[:])
		k, _ := fmt.Fprintf(w, "%s%s%s\"}\n", body, hashKey, prev)
		size += k
	}
	if err := end(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "audit.head"), fmt.Appendf(nil, "%020d %s\n", lines, prev), 0o600)
}
