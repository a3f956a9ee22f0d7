package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// file is what is known about the file that a word names; nil in the cache
// when there is none.
type file struct {
	path   string // as found
	real   string // symlinks resolved; path when it is none
	info   os.FileInfo
	clear  bool     // compared with the denied files
	loaded bool     // its start has been looked at
	line   []string // of a script: the interpreter and its argument
	text   bool     // without an interpreter's line, but text: a shell runs it
}

// program refuses a word that names a denied program: by its name, by being
// the same file, or by being a copy.
func (i *inspector) program(c setting, word, base string) (*file, error) {
	if w, ok := i.denied(base); ok {
		return nil, i.deny(w.Text, w.From, "named as "+excerpt(word))
	}
	if holed(word) {
		return nil, nil
	}
	if strings.HasPrefix(word, "/") {
		if w, ok := i.denied(word); ok {
			return nil, i.deny(w.Text, w.From, "named as "+excerpt(word))
		}
	}
	f, err := i.lookup(c, word)
	if f == nil || f.clear || err != nil {
		return f, err
	}
	for n := range i.o.Programs {
		p := &i.o.Programs[n]
		if p.Multicall || p.Info == nil {
			continue
		}
		if os.SameFile(f.info, p.Info) {
			if word == p.Path {
				return nil, i.deny(p.Name, p.From, excerpt(word)+" is what that name leads to")
			}
			return nil, i.deny(p.Name, p.From, excerpt(word)+" is the same file as "+excerpt(p.Path))
		}
		if f.info.Size() == p.Info.Size() && f.info.Size() > 0 && sameBytes(f.path, p.Path) {
			return nil, i.deny(p.Name, p.From, excerpt(word)+" is a copy of "+excerpt(p.Path))
		}
	}
	f.clear = true
	return f, nil
}

// lookup finds the file that a word in command position starts.
func (i *inspector) lookup(c setting, word string) (*file, error) {
	if f, ok := i.names[word]; ok {
		return f, nil
	}
	if len(i.names) >= maxNames {
		return nil, i.undecided(c, "", "the text names more than 500 different programs: put the work into a script file")
	}
	if i.names == nil {
		i.names = make(map[string]*file)
	}
	f := i.find(word)
	i.names[word] = f
	return f, nil
}

func (i *inspector) find(word string) *file {
	if word == "" || len(word) > 4096 || strings.IndexByte(word, 0) >= 0 {
		return nil
	}
	if strings.Contains(word, "/") {
		if rest, ok := strings.CutPrefix(word, "~/"); ok {
			home, _ := i.variable("HOME")
			word = home + "/" + rest
		}
		for _, path := range i.candidates(word) {
			if f := look(path); f != nil {
				return f
			}
		}
		return nil
	}
	for path := i.o.Path; path != ""; {
		var dir string
		dir, path, _ = strings.Cut(path, ":")
		if dir == "" || dir[0] != '/' {
			dir = filepath.Join(i.o.Dir, dir)
		}
		if f := look(dir + "/" + word); f != nil && f.info.Mode()&0o111 != 0 {
			return f
		}
	}
	return nil
}

func look(path string) *file {
	info, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	f := &file{path: path, real: path, info: info}
	if info.Mode()&os.ModeSymlink != 0 {
		if f.info, err = os.Stat(path); err != nil {
			return nil
		}
		if f.real, err = filepath.EvalSymlinks(path); err != nil {
			return nil
		}
	}
	if !f.info.Mode().IsRegular() {
		return nil
	}
	return f
}

// sameBytes compares two files that have the same size. It stops at the first
// difference, so that only a copy is read whole.
func sameBytes(a, b string) bool {
	fa, err := os.Open(a)
	if err != nil {
		return false
	}
	defer fa.Close()
	fb, err := os.Open(b)
	if err != nil {
		return false
	}
	defer fb.Close()
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(fa, bufA)
		m, errB := io.ReadFull(fb, bufB)
		if n != m || !bytes.Equal(bufA[:n], bufB[:m]) {
			return false
		}
		if errA != nil || errB != nil {
			return ended(errA) && ended(errB)
		}
	}
}

func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// multicall is the programs that are many programs, chosen by their first
// argument or by the name they are called by.
var multicall = map[string]bool{
	"busybox": true, "toybox": true, "coreutils": true, "sbase-box": true, "ubase-box": true,
	"busybox.static": true, "busybox-static": true, "busybox.nosuid": true, "busybox.suid": true,
}

// applet refuses a multi-call program, under whatever name, whose first
// argument is a denied name (fence#67). The
// program itself stays allowed for its other names.
func (i *inspector) applet(f *file, base string, args []field) error {
	if len(args) == 0 || !args[0].sure {
		return nil
	}
	w, ok := i.denied(args[0].text)
	if !ok || !i.multicallFile(f, base) {
		return nil
	}
	return i.deny(w.Text, w.From, "as "+excerpt(args[0].text)+" of the multi-call program "+excerpt(base))
}

func (i *inspector) multicallFile(f *file, base string) bool {
	if multicall[base] {
		return true
	}
	if f == nil {
		return false
	}
	if multicall[filepath.Base(f.real)] {
		return true
	}
	same := func(o *file) bool {
		return o != nil && (os.SameFile(o.info, f.info) || o.info.Size() == f.info.Size() && sameBytes(o.path, f.path))
	}
	for _, p := range i.o.Programs {
		if p.Multicall && p.Info != nil && same(&file{path: p.Path, info: p.Info}) {
			return true
		}
	}
	for _, name := range []string{"busybox", "toybox"} {
		if same(i.find(name)) {
			return true
		}
	}
	return false
}
