package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"
)

// maxFile is the largest policy file that is read, in bytes. A policy written
// by a person is a hundredth of it, and parsing this much takes up to half a
// second.
const maxFile = 256 << 10

// userID is who runs kgate. Tests put somebody else in.
var userID = os.Geteuid

// readFile returns the bytes of a policy file, nil when there is none. It
// never waits: what is not a regular file is not opened.
func readFile(name string, kind Kind) ([]byte, error) {
	bad := func(what, mend string) error { return &FileError{File: name, What: what, Mend: mend} }
	stat := os.Stat
	if kind == FromProject {
		// A symlink in a checkout could make an error message quote a file that
		// has nothing to do with the project.
		stat = os.Lstat
	}
	info, err := stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if link, lerr := os.Lstat(name); lerr == nil && link.Mode()&os.ModeSymlink != 0 {
			return nil, bad("is a symlink that leads nowhere", "mend the link or remove it")
		}
		return nil, nil
	}
	if err != nil {
		return nil, bad("cannot be read: "+reason(err), "kgate needs to read it, or it must not exist")
	}
	switch {
	case info.IsDir():
		if kind == FromProject && emptyDir(name) {
			return nil, nil // the placeholder of a running launch
		}
		return nil, bad("is a directory", "a policy is a file")
	case info.Mode()&os.ModeSymlink != 0:
		return nil, bad("is a symlink", "a project's policy must be a plain file")
	case !info.Mode().IsRegular():
		return nil, bad("is not a regular file", "a policy is a plain file")
	}
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if kind == FromProject {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return nil, bad("cannot be read: "+reason(err), "kgate needs to read it, or it must not exist")
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, bad("is not a regular file", "a policy is a plain file")
	}
	if kind == FromUser {
		if err := trustFile(name, info); err != nil {
			return nil, err
		}
		dir := filepath.Dir(name)
		if info, err := os.Stat(dir); err == nil {
			if err := trustFile(dir, info); err != nil {
				return nil, err
			}
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, bad("cannot be read: "+reason(err), "")
	}
	if len(data) > maxFile {
		return nil, bad("is larger than 256 KiB", "a policy is a short text")
	}
	return data, nil
}

// trustFile refuses a person's file that somebody else could have written.
func trustFile(name string, info os.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != userID() {
		return &FileError{File: name, What: fmt.Sprintf("belongs to user %d, not to you or root", st.Uid),
			Mend: "it decides what a launch may touch: chown it, or set HOME to your own home"}
	}
	if info.Mode().Perm()&0o002 != 0 {
		return &FileError{File: name, What: "can be written by everybody", Mend: "chmod o-w it"}
	}
	return nil
}

func emptyDir(name string) bool {
	d, err := os.Open(name)
	if err != nil {
		return false
	}
	defer d.Close()
	_, err = d.Readdirnames(1)
	return err == io.EOF
}

// reason is the bare cause of an error: the file is named around it already.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// checkText finds what YAML would either take silently or complain about
// without saying where.
func checkText(name string, data []byte) error {
	bad := func(line int, what, mend string) error {
		return &FileError{File: name, Line: line, What: what, Mend: mend}
	}
	utf := "save it as UTF-8 without a byte order mark"
	line := 1
	indent := true // only blanks so far on this line
	for i := 0; i < len(data); {
		c := data[i]
		switch {
		case c == '\n':
			line++
			indent = true
			i++
			continue
		case c == '\t' && indent:
			return bad(line, "is indented with a tab", "indent with spaces")
		case c == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			return bad(line, "holds a carriage return inside a line", "end lines with a newline")
		case c < 0x20 && c != '\t' && c != '\r', c == 0x7f:
			return bad(line, fmt.Sprintf("holds the control byte 0x%02x", c), "remove it")
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(data[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				return bad(line, "is not UTF-8", utf)
			case r == 0xfeff:
				return bad(line, "holds a byte order mark", utf)
			case r >= 0x80 && r < 0xa0, r == 0x2028, r == 0x2029:
				// YAML takes some of these for line ends; nobody sees them.
				return bad(line, fmt.Sprintf("holds the invisible character %U", r), "remove it")
			}
			indent = false
			i += n
			continue
		}
		if c != ' ' && c != '\t' {
			indent = false
		}
		i++
	}
	return nil
}

// yamlError turns the parser's complaint into one of ours.
func yamlError(name string, data []byte, err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if n, what, ok := strings.Cut(rest, ": "); ok {
			if _, scanErr := fmt.Sscanf(n, "%d", &line); scanErr == nil {
				text = what
			}
		}
	}
	// The parser, unlike the scanner below it, counts lines from 0, and leaves
	// the first one out.
	for _, parser := range []string{"node content", "'-' indicator", "',' or ']'", "',' or '}'", "expected key", "<document start>"} {
		if strings.Contains(text, "did not find") && strings.Contains(text, parser) {
			line++
			break
		}
	}
	if line < 1 {
		line = 1
	}
	if last := bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")) + 1; line > last {
		line = last
	}
	mend := "check the indentation, brackets and quotes there"
	if strings.Contains(text, "alphabetic or numeric") || strings.Contains(text, "cannot start any token") {
		mend = "put a text that starts with a special character in quotes"
	}
	return &FileError{File: name, Line: line, What: "not valid YAML: " + text, Mend: mend}
}
