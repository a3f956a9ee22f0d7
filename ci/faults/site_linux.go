package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

// The addresses of the lab: one that the policy lists, one that it does not.
const (
	listed   = "203.0.113.10"
	unlisted = "203.0.113.20"
	port     = "9999"
)

// secret is what the home's file holds that no command may read.
const secret = "a line of the home directory"

// site is one home with one project, for one trial.
type site struct {
	machine *machine
	mode    string // of the network
	dir     string
	kgate   string
	before  map[string]string
	atRest  func() error // called when the command waits
}

// machine is the lab with what all trials have in common.
type machine struct {
	lab         *lab.Lab
	root        string // the directory of all sites
	self, kgate string // programs
	verbose     bool
	sites       int
}

func (s *site) home() string    { return filepath.Join(s.dir, "home") }
func (s *site) project() string { return filepath.Join(s.dir, "home", "src", "project") }
func (s *site) in(name string) string {
	return filepath.Join(s.project(), name)
}

func (m *machine) site(mode string) (*site, error) {
	m.sites++
	s := &site{machine: m, mode: mode, kgate: m.kgate, dir: filepath.Join(m.root, fmt.Sprintf("site-%d", m.sites))}
	hosts := ""
	if mode == "restricted" {
		hosts = "allow:\n  hosts: [\"allowed.test:" + port + "\"]\n"
	}
	for name, text := range map[string]string{
		"home/.kgate/config.yaml": "version: 1\nnetwork: " + mode + "\n" + hosts,
		"home/secret":             secret + "\n", "home/src/project/.git/HEAD": "ref: refs/heads/main\n",
		"home/src/project/.git/config": "[core]\n\tbare = false\n", "home/src/project/file": "text\n",
	} {
		file := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(s.home(), "tmp"), 0o700); err != nil {
		return nil, err
	}
	// A hard link: the command might write to it, and has no reason to.
	return s, os.Link(m.kgate, s.in("probe"))
}

func (s *site) remove() { os.RemoveAll(s.dir) }

// traces are what the command leaves in the project.
var traces = []string{"ran", "read", "sent", "allowed", "done", "go", "over", "late"}

// command is the launched command. It waits for the file go before it ends.
func (s *site) command() []string {
	probe := "./probe " + lab.StageProbe + " -t 2s"
	return []string{"sh", "-c", strings.Join([]string{
		"echo the command runs", "echo >ran", "cat " + s.home() + "/secret >read 2>/dev/null",
		probe + " tcp " + unlisted + " " + port + " >sent 2>&1",
		probe + " tcp " + listed + " " + port + " >allowed 2>&1",
		"echo >done", "until [ -e go ]; do sleep 0.05; done", "echo >over",
	}, "\n")}
}

func (s *site) env() []string {
	return []string{"HOME=" + s.home(), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"TMPDIR=" + filepath.Join(s.home(), "tmp"), "LC_ALL=C", "REAL=" + s.machine.kgate}
}

// do runs a program on the lab's machine to its end, outside any box.
func (s *site) do(out string, argv ...string) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	f, err := os.Create(filepath.Join(s.dir, out))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	job, err := s.machine.lab.Start(lab.Command{Argv: argv, Dir: s.project(), Env: s.env(), Files: [3]*os.File{null, f, f}})
	if err != nil {
		return 0, err
	}
	return job.Wait()
}

func (s *site) said(out string) string {
	text, _ := os.ReadFile(filepath.Join(s.dir, out))
	return strings.TrimSpace(string(text))
}

func exists(file string) bool { _, err := os.Lstat(file); return err == nil }

// tree is every name of the home, the project in it, with what it is; without
// the log and what the command leaves.
func (s *site) tree() (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(s.home(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.home(), path)
		dir, base := filepath.Split(rel)
		if dir == ".kgate/" && strings.HasPrefix(base, "audit") || dir == "src/project/" && slices.Contains(traces, base) {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		what := info.Mode().String()
		if info.Mode().IsRegular() && info.Size() < 1<<16 {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		// These come with a launch and stay. In what is kept nothing may be.
		kept := d.IsDir() && (rel == ".kgate/spare" || filepath.Dir(rel) == ".kgate/spare")
		if rel != ".kgate/run" && !kept {
			all[rel] = what
		}
		return nil
	})
	return all, err
}

// changed lists what is not as it was.
func (s *site) changed() ([]string, error) {
	now, err := s.tree()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if s.before[name] != now[name] {
			out = append(out, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.before)) {
		if now[name] == "" {
			out = append(out, "no more: "+name)
		}
	}
	return out, nil
}

// launches counts the launch lines of the log.
func (s *site) launches() int {
	text, _ := os.ReadFile(filepath.Join(s.home(), ".kgate", "audit.jsonl"))
	n := 0
	for line := range strings.Lines(string(text)) {
		var e struct{ Kind string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "launch" {
			n++
		}
	}
	return n
}

// trace launches under the tracer. It lets the command end as told: at once,
// when the strike is made, or never.
func (s *site) trace(o order, free ending) (outcome, error) {
	o.Over, o.Report = s.in("over"), filepath.Join(s.dir, "report")
	for _, name := range []string{o.Report, o.Report + ".struck"} {
		os.Remove(name)
	}
	text, _ := json.Marshal(o)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return outcome{}, err
	}
	defer null.Close()
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		return outcome{}, err
	}
	defer out.Close()
	errs, err := os.Create(filepath.Join(s.dir, "err"))
	if err != nil {
		return outcome{}, err
	}
	defer errs.Close()
	release := func() { os.WriteFile(s.in("go"), nil, 0o600) }
	if free == atOnce {
		release()
	}
	job, err := s.machine.lab.Start(lab.Command{Argv: []string{s.machine.self, stageTrace, string(text)},
		Dir: s.project(), Env: s.env(), Files: [3]*os.File{null, out, errs}})
	if err != nil {
		return outcome{}, err
	}
	ended := make(chan error, 1)
	go func() { _, err := job.Wait(); ended <- err }()
	var since time.Time // the strike, or that the command waits for one
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				return outcome{}, err
			}
			running = false
		case now := <-tick.C:
			if s.atRest != nil && exists(s.in("done")) {
				if err := s.atRest(); err != nil {
					return outcome{}, err
				}
				s.atRest = nil
			}
			struck := exists(o.Report + ".struck")
			switch {
			case since.IsZero() && (struck || exists(s.in("done"))):
				since = now
			case since.IsZero():
			case free == whenStruck && struck && (strings.Contains(s.said("err"), "kgate:") || now.Sub(since) > time.Second),
				now.Sub(since) > 3*time.Second && !struck:
				release()
			}
		}
	}
	data, err := os.ReadFile(o.Report)
	if err != nil {
		return outcome{}, fmt.Errorf("the tracer has left no report: %s", s.said("err"))
	}
	var r outcome
	return r, json.Unmarshal(data, &r)
}

// ending is when the command is let go.
type ending int

const (
	atOnce     ending = iota // it ends by itself
	whenStruck               // when the strike is made, and told
	never                    // it must be ended
)
