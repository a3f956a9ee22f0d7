//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/kgate-dev/kgate/verify/lab"
)

// cell is what came of one case with one harness.
type cell struct {
	Program string
	Case    string
	OK      bool
	NotRun  bool
	Text    string
}

const resultsName = "results.json"

// secret is put together by the command only, so that no request has it but for
// the command's output.
const secret = "ghp_" + secretTail
const secretTail = "0123456789abcdefghijABCDEFGHIJ012345"

// keyValue is the model's key. It does not look like one, so that no mask hides
// it: what is shown is that the command does not have it.
const keyValue = "the-model-key-of-this-run"

// The steps of the runs that go to their end, in this order.
const (
	stepGit = iota
	stepCurl
	stepHome
	stepSecret
	stepKey
	stepCd
	stepPwd
	stepBig
)

func (p *program) steps() []step {
	return []step{
		stepGit:    {Command: "git status"},
		stepCurl:   {Command: "curl http://other.test/"},
		stepHome:   {Command: "touch ~/written && echo wrote"},
		stepSecret: {Command: "printf 'token ghp_%s\\n' " + secretTail},
		stepKey:    {Command: `echo "key=[$` + p.key + `]"`},
		stepCd:     {Command: "mkdir -p sub && cd sub && pwd"},
		stepPwd:    {Command: "pwd"},
		stepBig:    {Command: `head -c 1048576 /dev/zero | tr '\0' x | fold -w 99`},
	}
}

var stepsOfNetwork = []step{{Command: "./kgate-probe tcp allowed.test 9999; echo allowed=$?; ./kgate-probe tcp other.test 9999; echo other=$?"}}

// The command does not listen to the hang-up that the end of a harness's own
// pseudo-terminal is.
var stepsOfWaiting = []step{{Command: "trap '' HUP; touch started; sleep 600; touch finished", Timeout: 3000}}

// The cases as the table has them, and the controls.
var (
	cases = []string{
		"`git status` works and the model gets its text",
		"`curl` is refused with 126, the model gets the line, the log a block and no launch",
		"a write to home does not reach it",
		"a secret in the output is masked in what the model's API gets",
		"the model's key is not in the command's environment",
		"`cd` lasts as long as it does without kgate",
		"1 MiB of output arrives",
		"a command that takes too long: nothing is left running",
		"the harness is interrupted: nothing is left running",
		"the harness is killed: nothing is left running",
		"`network: restricted`: the listed host answers, another does not",
		"a missing kgate: no command runs",
	}
	controls = []string{
		"`curl` starts",
		"a write to home reaches it",
		"the secret reaches the model's API",
		"the model's key is in the command's environment",
		"both hosts answer",
		"the harness is killed: the command runs on",
	}
)

// drive makes all runs and writes down what they found.
func drive(work string, chosen []*program) error {
	d := &driver{work: work}
	for _, p := range chosen {
		d.program(p)
	}
	text, err := json.MarshalIndent(d.cells, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, resultsName), text, 0o644); err != nil {
		return err
	}
	return nil
}

type driver struct {
	work  string
	cells []cell
}

func (d *driver) add(p *program, name string, err error) {
	c := cell{Program: p.name, Case: name, OK: err == nil}
	said := "yes"
	if err != nil {
		c.Text = err.Error()
		said = "NO: " + c.Text
		var skipped notRun
		if errors.As(err, &skipped) {
			c.NotRun = true
			said = c.Text
		}
	}
	d.cells = append(d.cells, c)
	fmt.Printf("%-12s %s: %s\n", p.name, name, said)
}

// notRun is why a case was not run.
type notRun string

func (n notRun) Error() string { return "not run: " + string(n) }

