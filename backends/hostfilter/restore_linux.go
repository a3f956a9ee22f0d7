package hostfilter

import (
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
	prog string
	warm *restoring // started ahead of need; nil: none
}

// restoring is an iptables-restore that waits for its input.
type restoring struct {
	*child
	in io.WriteCloser
}

// newRestorer installs a family's rules with the first of the programs that can,
// and returns a restorer that uses the same one from then on. Only trying tells
// which works: the kernel may lack what the host's default needs.
func newRestorer(progs []string, rules []Rule, family int) (*restorer, error) {
	first, rest := restoreText(rules, family)
	var errs []string
	for _, p := range progs {
		r := &restorer{prog: p}
		text, made := first, forNFT(p) && makeChains(family, defaults(rules, family)) == nil
		if made {
			text = withoutDefaults(first)
		}
		err := r.run(text, made)
		if err == nil {
			if rest != "" {
				err = r.run(rest, true)
			}
			// The first part stands, so no other program may begin again.
			return r, err
		}
		errs = append(errs, err.Error())
		if made {
			// The next program's rules may not be nf_tables', and would not count
			// beside chains that drop.
			if err := removeChains(family); err != nil {
				errs = append(errs, err.Error())
				break
			}
		}
	}
	if len(errs) == 0 {
		return nil, errors.New("iptables-restore is not installed")
	}
	return nil, errors.New(strings.Join(errs, "; "))
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
	cmd := command{argv: []string{r.prog}, in: in, files: []*os.File{f},
		env: append(helperEnv[:len(helperEnv):len(helperEnv)], "XTABLES_LOCKFILE=/proc/self/fd/3")}
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
