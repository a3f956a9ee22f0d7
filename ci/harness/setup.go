//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// start sets a home and a project up, integrates kgate unless this is a control,
// and runs the harness.
func (d *driver) start(p *program, name string, boxed bool, change func(*run)) (*outcome, error) {
	r, err := d.setUp(p, name)
	if err != nil {
		return nil, err
	}
	change(r)
	if boxed {
		if err := r.integrate(p); err != nil {
			return nil, err
		}
	}
	if r.OwnBox {
		if err := r.ownBox(p); err != nil {
			return nil, err
		}
	}
	if r.Moved {
		for _, name := range []string{"kgate", "kgate-sh"} {
			if err := os.Remove(filepath.Join(r.Dir, "bin", name)); err != nil {
				return nil, err
			}
		}
	}
	if err := r.do(); err != nil {
		return nil, err
	}
	return read(r)
}

// setUp makes a home and a project, with kgate on PATH.
func (d *driver) setUp(p *program, name string) (*run, error) {
	r := &run{Dir: filepath.Join(d.work, p.name+"-"+name), Mark: "KGATE_RUN_" + strings.NewReplacer("-", "_").Replace(p.name+"_"+name)}
	bin, fake := filepath.Join(r.Dir, "bin"), filepath.Join(r.Dir, "fake")
	for _, dir := range []string{r.home(), r.project(), bin, fake} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	path := strings.Join([]string{fake, bin, "/usr/local/bin", "/usr/bin", "/bin"}, ":")
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
	return r, r.command("git", "init", "-q")
}

// ownBox turns the harness's own sandbox on.
func (r *run) ownBox(p *program) error {
	for name := range p.settings {
		file := filepath.Join(r.home(), name)
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.Contains(text, []byte(p.boxed[0])) {
			return fmt.Errorf("%s does not turn the sandbox off", name)
		}
		if err := os.WriteFile(file, bytes.Replace(text, []byte(p.boxed[0]), []byte(p.boxed[1]), 1), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// thereAndBack integrates kgate, has it checked, and takes it back: nothing but
// that may differ in between, and nothing at the end.
func (d *driver) thereAndBack(p *program) error {
	r, err := d.setUp(p, "settings")
	if err != nil {
		return err
	}
	if err := r.command("kgate", "init"); err != nil {
		return err
	}
	state := func() string {
		var b strings.Builder
		for name := range p.settings {
			text, err := os.ReadFile(filepath.Join(r.home(), name))
			fmt.Fprintf(&b, "%s %v %s\n", name, err, text)
		}
		policy, err := os.ReadFile(filepath.Join(r.home(), ".kgate", "config.yaml"))
		fmt.Fprintf(&b, "policy %v %s\n", err, policy)
		return b.String()
	}
	before := state()
	if err := r.command("kgate", "integrate", p.name, "--check"); err == nil {
		return errors.New("--check finds it in force before it was done")
	}
	for _, step := range []struct {
		args    []string
		changes bool
	}{
		{[]string{"--dry-run"}, false}, {nil, true}, {nil, true}, {[]string{"--check"}, true}, {[]string{"--remove", "--dry-run"}, true},
		{[]string{"--remove"}, false},
	} {
		argv := append([]string{"kgate", "integrate", p.name}, step.args...)
		if err := r.command(argv...); err != nil {
			return err
		}
		if now := state(); (now != before) != step.changes {
			return fmt.Errorf("%s: changed is %v", strings.Join(argv, " "), now != before)
		} else if step.changes && strings.Count(now, "survive") != strings.Count(before, "survive") {
			return fmt.Errorf("%s: a comment is lost", strings.Join(argv, " "))
		}
	}
	return nil
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
