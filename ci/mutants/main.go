// Mutants leaves out each part of the box and each rule of the host filter in
// turn, and runs the scenario that is to fail without it.
//
//	go run ./ci/mutants [-sample N] [-only PATTERN] [-list]
//
// It builds the scenarios' test program behind the build tag "mutant", which is
// never shipped and reads from KGATE_MUTANT what to leave out, and runs each
// scenario of the table once without a mutant: what fails then shows nothing. A
// mutant is killed when a scenario of its line in the table fails, and fails again
// when it is run once more; one that no scenario fails for has survived, and the
// exit status is 1. It is 1 too when kgate has a part that the table does not know.
//
// Other mutants are made in the source: each check of the policy, of command
// lines and of the log ("check:", its condition never holds; all of a package's
// are in one build of its tests), and the steps of a launch ("step:", see steps).
// They are built with an overlay and are killed by tests of Go or by scenarios.
// The checks need no root. The lines of the profile for macOS have their mutants
// in the tests of backends/seatbelt (TestEveryLineIsNeeded, TestEveryWordIsNeeded),
// some eight thousand in seconds.
//
// Run it as root: some parts matter to root alone, and scenarios run as root and
// as an ordinary user. The whole takes an hour or more.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// limit is how long one scenario may take with a part left out; a box that
// hangs for want of it is as good a sign as one that fails.
const limit = 3 * time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	sample := flag.Int("sample", 0, "try `N` mutants taken at random (0: all)")
	only := flag.String("only", "", "try the mutants whose names match `PATTERN`")
	list := flag.Bool("list", false, "print the table and try none")
	flag.Parse()
	var end context.CancelFunc
	stop, end = signal.NotifyContext(stop, syscall.SIGINT, syscall.SIGTERM)
	defer end()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	chosen, err := all(pattern)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range chosen {
			fmt.Printf("%-28s %s\n", m.name, strings.Join(m.scenarios, " "))
		}
		return nil
	}
	if *sample > 0 && *sample < len(chosen) {
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:*sample]
	}
	dir, err := os.MkdirTemp("", "kgate-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := runner{dir: dir, control: map[string]error{}}
	if slices.ContainsFunc(chosen, mutant.boxed) {
		if os.Geteuid() != 0 {
			return errors.New("some parts matter to root alone: run it as root")
		}
		if err := r.build(); err != nil {
			return err
		}
	}
	if *sample == 0 && *only == "" {
		if err := known(dir); err != nil {
			return err
		}
	}
	killed, survived := 0, []string{}
	for _, m := range chosen {
		by, err := r.killer(m)
		if by == "" && err == nil { // once more: some are a matter of milliseconds
			by, err = r.killer(m)
		}
		if stop.Err() != nil {
			return errors.New("stopped before the end")
		}
		if err != nil {
			// One scenario that fails without a mutant is no reason to leave the
			// others untried.
			survived = append(survived, m.name)
			fmt.Printf("NOT SHOWN %-28s %v\n", m.name, err)
			continue
		}
		if by == "" {
			survived = append(survived, m.name)
			fmt.Printf("SURVIVED  %-28s tried %s\n", m.name, strings.Join(m.scenarios, " "))
			continue
		}
		killed++
		fmt.Printf("killed    %-28s %s\n", m.name, by)
	}
	fmt.Printf("%d of %d killed%s\n", killed, len(chosen), r.kinds(chosen, survived))
	if len(survived) > 0 {
		return fmt.Errorf("survived: %s", strings.Join(survived, " "))
	}
	return nil
}

// all is every mutant whose name matches.
func all(pattern *regexp.Regexp) ([]mutant, error) {
	every := table()
	found, err := edits()
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		every = append(every, mutant{e.name, e.tests, &e})
	}
	return slices.DeleteFunc(every, func(m mutant) bool { return !pattern.MatchString(m.name) }), nil
}

// killer returns what fails for a mutant, "" if nothing does.
func (r *runner) killer(m mutant) (string, error) {
	if m.edit != nil {
		return r.tryEdit(*m.edit)
	}
	return r.try(m, r)
}

// kinds says how many of each kind were killed.
func (*runner) kinds(tried []mutant, survived []string) string {
	count := map[string][2]int{}
	for _, m := range tried {
		kind, _, ok := strings.Cut(m.name, ":")
		if m.edit == nil || !ok {
			kind = "box and filter"
		}
		c := count[kind]
		c[1]++
		if !slices.Contains(survived, m.name) {
			c[0]++
		}
		count[kind] = c
	}
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		text += fmt.Sprintf("; %s: %d of %d", kind, count[kind][0], count[kind][1])
	}
	return text
}

// boxed says whether it takes a box to show that the mutant fails.
func (m mutant) boxed() bool {
	return !strings.HasPrefix(m.name, "check:")
}