func (d *driver) program(p *program) {
	bare, bareErr := d.start(p, "control", false, func(r *run) { r.Steps = p.steps() })
	boxed, boxedErr := d.start(p, "boxed", true, func(r *run) { r.Steps = p.steps() })
	with := func(name string, check func(o *outcome) error) {
		err := boxedErr
		if err == nil {
			err = check(boxed)
		}
		d.add(p, name, err)
	}
	without := func(name string, check func(o *outcome) error) {
		err := bareErr
		if err == nil {
			err = check(bare)
		}
		d.add(p, name, err)
	}
	with(cases[0], func(o *outcome) error { return o.says(stepGit, "On branch ") })
	with(cases[1], func(o *outcome) error { return o.refused(p) })
	with(cases[2], func(o *outcome) error {
		return errors.Join(o.says(stepHome, "wrote"), absent(filepath.Join(o.home(), "written")))
	})
	with(cases[3], func(o *outcome) error {
		if bytes.Contains(o.text, []byte(secret)) {
			return errors.New("the secret is in a request")
		}
		return o.says(stepSecret, "[masked: ")
	})
	with(cases[4], func(o *outcome) error { return o.says(stepKey, "key=[]") })
	with(cases[5], func(o *outcome) error {
		if bareErr != nil {
			return bareErr
		}
		return o.sameDirectory(bare)
	})
	with(cases[6], func(o *outcome) error { return o.says(stepBig, strings.Repeat("x", 99)) })
	without(controls[0], func(o *outcome) error { return present(filepath.Join(o.home(), "curl-ran")) })
	without(controls[1], func(o *outcome) error { return present(filepath.Join(o.home(), "written")) })
	without(controls[2], func(o *outcome) error {
		if !bytes.Contains(o.text, []byte(secret)) {
			return errors.New("no request has the secret")
		}
		return nil
	})
	without(controls[3], func(o *outcome) error { return o.says(stepKey, "key=["+keyValue+"]") })

	for i, sig := range []syscall.Signal{0, syscall.SIGINT, syscall.SIGKILL} {
		o, err := d.start(p, "waits-"+fmt.Sprint(i), true, func(r *run) { r.Steps, r.Signal = stepsOfWaiting, sig })
		if err == nil {
			err = o.ended(sig)
		}
		d.add(p, cases[7+i], err)
	}
	o, err := d.start(p, "waits-bare", false, func(r *run) { r.Steps, r.Signal = stepsOfWaiting, syscall.SIGKILL })
	if err == nil && len(o.Left) == 0 {
		err = errors.New("nothing was left running")
	}
	d.add(p, controls[5], err)
	o, err = d.network(p, true)
	if err == nil {
		err = errors.Join(o.says(0, "hello from 203.0.113.10:9999"), o.says(0, "allowed=0"), o.says(0, "other=1"))
	}
	d.add(p, cases[10], err)
	if o, err = d.network(p, false); err == nil {
		err = errors.Join(o.says(0, "allowed=0"), o.says(0, "other=0"))
	}
	d.add(p, controls[4], err)

	o, err = d.start(p, "missing", true, func(r *run) { r.Steps, r.Moved = []step{{Command: "touch ran"}}, true })
	if err == nil {
		err = absent(filepath.Join(o.project(), "ran"))
	}
	if err == nil && len(o.results) == 0 {
		err = errors.New("the model got no answer")
	}
	d.add(p, cases[11], err)
}

func (d *driver) network(p *program, boxed bool) (*outcome, error) {
	if err := lab.Probe(); err != nil {
		return nil, notRun(err.Error())
	}
	for _, name := range []string{"slirp4netns", "iptables-restore", "nsenter"} {
		if err := exec.Command("sh", "-c", "PATH=$PATH:/usr/sbin:/sbin command -v "+name).Run(); err != nil {
			return nil, notRun(name + " is missing")
		}
	}
	return d.start(p, fmt.Sprintf("network-%v", boxed), boxed, func(r *run) { r.Steps, r.Lab = stepsOfNetwork, true })
}

