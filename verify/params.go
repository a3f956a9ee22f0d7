// Package verify is the witness: it drives a built kgate as a subprocess and
// judges from outside what the box let through. The scenarios are the scripts
// of testdata/scripts; the same files run under go test and under kgate verify.
// It shares no code with the launcher or the backends, because a witness that
// does so proves nothing.
package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgate-dev/kgate/verify/lab"
)

// Options says how scripts are run.
type Options struct {
	Files  []string // script files; see Extract
	Kgate  string   // the kgate under test: an executable file
	Must   []string // conditions whose lack is a failure, not a skip
	Pcap   string   // a directory for pcap files, or ""
	Update bool     // rewrite golden text in Files
	Keep   bool     // leave the scripts' directories behind

	// Trace, if not nil, gets what the one script of Files did and what left meanwhile.
	Trace *Trace

	// Evidence, if not nil, gets each line of evidence as it is found.
	Evidence func(script, line string)

	// Attacks, if not nil, gets what became of the attacks of a script that tallies them.
	Attacks func(script string, a Attacks)
}

// Params returns testscript's parameters for running kgate's scripts: the clean
// home and project directory of each, the commands and the conditions that
// package scripts documents.
func Params(o Options) testscript.Params {
	return testscript.Params{
		Files:               o.Files,
		Setup:               o.setup,
		Condition:           o.condition,
		Cmds:                commands(),
		UpdateScripts:       o.Update,
		TestWork:            o.Keep,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
	}
}

// script is what the commands of one script share.
type script struct {
	opts *Options
	name string
	work string

	mu     sync.Mutex
	procs  map[string]*process
	before tree
	except []string
	roots  []string

	tally *tally // of attacks, if there were any

	lab  *lab.Lab
	labs int      // how many there have been
	env  []string // the names of the variables it started with and sets later
}

type scriptKey struct{}

func of(ts *testscript.TestScript) *script { return ts.Value(scriptKey{}).(*script) }

func (o *Options) setup(env *testscript.Env) error {
	home, proj := filepath.Join(env.WorkDir, "home"), filepath.Join(env.WorkDir, "proj")
	for dir, mode := range map[string]os.FileMode{home: 0o700, proj: 0o755} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := os.Chmod(dir, mode); err != nil {
			return err
		}
	}
	s := &script{
		opts:  o,
		name:  strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"),
		work:  env.WorkDir,
		procs: map[string]*process{},
	}
	env.Values[scriptKey{}] = s
	env.Defer(s.end)
	env.Cd = proj
	for _, v := range [][2]string{
		{"HOME", home},
		{"PROJ", proj},
		{"KGATE", o.Kgate},
		{"SHELL", "/bin/sh"},
		{"LANG", "C.UTF-8"},
		{"TERM", "dumb"},
		{"GIT_CONFIG_NOSYSTEM", "1"},
		{"GIT_AUTHOR_NAME", "A Person"},
		{"GIT_AUTHOR_EMAIL", "person@example.org"},
		{"GIT_COMMITTER_NAME", "A Person"},
		{"GIT_COMMITTER_EMAIL", "person@example.org"},
		// Git must not find the repository that the scripts' directory may lie in.
		{"GIT_CEILING_DIRECTORIES", env.WorkDir},
	} {
		env.Setenv(v[0], v[1])
	}
	for _, name := range passed {
		if v := os.Getenv(name); v != "" {
			env.Setenv(name, v)
		}
	}
	if err := o.path(env); err != nil {
		return err
	}
	for _, kv := range env.Vars {
		name, _, _ := strings.Cut(kv, "=")
		s.env = append(s.env, name)
	}
	for _, file := range o.Files {
		if strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)) == s.name {
			names, err := variables(file)
			if err != nil {
				return err
			}
			s.env = append(s.env, names...)
		}
	}
	return nil
}

// variables lists the names that a script's env commands set: testscript hands
// its environment to a command only name by name.
func variables(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		for len(words) > 0 && strings.HasPrefix(words[0], "[") {
			words = words[1:]
		}
		if len(words) == 0 || words[0] != "env" {
			continue
		}
		for _, w := range words[1:] {
			if name, _, ok := strings.Cut(w, "="); ok {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// environ is the script's present environment. A variable that is empty and not
// one of testscript's own is left out.
func (s *script) environ(ts *testscript.TestScript) []string {
	var env []string
	seen := map[string]bool{}
	for _, name := range s.env {
		if v := ts.Getenv(name); v != "" && !seen[name] {
			env = append(env, name+"="+v)
		}
		seen[name] = true
	}
	return append(env, "PWD="+filepath.Clean(ts.MkAbs(".")))
}

// path puts the kgate under test first on PATH, under that name.
func (o *Options) path(env *testscript.Env) error {
	if o.Kgate == "" {
		return fmt.Errorf("verify: no kgate to test")
	}
	if filepath.Base(o.Kgate) == "kgate" {
		env.Setenv("PATH", filepath.Dir(o.Kgate)+string(os.PathListSeparator)+os.Getenv("PATH"))
		return nil
	}
	bin := filepath.Join(env.WorkDir, ".bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return os.Symlink(o.Kgate, filepath.Join(bin, "kgate"))
}

// evidence records a line that shows what was seen.
func (s *script) evidence(format string, args ...any) {
	line := strings.ReplaceAll(fmt.Sprintf(format, args...), s.work, "$WORK")
	s.traced(Step{Kind: StepSeen, Words: []string{line}})
	if s.opts.Evidence != nil {
		s.opts.Evidence(s.name, line)
	}
}

// end stops whatever the script left running.
func (s *script) end() {
	for _, p := range s.procs {
		p.kill()
	}
	s.labDown()
}

// passed are variables of this process's own that scenarios get. What is shipped
// has none.
var passed []string
