package main

import (
	"context"
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
	for _, p := range []struct {
		dir   string
		tests []string
	}{
		{"launcher/policy", []string{"./launcher/policy ."}},
		{"launcher/command", []string{"./launcher/command ."}},
		{"launcher/audit", []string{"./launcher/audit ."}},
	} {
		found, err := checks(p.dir, p.tests...)
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
	list, err := e.overlay(r.dir)
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
		if pkg == "faults" {
			if by, err := r.tryFaults(e, pattern, list); by != "" || err != nil {
				return by, err
			}
			continue
		}
		if err := r.controlTest(pkg, pattern); err != nil {
			return "", err
		}
		if by, err := tryTests(e, pkg, pattern, list); by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

// tryTests returns the first test that fails with the changed source, and fails
// again when it is run alone: what fails once may have failed by chance.
func tryTests(e edit, pkg, pattern, list string) (string, error) {
	var chance []string
	for {
		out, err := goTest(pkg, pattern, "-overlay="+list, "-skip=^("+strings.Join(append(chance, "-"), "|")+")$")
		if err == nil {
			return "", nil
		}
		m := failed.FindStringSubmatch(out)
		if m == nil && (strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]")) {
			return "", fmt.Errorf("%s does not compile:\n%s", e.name, out)
		}
		if m == nil {
			return pkg, nil // it hung or crashed
		}
		name, _, _ := strings.Cut(m[1], "/")
		if _, err := goTest(pkg, "^"+name+"$", "-overlay="+list); err != nil {
			return m[1], nil
		}
		fmt.Printf("          %-28s %s failed once and not again\n", e.name, m[1])
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
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append([]string{"test", "-count=1", "-vet=off", "-failfast", "-short", "-run", pattern}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "KGATE_MUST=userns,hostfilter")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tryFaults breaks a kgate of the changed source at the points that match.
func (r *runner) tryFaults(e edit, pattern, list string) (string, error) {
	kgate := filepath.Join(r.dir, "kgate-edited")
	if err := goTool("build", "-overlay="+list, "-o", kgate, "./cmd/kgate"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "run", "./ci/faults", "-kgate", kgate, "-n", "10", "-only", pattern)
	out, err := cmd.CombinedOutput()
	if first, rest, ok := strings.Cut(string(out), "FAILED  "); ok && err != nil && strings.Contains(first, "shown to fail") {
		at, _, _ := strings.Cut(rest, ",")
		return "faults: " + at, nil
	}
	if err != nil {
		return "", fmt.Errorf("ci/faults: %w\n%s", err, out)
	}
	return "", nil
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
