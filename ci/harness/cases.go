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

const (
	caseOwnBox   = "in the harness's own sandbox: no command runs, the model is told which box holds"
	caseSettings = "`kgate integrate`, `--check` and `--remove`: no comment lost, every byte back"
)

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
		caseOwnBox,
		caseSettings,
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
	d.add(p, caseSettings, d.thereAndBack(p))
	if p.pkg == "" {
		return
	}
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
	if p.boxed[0] == "" {
		return
	}
	o, err = d.start(p, "own-box", true, func(r *run) { r.Steps, r.OwnBox = []step{{Command: "echo ran; touch ran"}}, true })
	if err == nil {
		err = errors.Join(absent(filepath.Join(o.project(), "ran")), o.says(0, "kgate is inside "+p.title+"'s own sandbox, which holds"))
	}
	d.add(p, caseOwnBox, err)
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
