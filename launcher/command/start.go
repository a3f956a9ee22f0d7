package command

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// start inspects one command line: the program, and what it would start in turn.
func (i *inspector) start(words []field, c setting) error {
	if err := i.step(c); err != nil || len(words) == 0 {
		return passed(err)
	}
	first := words[0]
	if first.glob {
		return i.matches(words, c)
	}
	base, ok := first.base()
	if !ok {
		if first.deferred() {
			return nil
		}
		return i.undecided(c, excerpt(first.text), fmt.Sprintf("the program %s is decided only at run time: write its name out", excerpt(first.text)))
	}
	if c.inShell() && first.sure && !strings.Contains(first.text, "/") {
		if done, err := i.builtin(c, words); done {
			return err
		}
	}
	f, err := i.program(c, first.text, base)
	if err != nil {
		return err
	}
	if err := i.applet(f, base, words[1:]); err != nil {
		return err
	}
	h := handler(base)
	if h == nil && f != nil && f.real != f.path && !multicall[filepath.Base(f.real)] {
		h = handler(filepath.Base(f.real))
	}
	if h != nil {
		c.plain = true
		if err := i.within(base, func() error { return h(i, c, words) }); err != nil {
			return err
		}
	}
	return i.script(c, f, words)
}

// special reports whether the words behind a program matter.
func special(c setting, name string) bool {
	return handler(baseName(name)) != nil || builtins(name) || c.scope.function(name) != nil || c.scope.alias(name) != nil
}

// ordinary reports whether a file that was found starts nothing by itself.
func (i *inspector) ordinary(f *file) bool {
	f.load()
	return f.line == nil && !f.text && (f.real == f.path || handler(filepath.Base(f.real)) == nil) && !multicall[filepath.Base(f.real)]
}

// matches inspects a pattern in command position: the shell takes the first
// file that matches, and which that is may change until then.
func (i *inspector) matches(words []field, c setting) error {
	first := words[0]
	dir, pattern := path.Split(first.pattern)
	dont := func() error {
		return i.undecided(c, first.text, fmt.Sprintf("the pattern %s in command position cannot be decided: write the program's name out", excerpt(first.text)))
	}
	if !first.sure || c.plain {
		if c.plain && first.sure { // no shell: the characters stand for themselves
			first.glob = false
			return i.start(append([]field{first}, words[1:]...), c)
		}
		return dont()
	}
	if !hasGlob(pattern) {
		// Only directories vary: the name is the last element.
		first.glob, first.sure = false, false
		first.text = hole + "/" + baseName(first.text)
		return i.start(append([]field{first}, words[1:]...), c)
	}
	i.globs++
	if hasGlob(dir) || i.globs > maxGlobs || len(pattern) > 255 {
		return dont()
	}
	dir = strings.ReplaceAll(dir, `\`, "")
	names, err := list(i.absolute(dir))
	if err != nil {
		return nil // nothing matches, and the pattern itself is no program
	}
	if len(names) > maxEntries {
		return dont()
	}
	tried := 0
	for _, name := range names {
		if ok, err := path.Match(pattern, name); err != nil {
			return dont()
		} else if !ok {
			continue
		}
		if tried++; tried > maxVariants {
			return dont()
		}
		if err := i.start(append([]field{known(dir + name)}, words[1:]...), c); err != nil {
			return err
		}
	}
	return nil
}

func list(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxEntries + 1)
	if len(names) > 0 {
		err = nil
	}
	return names, err
}

// builtins is the shell's own commands that start others.
func builtins(name string) bool {
	switch name {
	case "eval", ".", "source", "exec", "command", "builtin", "trap", "alias", "hash", "jobs", "compgen", "mapfile", "readarray",
		"noglob", "nocorrect", "and", "or", "not", "begin", "else", "-":
		return true
	}
	return false
}

// builtin inspects a shell's own command; done is false when name is none that
// starts others.
func (i *inspector) builtin(c setting, words []field) (done bool, err error) {
	name, args := words[0].text, words[1:]
	if !builtins(name) {
		return false, nil
	}
	err = i.within(name, func() error {
		switch name {
		case "eval":
			if len(args) > 0 && args[0].text == "--" {
				args = args[1:]
			}
			return i.shellText(c, texts(args), nil, syntax.LangBash)
		case ".", "source":
			return i.sourced(c, args)
		case "exec":
			_, rest := options(args, "a", "", true)
			c.plain = true
			return i.start(rest, c)
		case "command":
			opts, rest := options(args, "", "", true)
			if asks(opts) {
				return nil
			}
			return i.start(rest, c)
		case "builtin", "noglob", "nocorrect", "and", "or", "not", "begin", "else", "-":
			return i.start(args, c)
		case "trap":
			opts, rest := options(args, "", "", true)
			if len(opts) > 0 && opts[0].name != "--" || len(rest) < 2 || rest[0].text == "-" {
				return nil
			}
			return i.shellText(c, rest[0].text, nil, syntax.LangBash)
		case "alias":
			for _, a := range args {
				if _, value, ok := strings.Cut(a.text, "="); ok {
					if err := i.shellText(mild(c), value, nil, syntax.LangBash); err != nil {
						return err
					}
				}
			}
		case "hash":
			opts, _ := options(args, "p", "", true)
			return i.each(opts, "-p", func(f field) error { return i.start([]field{f}, mild(c)) })
		case "jobs":
			if len(args) > 0 && args[0].text == "-x" {
				return i.start(args[1:], c)
			}
		case "compgen", "mapfile", "readarray":
			opts, _ := options(args, "AWCFXPSOcdnsu", "", true)
			return i.each(opts, "-C", func(f field) error { return i.shellText(c, f.text, nil, syntax.LangBash) })
		}
		return nil
	})
	return true, err
}

// asks reports whether "command" only tells what a name is.
func asks(opts []option) bool {
	for _, o := range opts {
		if o.name == "-v" || o.name == "-V" {
			return true
		}
	}
	return false
}

// each calls f with the argument of each option of that name.
func (i *inspector) each(opts []option, name string, f func(field) error) error {
	for _, o := range opts {
		if o.name == name {
			if err := f(o.arg); err != nil {
				return err
			}
		}
	}
	return nil
}
