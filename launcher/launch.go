// Package launcher is the one path from a command line to a process in a box:
// load the policy, inspect the command, plan the box, record the launch, start
// it, relay its streams and signals, and return its exit status. Every step
// that fails ends the launch: no plan, no audit line or no box means no process.
package launcher

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/launcher/audit"
	"github.com/kgate-dev/kgate/launcher/command"
	"github.com/kgate-dev/kgate/launcher/mask"
	"github.com/kgate-dev/kgate/launcher/policy"
	"github.com/kgate-dev/kgate/launcher/terminal"
)

// Request is what the person asked for.
type Request struct {
	Argv []string
	Dir  string   // working directory; Here fills it
	Env  []string // kgate's own environment; Here fills it

	Home        string // $HOME; Here fills it
	AccountHome string // the home that the user database names, "" when it names none

	AllowPaths []string // --allow-path
	AllowNets  []string // --allow-net
	Network    string   // --network
	EnvPass    []string // --env

	Terminal bool // the command gets a terminal

	Verbose io.Writer // where refusals of the network filter are told; nil: nowhere

	// Over ends the whole box when it is closed; nil: never.
	Over <-chan struct{}
	// Grace, when not 0, is how long after a signal that asks it to end the
	// command has before the whole box is ended.
	Grace time.Duration
}

// Here fills in the process's own directory, environment and homes where they
// are not set.
func (r *Request) Here() error {
	if r.Env == nil {
		r.Env = os.Environ()
	}
	if r.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return fmt.Errorf("find the working directory: %w (change to a directory that exists)", err)
		}
		r.Dir = dir
	}
	if r.Home == "" {
		r.Home = os.Getenv("HOME")
	}
	if r.AccountHome == "" {
		if u, err := user.Current(); err == nil {
			r.AccountHome = u.HomeDir
		}
	}
	return nil
}

// Launch is a request that has been read and planned: nothing has run.
type Launch struct {
	Policy *policy.Policy
	Plan   *backends.Plan // nil when the command was refused before planning
	Denied []policy.Dropped
	Masks  *mask.Rules

	request Request
	backend backends.Backend
	id      string // what the lines of one launch in the audit log have in common
}

// Prepare loads the policy, inspects the command and plans the box. Its errors
// are a *policy.RefusedError or *command.Refusal for refusals, and a plain
// error for a policy file or a flag that is wrong. A plan that is blocked is
// not an error here: its findings say so. The launch is returned with a refusal
// as far as it got, so that the refusal can be recorded.
func Prepare(r Request, b backends.Backend) (*Launch, error) {
	l := &Launch{request: r, backend: b, id: audit.NewID()}
	p, err := policy.Load(r.options())
	if err != nil {
		return l, err
	}
	l.Policy = p
	if l.Masks, err = maskRules(p, r.Env); err != nil {
		return l, err
	}
	env, dropped := p.Environment(r.Env)
	l.Denied = dropped
	if err := command.Inspect(r.Argv, command.Options{
		Denied:   p.DenyExec,
		Programs: p.Programs,
		Dir:      p.Dir,
		Path:     lookup(env, "PATH"),
		Env:      env,
	}); err != nil {
		return l, err
	}
	l.Plan, err = b.Plan(p, backends.Command{Argv: r.Argv, Dir: p.Dir, Env: env, Terminal: r.Terminal})
	return l, err
}

func (r *Request) options() policy.Options {
	return policy.Options{
		Dir: r.Dir, Home: r.Home, AccountHome: r.AccountHome, Env: r.Env,
		AllowPaths: r.AllowPaths, AllowNets: r.AllowNets, Network: r.Network, EnvPass: r.EnvPass,
	}
}

func maskRules(p *policy.Policy, env []string) (*mask.Rules, error) {
	var prefixes []string
	for _, w := range p.MaskPrefixes {
		prefixes = append(prefixes, w.Text)
	}
	var values []mask.Value
	for _, w := range p.MaskEnv {
		if v := lookup(env, w.Text); v != "" {
			values = append(values, mask.Value{Name: w.Text, Secret: v})
		}
	}
	rules, err := mask.Compile(prefixes, values)
	if err != nil {
		return nil, fmt.Errorf("mask: %w", err)
	}
	return rules, nil
}