// start sets a home and a project up, integrates kgate unless this is a control,
// and runs the harness.
func (d *driver) start(p *program, name string, boxed bool, change func(*run)) (*outcome, error) {
	r := &run{Dir: filepath.Join(d.work, p.name+"-"+name), Mark: "KGATE_RUN_" + strings.NewReplacer("-", "_").Replace(p.name+"_"+name)}
	bin, fake := filepath.Join(r.Dir, "bin"), filepath.Join(r.Dir, "fake")
	for _, dir := range []string{r.home(), r.project(), bin, fake} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	path := strings.Join([]string{fake, bin, filepath.Dir(lookPath("node")), "/usr/local/bin", "/usr/bin", "/bin"}, ":")
	files := map[string]string{
		"fake/curl": "#!/bin/sh\ntouch \"$HOME/curl-ran\"\necho fetched\n",
		// A login shell sets PATH anew.
		"home/.profile": "PATH='" + path + "'\n",
	}
	for name, text := range p.settings {
		files["home/"+name] = text
	}
	for name, text := range files {
		file := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"bin/kgate", "proj/kgate-probe"} {
		if err := copyFile(filepath.Join(d.work, "bin", "kgate"), filepath.Join(r.Dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	links := map[string]string{"bin/kgate-sh": "kgate"}
	if p.links {
		links["bin/"+p.name] = p.argv()[0]
	}
	for name, to := range links {
		if err := os.Symlink(to, filepath.Join(r.Dir, name)); err != nil {
			return nil, err
		}
	}
	r.Env = append([]string{"HOME=" + r.home(), "PATH=" + path, "LANG=C.UTF-8", "TERM=dumb", "SHELL=/bin/bash", "USER=person", p.key + "=" + keyValue}, p.env...)
	r.Argv = append(p.argv(), p.args...)
	if r.Argv[0] == "node" {
		r.Argv[0] = lookPath("node")
	}
	change(r)
	if err := r.command("git", "init", "-q"); err != nil {
		return nil, err
	}
	if boxed {
		if err := r.integrate(p); err != nil {
			return nil, err
		}
	}
	if r.Moved {
		for _, name := range []string{"kgate", "kgate-sh"} {
			if err := os.Remove(filepath.Join(bin, name)); err != nil {
				return nil, err
			}
		}
	}
	if err := r.do(); err != nil {
		return nil, err
	}
	return read(r)
}

func lookPath(name string) string {
	file, err := exec.LookPath(name)
	if err != nil {
		return name
	}
	return file
}

// integrate does what a person does once.
func (r *run) integrate(p *program) error {
	if err := r.command("kgate", "init"); err != nil {
		return err
	}
	if r.Lab {
		policy := "version: 1\nnetwork: restricted\nallow:\n  hosts: [allowed.test]\n"
		if err := os.WriteFile(filepath.Join(r.home(), ".kgate", "config.yaml"), []byte(policy), 0o600); err != nil {
			return err
		}
	} else if err := r.command("kgate", "network", "off"); err != nil {
		return err
	}
	if err := r.command("kgate", "integrate", p.name); err != nil {
		return err
	}
	return r.command("kgate", "integrate", p.name, "--check")
}

func (r *run) command(argv ...string) error {
	file := argv[0]
	if own := filepath.Join(r.Dir, "bin", file); file == "kgate" {
		file = own
	}
	cmd := exec.Command(file, argv[1:]...)
	cmd.Dir, cmd.Env = r.project(), r.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// outcome is what a run left behind.
type outcome struct {
	*run
	text    []byte   // all requests
	results []string // what the model was told of each call, in order
}

// read takes the results from the request that has most of them.
func read(r *run) (*outcome, error) {
	o := &outcome{run: r}
	var err error
	if o.text, err = os.ReadFile(r.requests()); err != nil {
		return nil, err
	}
	for line := range bytes.Lines(o.text) {
		var request struct{ Body any }
		if err := json.Unmarshal(line, &request); err != nil {
			return nil, err
		}
		if got := results(request.Body); len(got) > len(o.results) {
			o.results = got
		}
	}
	if len(o.text) == 0 {
		said, _ := os.ReadFile(filepath.Join(r.Dir, "output.log"))
		return nil, fmt.Errorf("the harness asked the model nothing (%s): %.300s", r.Status, said)
	}
	return o, nil
}

// results are the results of tool calls in a request of any of the dialects.
// Objects of one list keep its order, and none holds two.
func results(v any) (out []string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, results(e)...)
		}
	case map[string]any:
		switch {
		case v["type"] == "function_call_output":
			return []string{plain(v["output"])}
		case v["role"] == "tool", v["type"] == "tool_result":
			return []string{plain(v["content"])}
		case v["functionResponse"] != nil:
			return []string{plain(v["functionResponse"])}
		}
		for _, e := range v {
			out = append(out, results(e)...)
		}
	}
	return out
}

// plain is all text in a value.
func plain(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, plain(e))
		}
		return strings.Join(all, "\n")
	case map[string]any:
		var all []string
		for _, e := range v {
			all = append(all, plain(e))
		}
		slices.Sort(all)
		return strings.Join(all, "\n")
	}
	return ""
}