// build builds the test programs without a change of the source.
func (r *runner) build() error {
	for _, program := range []string{"cmd/kgate", "backends/bubblewrap"} {
		if err := goTool("test", "-tags", "mutant", "-c", "-o", filepath.Join(r.dir, filepath.Base(program)+".test"), "./"+program); err != nil {
			return err
		}
	}
	return nil
}

// runner runs scenarios.
type runner struct {
	dir     string           // where the test programs are
	control map[string]error // what each scenario does without a mutant
	edited  string           // the mutant of the source that is built
}

// try returns the scenario that fails without the mutant's part, with the user
// that it failed for. The programs of with are the mutant's.
func (r *runner) try(m mutant, with *runner) (string, error) {
	for _, name := range m.scenarios {
		users := []string{"TestScriptsAsUser", "TestScripts"}
		if strings.HasPrefix(name, "Test") {
			users = []string{""}
		}
		for _, user := range users {
			if _, ok := r.control[user+name]; !ok {
				out, err := r.scenario(user, name, "")
				if err != nil { // once more: by chance?
					out, err = r.scenario(user, name, "")
				}
				if err != nil {
					err = fmt.Errorf("%s fails without a mutant (%s): %w\n%s", name, user, err, out)
				}
				r.control[user+name] = err
			}
			if err := r.control[user+name]; err != nil {
				return "", err
			}
			_, err := with.scenario(user, name, m.name)
			if err == nil {
				continue
			}
			if !errors.Is(err, errHung) {
				_, err = with.scenario(user, name, m.name)
			}
			if err == nil {
				fmt.Printf("          %-28s %s failed once and not again\n", m.name, name)
			} else {
				return name + map[string]string{"TestScripts": " as root", "TestScriptsAsUser": ""}[user], nil
			}
		}
	}
	return "", nil
}

// scenario runs one, or a test where the name is one's, with a part left out.
func (r *runner) scenario(user, name, omitted string) (string, error) {
	program, pattern, passed := "kgate.test", "^"+user+"$/^"+name+"$", "--- PASS: TestScripts/"+name
	if strings.HasPrefix(name, "Test") {
		pattern, passed = "^"+strings.ReplaceAll(name, "/", "$/^")+"$", "--- PASS: "+name
		if !strings.HasPrefix(name, "TestTerminal") {
			program = "bubblewrap.test"
		}
	}
	cmd := exec.Command(filepath.Join(r.dir, program), "-test.run="+pattern, "-test.v")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "KGATE_MUST=userns,hostfilter", "KGATE_MUTANT="+omitted)
	out, err := finish(cmd)
	if err == nil && !strings.Contains(out, passed) {
		return out, fmt.Errorf("there is no scenario %s", name)
	}
	return out, err
}

// stop is what ends the whole run: Ctrl-C or SIGTERM.
var stop = context.Background()

// finish runs a command for as long as one scenario may take and returns what it
// prints. What it has started ends with it: a test that hangs for want of a part
// would otherwise go on beside those that follow.
func finish(cmd *exec.Cmd) (string, error) {
	ctx, cancel := context.WithTimeout(stop, limit)
	defer cancel()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second // for who holds the output open
	if err := cmd.Start(); err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })()
	err := cmd.Wait()
	if ctx.Err() != nil {
		err = errHung
	}
	return out.String(), err
}

// errHung needs no second time: it was no moment's chance.
var errHung = fmt.Errorf("it has not ended in %v", limit)

// known compares the table with what kgate plans for a policy that has nearly
// everything.
func known(dir string) error {
	kgate := filepath.Join(dir, "kgate")
	if err := goTool("build", "-o", kgate, "./cmd/kgate"); err != nil {
		return err
	}
	project := filepath.Join(dir, "home", "project")
	if err := os.MkdirAll(filepath.Join(project, ".git", "hooks"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"home/.kgate/config.yaml": "version: 1\nnetwork: restricted\nipv6: true\nallow:\n  hosts: [203.0.113.20:80, allowed.test]\n  paths: [~/shown, {path: ~/kept, write: true}]\ndeny:\n  read: [~/shown/secret]\n",
		"home/shown/secret":       "", "home/kept/file": "", "home/project/.git/config": "", "home/project/.git/HEAD": "ref: refs/heads/main\n", "home/project/.envrc": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	cmd := exec.Command(kgate, "explain", "--json", "--", "true")
	cmd.Dir = project
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var plan struct{ Parts []struct{ Name string } }
	if err == nil {
		err = json.Unmarshal(out, &plan)
	}
	if err != nil {
		return fmt.Errorf("kgate explain: %w", err)
	}
	var missing []string
	for _, p := range plan.Parts {
		if !slices.ContainsFunc(table(), func(m mutant) bool { return m.covers(p.Name) }) && !vital[p.Name] {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the table does not know these parts of the box: %s", strings.Join(missing, " "))
	}
	return nil
}

func goTool(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}
