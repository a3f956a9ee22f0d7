package command

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kgate-dev/kgate/launcher/policy"
)

// standIn is what curl, wget and the like are in the tests: it leaves a mark.
const standIn = "#!/bin/sh\necho ran >> \"$KGATE_TEST_MARK\"\n"

type place struct {
	dir, bin, mark string
	o              Options
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// newPlace makes a project with stand-ins of denied programs and scripts.
func newPlace(t testing.TB, denied ...string) place {
	t.Helper()
	root := t.TempDir()
	p := place{dir: filepath.Join(root, "proj"), bin: filepath.Join(root, "home", "bin"), mark: filepath.Join(root, "mark")}
	home := filepath.Join(root, "home")
	for _, name := range []string{"curl", "wget", "nc", "ssh"} {
		// Each its own bytes: a copy of one must not be taken for another.
		write(t, filepath.Join(p.bin, name), standIn+"# "+name+"\n", 0o755)
	}
	for name, text := range map[string]string{
		"script.sh":    "#!/bin/sh\ncurl x\n",
		"bare.sh":      "curl x\n",
		"two.sh":       "#!/bin/sh -e\nset -e\ncd .\n. ./bare.sh\n",
		"calls.sh":     "#!/bin/bash\nfetch() {\n\tcurl \"$1\"\n}\nfetch x\n",
		"py.sh":        "#!/usr/bin/env python3\nprint('curl')\n",
		"asks.sh":      "#!/bin/sh\nif test -n \"$X\"; then\n\tcurl x\nfi\ntrue || curl x\nf() { curl x; }\n$X\n",
		"dynamic.sh":   "#!/bin/sh\n$TOOL run\n\"$@\"\neval \"$X\"\n",
		"not-shell.sh": "#!/bin/sh\nif (\n",
		"curl.sh":      "#!/bin/sh\necho no\n",
		"runs-renamed": "#!" + p.dir + "/renamed\n",
		"code.py":      "import subprocess\nsubprocess.run(['curl'])\n",
	} {
		write(t, filepath.Join(p.dir, name), text, 0o755)
	}
	for name, text := range map[string]string{
		"safe.sh": "echo curl\n", "snapshot.sh": "export A=1\n", "README.md": "curl\n", "Makefile": "curl:\n\techo curl\n",
	} {
		write(t, filepath.Join(p.dir, name), text, 0o644)
	}
	write(t, filepath.Join(p.dir, "sub", "file"), "", 0o644)
	// A login shell sets PATH anew before it reads this.
	write(t, filepath.Join(home, ".profile"), "PATH="+p.bin+":$PATH\n", 0o644)
	write(t, filepath.Join(home, ".zprofile"), "PATH="+p.bin+":$PATH\n", 0o644)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Symlink(filepath.Join(p.bin, "curl"), filepath.Join(p.dir, "renamed")))
	check(os.Link(filepath.Join(p.bin, "curl"), filepath.Join(p.dir, "hard")))
	write(t, filepath.Join(p.dir, "copied"), standIn+"# curl\n", 0o755)
	check(os.Symlink("/usr/bin/env", filepath.Join(p.dir, "wrap")))
	if busybox, err := exec.LookPath("busybox"); err == nil {
		data, err := os.ReadFile(busybox)
		check(err)
		write(t, filepath.Join(p.dir, "box"), string(data), 0o755)
	}

	var words []policy.Word
	for n, name := range denied {
		words = append(words, policy.Word{Text: name, From: policy.Origin{Kind: policy.FromUser, File: "config.yaml", Line: n + 1, Key: "deny.exec"}})
	}
	path := p.bin + ":/usr/local/bin:/usr/bin:/bin"
	p.o = Options{Denied: words, Programs: policy.Locate(words, []string{p.bin}), Dir: p.dir, Path: path, Env: []string{
		"PATH=" + path, "HOME=" + home, "CC=cc", "KGATE_TEST_MARK=" + p.mark, "LC_ALL=C",
	}}
	return p
}

type line struct {
	number  int
	verdict string
	runs    bool
	needs   string
	argv    []string
}

func corpus(t testing.TB, p place, file string) []line {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []line
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		text := in.Text()
		if text == "" || text[0] == '#' {
			continue
		}
		verdict, rest, _ := strings.Cut(text, " ")
		rest = strings.NewReplacer("⏎", "\n", "@BIN@", p.bin, "@HOLE@", "nothing_sets_this").Replace(strings.TrimSpace(rest))
		l := line{number: n}
		l.verdict, l.needs, _ = strings.Cut(verdict, ":")
		l.verdict, l.runs = strings.CutSuffix(l.verdict, "+runs")
		for _, f := range splitFields(rest) {
			l.argv = append(l.argv, f.text)
		}
		out = append(out, l)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func verdict(err error) string {
	var r *Refusal
	switch {
	case err == nil:
		return "allow"
	case !errors.As(err, &r):
		return "error that is no refusal: " + err.Error()
	case r.undecided:
		return "undecided"
	}
	return "refuse"
}

// TestCorpus judges every spelling of the corpus.
func TestCorpus(t *testing.T) {
	p := newPlace(t, "curl", "wget", "nc", "ssh")
	counts := map[string]int{}
	for _, file := range []string{"testdata/corpus.txt", "testdata/wrappers.txt"} {
		for _, l := range corpus(t, p, file) {
			counts[l.verdict]++
			err := Inspect(l.argv, p.o)
			if got := verdict(err); got != l.verdict {
				t.Errorf("%s:%d: %q: got %s, want %s (%v)", file, l.number, l.argv, got, l.verdict, err)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), holeName)) {
				t.Errorf("%s:%d: message is not one plain line: %q", file, l.number, err)
			}
		}
	}
	if counts["allow"] < 100 || counts["refuse"] < 200 || counts["undecided"] < 10 {
		t.Errorf("the corpus is too small: %v", counts)
	}
	t.Logf("%v", counts)
}

// TestCorpusRuns runs the lines that say so: the stand-in must really start,
// which is what makes their verdict right.
func TestCorpusRuns(t *testing.T) {
	// Should a line start another curl than the stand-in, it must not reach anything.
	alone := offline(t)
	p := newPlace(t, "curl")
	for _, file := range []string{"testdata/corpus.txt", "testdata/wrappers.txt"} {
		for _, l := range corpus(t, p, file) {
			if !l.runs {
				continue
			}
			if l.needs != "" && lookIn(p.o.Path, l.needs) == "" {
				t.Logf("%s:%d: not run, no %s here", file, l.number, l.needs)
				continue
			}
			os.Remove(p.mark)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			cmd := exec.CommandContext(ctx, lookIn(p.o.Path, l.argv[0]), l.argv[1:]...)
			cmd.Args[0] = l.argv[0]
			cmd.SysProcAttr = alone
			cmd.Dir, cmd.Env = p.dir, p.o.Env
			out, err := cmd.CombinedOutput()
			cancel()
			// A job of the line's own may outlive it.
			deadline := time.Now().Add(2 * time.Second)
			for {
				if _, gone := os.Stat(p.mark); gone == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Errorf("%s:%d: %q is marked +runs and did not start curl: %v\n%s", file, l.number, l.argv, err, out)
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
}

// lookIn finds a program in the path of the tests, which is not that of whoever
// runs them; "" when it is not there.
func lookIn(path, name string) string {
	if strings.Contains(name, "/") {
		if _, err := os.Stat(name); err != nil && filepath.IsAbs(name) {
			return ""
		}
		return name
	}
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	return ""
}
