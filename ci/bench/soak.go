//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

func init() {
	suites["soak"] = func(b *bench) (result, error) { return b.inLab(order{Soak: true}) }
}

// together is how many launches the soak starts at once.
const together = 50

// soak starts fifty restricted launches at once and then -n more, one after the
// other. Each must reach the listed host and no other. Afterwards the lab's
// machine has no process, open descriptor, mount or file more than after the
// first launch, but for the audit log.
func (o order) soak() (result, error) {
	home := filepath.Join(o.Home, "soak")
	if err := writePolicy(home, "allow:\n  hosts: [allowed.test]\n"); err != nil {
		return result{}, err
	}
	temp := filepath.Join(home, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		return result{}, err
	}
	b := &bench{rounds: o.Rounds, home: home}
	one := func() (time.Duration, error) {
		cmd := b.command(o.Dir, o.Kgate, "run", "--", "sh", "-c",
			fmt.Sprintf("./probe %s -t 20s tcp allowed.test 9999 && ! ./probe %[1]s -t 20s tcp 203.0.113.20 9999", lab.StageProbe))
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		start := time.Now()
		out, err := cmd.CombinedOutput()
		if err == nil && !bytes.Contains(out, []byte("hello from 203.0.113.10:9999")) {
			err = errors.New("the listed host did not answer")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
		}
		return time.Since(start), err
	}
	if err := exec.Command(filepath.Join(o.Dir, "probe"), lab.StageProbe, "tcp", "203.0.113.20", "9999").Run(); err != nil {
		return result{}, fmt.Errorf("without kgate the other host does not answer, so nothing is shown: %w", err)
	}
	if _, err := one(); err != nil {
		return result{}, err
	}
	before, err := o.count()
	if err != nil {
		return result{}, err
	}
	var (
		wg     sync.WaitGroup
		failed = make([]error, together)
		times  = make([]float64, together)
	)
	for i := range together {
		wg.Go(func() {
			took, err := one()
			times[i], failed[i] = milliseconds(took), err
		})
	}
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		return result{}, fmt.Errorf("of %d at once: %w", together, err)
	}
	if err := o.same(before); err != nil {
		return result{}, fmt.Errorf("after %d at once: %w", together, err)
	}
	sides := []side{summary(fmt.Sprintf("each of %d at once", together), times)}
	times = nil
	for i := range o.Rounds {
		took, err := one()
		if err != nil {
			return result{}, fmt.Errorf("launch %d in a row: %w", i+1, err)
		}
		times = append(times, milliseconds(took))
	}
	if err := o.same(before); err != nil {
		return result{}, fmt.Errorf("after %d in a row: %w", o.Rounds, err)
	}
	tenth := max(1, o.Rounds/10)
	sides = append(sides, summary("in a row", times), summary("of them the first tenth", times[:tenth]), summary("of them the last tenth", times[len(times)-tenth:]))
	return result{Suite: "soak", Sides: sides, Notes: []string{
		fmt.Sprintf("all %d right; as before: %s", 1+together+o.Rounds, before)}}, nil
}

// census is what there is on the lab's machine.
type census struct {
	processes, descriptors, mounts int
	files                          []string
}

func (c census) String() string {
	return fmt.Sprintf("%d processes, %d descriptors, %d mounts, %d files", c.processes, c.descriptors, c.mounts, len(c.files))
}

// same waits until there is no more than before. The last of a box may go a
// moment after kgate; what stays is an error.
func (o order) same(before census) error {
	var now census
	var err error
	for range 100 {
		if now, err = o.count(); err != nil {
			return err
		}
		if now.processes <= before.processes && now.descriptors <= before.descriptors &&
			now.mounts <= before.mounts && slices.Equal(now.files, before.files) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	more := slices.DeleteFunc(slices.Clone(now.files), func(f string) bool { return slices.Contains(before.files, f) })
	return fmt.Errorf("there are %s where there were %s; new files: %q", now, before, more)
}

// count counts. Processes are those of the lab's machine, which has a number
// space of its own, so that nothing else that runs here is counted; zombies
// count. Files are those of the home and the project, TMPDIR among them, and this
// user's in memory.
func (o order) count() (census, error) {
	var c census
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return c, err
	}
	for _, d := range dirs {
		if _, err := strconv.Atoi(d.Name()); err != nil {
			continue
		}
		c.processes++
		// The lab's own are of another user namespace and cannot be looked into.
		fds, _ := os.ReadDir(filepath.Join("/proc", d.Name(), "fd"))
		c.descriptors += len(fds)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return c, err
	}
	c.mounts = bytes.Count(mounts, []byte{'\n'})
	for _, root := range []string{o.Home, o.Dir} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if !strings.HasPrefix(filepath.Base(path), "audit") {
				c.files = append(c.files, path)
			}
			return err
		})
		if err != nil {
			return c, err
		}
	}
	for _, root := range []string{"/dev/shm", fmt.Sprintf("/run/user/%d", os.Getuid())} {
		entries, _ := os.ReadDir(root) // not every machine has them
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // somebody else's, gone meanwhile
			}
			if owner := info.Sys().(*syscall.Stat_t); int(owner.Uid) == os.Getuid() {
				c.files = append(c.files, filepath.Join(root, e.Name()))
			}
		}
	}
	return c, nil
}
