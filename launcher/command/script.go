package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// load looks at the start of a file: is it a script, and for whom?
func (f *file) load() {
	if f.loaded {
		return
	}
	f.loaded = true
	in, err := os.Open(f.path)
	if err != nil {
		return
	}
	defer in.Close()
	buf := make([]byte, 256)
	n, err := io.ReadFull(in, buf)
	if n == 0 || (err != nil && !ended(err)) {
		return
	}
	buf = buf[:n]
	if rest, ok := bytes.CutPrefix(buf, []byte("#!")); ok {
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		// The kernel passes all that follows the interpreter as one argument.
		interpreter, arg, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if at := strings.IndexByte(interpreter, '\t'); at >= 0 {
			arg, interpreter = interpreter[at+1:]+" "+arg, interpreter[:at]
		}
		if interpreter != "" {
			f.line = []string{interpreter}
			if arg = strings.TrimSpace(arg); arg != "" {
				f.line = append(f.line, arg)
			}
		}
		return
	}
	f.text = bytes.IndexByte(buf, 0) < 0 && !bytes.HasPrefix(buf, []byte("\x7fELF")) && !macho(buf)
}

// macho recognises the programs of macOS; see mach-o/loader.h and fat.h.
func macho(b []byte) bool {
	if len(b) < 4 {
		return false
	}
	switch string(b[:4]) {
	case "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xca\xfe\xba\xbe", "\xca\xfe\xba\xbf":
		return true
	}
	return false
}

// script inspects a script that is started as a program.
func (i *inspector) script(c setting, f *file, words []field) error {
	if f == nil {
		return nil
	}
	f.load()
	if f.line == nil && !f.text {
		return nil
	}
	c.plain = true
	inner := append(append(make([]field, 0, len(words)+2), fields(f.line)...), known(f.path))
	if f.text {
		inner = []field{known("/bin/sh"), known(f.path)}
	}
	return i.within(words[0].text, func() error { return i.start(append(inner, words[1:]...), c) })
}

func fields(line []string) []field {
	out := make([]field, len(line))
	for n, s := range line {
		out[n] = known(s)
	}
	return out
}

// systemDirs hold the system's own scripts, which are not read: they call
// network programs in branches that are never taken here, and are not the
// person's to change.
var systemDirs = []string{"/usr/", "/bin/", "/sbin/", "/opt/homebrew/", "/nix/store/", "/snap/", "/Library/", "/System/"}

// scriptFile inspects the text of a script that a shell reads. Only what it
// surely starts counts, at its top level and outside branches: a script may
// well hold a call of a denied program that it never makes, and the kernel
// answers that one. A file that is not text, or is long, is left to the kernel too.
func (i *inspector) scriptFile(c setting, name string, params []field, lang syntax.LangVariant) error {
	real := ""
	for _, path := range i.candidates(name) {
		var err error
		if real, err = filepath.EvalSymlinks(path); err == nil {
			break
		}
	}
	if real == "" {
		return nil
	}
	for _, dir := range systemDirs {
		if strings.HasPrefix(real, dir) && !i.below(real) {
			return nil
		}
	}
	info, err := os.Lstat(real)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil
	}
	if i.files++; i.files > 32 {
		return i.undecided(c, name, "more than 32 script files stand on the command line")
	}
	text, err := os.ReadFile(real)
	if err != nil || len(text) > maxScript || bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	c.file = true
	return i.within(fmt.Sprintf("script %s", name), func() error { return i.shellText(c, string(text), params, lang) })
}

// below reports whether a path lies below the working directory.
func (i *inspector) below(path string) bool {
	return i.o.Dir != "" && i.o.Dir != "/" && strings.HasPrefix(path, strings.TrimSuffix(i.o.Dir, "/")+"/")
}

// sourced inspects ". file".
func (i *inspector) sourced(c setting, args []field) error {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return nil
	}
	return i.read(c, args[0], append([]field{unknown}, args[1:]...), syntax.LangBash)
}

// read inspects what a shell reads from a file that a word names.
func (i *inspector) read(c setting, name field, params []field, lang syntax.LangVariant) error {
	switch {
	case name.proc != nil:
		return i.fed(c, *name.proc, params, lang)
	case name.text == "/dev/stdin" || name.text == "/dev/fd/0" || name.text == "/proc/self/fd/0":
		return i.fed(c, c.in, params, lang)
	case name.sure && !name.glob:
		return i.scriptFile(c, name.text, params, lang)
	}
	return nil
}

// fed inspects what a shell reads from its input.
func (i *inspector) fed(c setting, in input, params []field, lang syntax.LangVariant) error {
	switch {
	case !in.given: // a terminal or what kgate itself was given: not on the command line
		return nil
	case in.path != "":
		return i.scriptFile(c, in.path, params, lang)
	case !in.known:
		return i.undecided(c, "", "the commands that a shell reads from a pipe are decided only at run time: write them out")
	}
	c.in = input{}
	return i.shellText(c, in.text, params, lang)
}
