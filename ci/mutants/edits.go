package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// edits are the mutants that are made in the source: the checks of the policy,
// of the command line and of the log, and the steps of a launch.
func edits() ([]edit, error) {
	var all []edit
	for _, dir := range []string{"launcher/policy", "launcher/command", "launcher/audit"} {
		found, err := checks(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, s := range steps {
		e, err := s.edit()
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// tryEdit returns the test or scenario that fails with the changed source, "" if
// none does.
func (r *runner) tryEdit(e edit) (string, error) {
	if e.in != nil {
		return r.tryCheck(e)
	}
	list, err := overlay(r.dir, map[string][]byte{e.file: e.text})
	if err != nil {
		return "", err
	}
	for _, t := range e.tests {
		pkg, pattern, ok := strings.Cut(t, " ")
		if !ok {
			by, err := r.tryScenario(e, t, list)
			if by != "" || err != nil {
				return by, err
			}
			continue
		}
		if err := r.controlTest(pkg, pattern); err != nil {
			return "", err
		}
		by, err := twice(e.name, pkg, func(run, skip string) (string, error) {
			return goTest(pkg, cmp.Or(run, pattern), "-overlay="+list, "-skip="+skip)
		})
		if by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// tryCheck returns the test of its own package that fails without the check, ""
// if none does.
func (r *runner) tryCheck(e edit) (string, error) {
	dir := e.in.dir
	program := filepath.Join(r.dir, filepath.Base(dir)+".checks")
	run := func(omitted, pattern, skip string) (string, error) {
		cmd := exec.Command(program, "-test.failfast", "-test.short", "-test.run="+pattern, "-test.skip="+skip)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KGATE_MUST=userns,hostfilter", "KGATE_MUTANT="+omitted)
		return finish(cmd)
	}
	if _, ok := r.control[dir]; !ok {
		list, err := overlay(program+".files", e.in.files)
		if err != nil {
			return "", err
		}
		if err := goTool("test", "-overlay="+list, "-c", "-o", program, "./"+dir); err != nil {
			return "", err
		}
		out, err := run("", ".", "^-$")
		if err != nil {
			err = fmt.Errorf("the tests of %s fail without a mutant: %w\n%s", dir, err, out)
		}
		r.control[dir] = err
	}
	if err := r.control[dir]; err != nil {
		return "", err
	}
	return twice(e.name, dir, func(pattern, skip string) (string, error) {
		return run(e.name, cmp.Or(pattern, "."), skip)
	})
}

// twice returns the first test that fails, and fails again when it is run alone:
// what fails once may have failed by chance. The function tests runs those that
// match run, or all, but not those that match skip.
func twice(mutant, pkg string, tests func(run, skip string) (string, error)) (string, error) {
	var chance []string
	for {
		out, err := tests("", "^("+strings.Join(append(chance, "-"), "|")+")$")
		if err == nil {
			return "", nil
		}
		m := failed.FindStringSubmatch(out)
		if m == nil && (strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]")) {
			return "", fmt.Errorf("%s does not compile:\n%s", mutant, out)
		}
		if m == nil || errors.Is(err, errHung) {
			return pkg, nil // it hung or crashed
		}
		name, _, _ := strings.Cut(m[1], "/")
		if _, err := tests("^"+name+"$", "^-$"); err != nil {
			return m[1], nil
		}
		fmt.Printf("          %-28s %s failed once and not again\n", mutant, m[1])
		chance = append(chance, name)
	}
}

// controlTest runs tests without a mutant, once.
func (r *runner) controlTest(pkg, pattern string) error {
	key := pkg + " " + pattern
	if _, ok := r.control[key]; !ok {
		out, err := goTest(pkg, pattern)
		if err != nil {
			err = fmt.Errorf("%s fails without a mutant: %w\n%s", key, err, out)
		}
		r.control[key] = err
	}
	return r.control[key]
}

func goTest(pkg, pattern string, flags ...string) (string, error) {
	args := append([]string{"test", "-count=1", "-vet=off", "-failfast", "-short", "-run", pattern}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KGATE_MUST=userns,hostfilter")
	return finish(cmd)
}

// tryScenario runs a scenario with a kgate of the changed source.
func (r *runner) tryScenario(e edit, name, list string) (string, error) {
	dir := filepath.Join(r.dir, "edited")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if r.edited != e.name {
		if err := goTool("test", "-overlay="+list, "-c", "-o", filepath.Join(dir, "kgate.test"), "./cmd/kgate"); err != nil {
			return "", err
		}
		r.edited = e.name
	}
	changed := &runner{dir: dir, control: r.control}
	return r.try(mutant{name: "", scenarios: []string{name}}, changed)
}