func lookup(env []string, name string) string {
	value := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// Run launches and returns the exit status of the command. An error means that
// the command did not run to its end in a complete box; a refusal or a blocked
// plan has been recorded by then.
func Run(r Request, b backends.Backend, in, out, errs *os.File) (int, error) {
	r.Terminal = terminal.Terminal(in) || terminal.Terminal(out) || terminal.Terminal(errs)
	l, err := Prepare(r, b)
	if err == nil {
		if blocked := l.Plan.Blocked(); len(blocked) > 0 {
			err = &backends.BlockedError{Findings: blocked}
		} else if directory(in) {
			err = &InputError{}
		}
	}
	if err != nil {
		if recorded(err) {
			err = errors.Join(err, l.record(audit.Block, err.Error()))
		}
		return 0, err
	}
	if err := l.record(audit.Launch, ""); err != nil {
		return 0, within(err, r.Env)
	}
	status, err := l.relay(in, out, errs)
	if err != nil {
		err = placed(err, r.Env)
		// The launch line is already written; this one says that it came to nothing.
		return 0, errors.Join(err, l.record(audit.Block, err.Error()))
	}
	return status, nil
}

// InputError refuses a standard input that is a way out of the box: an open
// directory leads to all that lies below and above it, whatever the mount table
// shows. run exits 126 with it.
type InputError struct{}

func (*InputError) Error() string {
	return "standard input is a directory, through which the command would reach what the box hides (give a file, a pipe or </dev/null)"
}

// ExitStatus returns the status of a refusal.
func (*InputError) ExitStatus() int { return 126 }

func directory(f *os.File) bool {
	if f == nil {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

// recorded tells refusals and blocked plans, which are part of the record, from
// mistakes in a file or a flag, which are not: nothing was asked for yet.
func recorded(err error) bool {
	var (
		refused *policy.RefusedError
		refusal *command.Refusal
		input   *InputError
		blocked *backends.BlockedError
	)
	return errors.As(err, &refused) || errors.As(err, &refusal) || errors.As(err, &input) || errors.As(err, &blocked)
}

// record writes one line of the audit log. A launch whose line cannot be
// written does not start.
func (l *Launch) record(kind, reason string) error {
	r := l.request
	e := audit.Entry{
		Kind: kind, ID: l.id, Reason: reason, Dir: r.Dir, Argv: r.Argv,
		Backend: l.backend.Name(), Flags: r.flags(),
	}
	if p := l.Policy; p != nil {
		e.Project = p.Project
		e.Network = string(p.Effective().Value)
	}
	o := audit.Options{}
	if l.Masks == nil {
		// A refusal of the working directory comes before the policy's own
		// prefixes are known; the built-in kinds are masked all the same.
		l.Masks, _ = mask.Compile(nil, nil)
	}
	o.Mask = l.Masks.String
	if l.Policy != nil {
		o.Copies = copies(l.Policy)
	}
	if r.Verbose != nil {
		o.Warn = func(err error) { fmt.Fprintf(r.Verbose, "kgate: %v\n", err) }
	}
	return audit.Open(r.log(), o).Append(e)
}

// log names the file that launches are recorded in.
func (r *Request) log() string {
	if r.Home == "" {
		return audit.File(r.AccountHome)
	}
	return audit.File(r.Home)
}

// Recordable returns the audit log that a launch would be recorded in, and why
// that could not be done, so that nothing would start; it writes nothing. Here
// has to be called first.
func (r *Request) Recordable() (file string, err error) {
	file = r.log()
	return file, within(audit.Open(file, audit.Options{}).Ready(), r.Env)
}

// copies are the collectors that get each line beside the file.
func copies(p *policy.Policy) []audit.Sink {
	var sinks []audit.Sink
	if p.Journald.Value {
		sinks = append(sinks, audit.Journald())
	}
	if p.Syslog.Text != "" {
		// The address was checked when the file was read.
		if network, address, err := policy.SyslogAddress(p.Syslog.Text); err == nil {
			sinks = append(sinks, audit.Syslog(network, address))
		}
	}
	return sinks
}

// flags are the one-shot exceptions as they were typed.
func (r *Request) flags() []string {
	var out []string
	for _, f := range []struct {
		name   string
		values []string
	}{{"--allow-path", r.AllowPaths}, {"--allow-net", r.AllowNets}, {"--env", r.EnvPass}} {
		for _, v := range f.values {
			out = append(out, f.name+"="+v)
		}
	}
	if r.Network != "" {
		out = append(out, "--network="+r.Network)
	}
	return out
}
