package hostfilter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// restorer hands rules to one family's iptables-restore. It is used by one
// goroutine at a time.
type restorer struct {
	ctx  context.Context // its end is the program's
	prog string
	enter
	warm *restoring // started ahead of need; nil: none
}

// enter is how a program gets into the box's namespaces; zero: it is there.
type enter struct {
	nsenter string
	ns      *namespaces
}

// restoring is an iptables-restore that waits for its input.
type restoring struct {
	*child
	in io.WriteCloser
}

// install installs both families' rules side by side. Only trying tells which
// program works: the kernel may lack what the host's default needs.
func install(ctx context.Context, c Config, ns *namespaces) (installed, error) {
	rules := Rules(c)
	try := func(progs []string, family int) (prog string, err error) {
		var errs []string
		first, rest := restoreText(rules, family)
		for _, prog = range progs {
			r := &restorer{ctx: ctx, prog: prog, enter: enter{c.Tools.Nsenter, ns}}
			err = r.run(first, false)
			if err == nil {
				if rest != "" {
					err = r.run(rest, true)
				}
				// The first part stands, so no other program may begin again.
				return prog, err
			}
			errs = append(errs, err.Error())
		}
		if len(progs) == 0 {
			return "", errors.New("not installed")
		}
		return "", errors.New(strings.Join(errs, "; "))
	}
	var i installed
	var err4, err6 error
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.Prog6, err6 = try(c.Tools.Restore6, 6)
	}()
	i.Prog, err4 = try(c.Tools.Restore, 4)
	<-done
	switch {
	case err4 != nil && strings.Contains(err4.Error(), ": nsenter: "):
		return i, &Fault{RowEnter, err4, ""}
	case err4 != nil:
		return i, &Fault{RowFilter, err4, mendFilter}
	case err6 != nil && c.IPv6:
		return i, &Fault{RowFilter6, err6, mendFilter6}
	case err6 != nil:
		i.Prog6 = ""
	}
	return i, nil
}

// open adds rules that accept packets to the addresses; close takes them away.
func (r *restorer) open(ks []key) error  { return r.run(changeText("-A", ks), true) }
func (r *restorer) close(ks []key) error { return r.run(changeText("-D", ks), true) }

// prepare starts the next change's program ahead of need.
func (r *restorer) prepare() {
	if r.warm == nil {
		r.warm, _ = r.start(true)
	}
}

func (r *restorer) run(text string, keep bool) error {
	p := r.warm
	r.warm = nil
	if p == nil || !keep {
		var err error
		if p, err = r.start(keep); err != nil {
			return err
		}
	}
	defer context.AfterFunc(r.ctx, p.kill)()
	_, err := io.WriteString(p.in, text)
	p.in.Close()
	<-p.gone
	switch said := words(p.stderr.String()); {
	case p.status == 0:
		return err
	case said != "":
		return fmt.Errorf("%s: %s", r.prog, said)
	}
	return fmt.Errorf("%s: %w", r.prog, p.fault("early"))
}

// start starts the program. The legacy programs take a lock in a directory that
// an ordinary user cannot write; a file in memory is as good, since the rules
// of this namespace are nobody else's.
func (r *restorer) start(keep bool) (*restoring, error) {
	lock, err := unix.MemfdCreate("xtables.lock", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a lock file: %w", err)
	}
	f := os.NewFile(uintptr(lock), "xtables.lock")
	defer f.Close()
	in, text, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe to %s: %w", r.prog, err)
	}
	defer in.Close()
	cmd := command{argv: []string{r.prog}, in: in, files: []*os.File{f}, env: append(helperEnv[:len(helperEnv):len(helperEnv)], fmt.Sprintf("XTABLES_LOCKFILE=/proc/self/fd/%d", fdLock))}
	if r.ns != nil {
		cmd.argv = append(enterArgv(r.nsenter, fdRestoreUser, fdRestoreNet), r.prog)
		cmd.files = append(cmd.files, r.ns.user, r.ns.net)
	}
	if keep {
		cmd.argv = append(cmd.argv, "--noflush")
	}
	c, err := start(r.prog, cmd)
	if err != nil {
		text.Close()
		return nil, err
	}
	return &restoring{c, text}, nil
}