func (o *outcome) says(n int, want string) error {
	if n >= len(o.results) {
		return fmt.Errorf("the model got %d results, of which this would be number %d (the harness ended with %s)", len(o.results), n+1, o.Status)
	}
	if !strings.Contains(o.results[n], want) {
		return fmt.Errorf("the model got %.200q", o.results[n])
	}
	return nil
}

// refused is the case of the denied program.
func (o *outcome) refused(p *program) error {
	errs := []error{o.says(stepCurl, `kgate: denied program "curl", not started`), absent(filepath.Join(o.home(), "curl-ran"))}
	if p.status != "" {
		errs = append(errs, o.says(stepCurl, fmt.Sprintf(p.status, 126)))
	}
	log, err := os.ReadFile(filepath.Join(o.home(), ".kgate", "audit.jsonl"))
	if err != nil {
		return err
	}
	blocks := 0
	for line := range bytes.Lines(log) {
		var e struct {
			Kind string
			Argv []string
		}
		if json.Unmarshal(line, &e) == nil && strings.Contains(strings.Join(e.Argv, " "), "curl") {
			if e.Kind == "block" {
				blocks++
			} else {
				errs = append(errs, fmt.Errorf("the log has a %s of it", e.Kind))
			}
		}
	}
	if blocks != 1 {
		errs = append(errs, fmt.Errorf("the log has %d blocks of it, want 1", blocks))
	}
	return errors.Join(errs...)
}

// sameDirectory compares where the call after the one with cd was, as a place in
// the project.
func (o *outcome) sameDirectory(bare *outcome) error {
	where := func(o *outcome) string {
		if stepPwd >= len(o.results) {
			return "nowhere"
		}
		for _, line := range strings.Fields(o.results[stepPwd]) {
			if rest, ok := strings.CutPrefix(line, o.project()); ok {
				return "the project" + rest
			}
		}
		return "elsewhere"
	}
	if a, b := where(o), where(bare); a != b || a == "nowhere" || a == "elsewhere" {
		return fmt.Errorf("the next call is in %s, without kgate in %s", a, b)
	}
	return o.says(stepCd, o.project()+"/sub")
}

// ended is the case of a command that did not end by itself.
func (o *outcome) ended(sig syscall.Signal) error {
	if err := present(filepath.Join(o.project(), "started")); err != nil {
		return fmt.Errorf("the command was not started (the harness ended with %s)", o.Status)
	}
	if len(o.Left) > 0 {
		return fmt.Errorf("left running: %s", strings.Join(o.Left, "; "))
	}
	if sig != syscall.SIGKILL && o.Late {
		return errors.New("the harness did not end by itself")
	}
	if sig == 0 && len(o.results) == 0 {
		return fmt.Errorf("the model was told nothing (the harness ended with %s)", o.Status)
	}
	return absent(filepath.Join(o.project(), "finished"))
}

func absent(file string) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s was made", filepath.Base(file))
	}
	return nil
}

func present(file string) error {
	if _, err := os.Lstat(file); err != nil {
		return fmt.Errorf("%s was not made", filepath.Base(file))
	}
	return nil
}
