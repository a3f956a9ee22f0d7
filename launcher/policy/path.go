package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// expand makes an absolute, lexically clean path of what a person wrote.
// Relative ones count from base. A path that cannot mean what it seems to mean
// is an error, because a deny that names nothing protects nothing.
func expand(s, home, base string) (string, error) {
	switch {
	case s == "":
		return "", errors.New("an empty path")
	case strings.IndexByte(s, 0) >= 0:
		return "", errors.New("a path cannot hold a NUL byte")
	case len(s) > 4095:
		return "", fmt.Errorf("path %s is longer than the kernel takes (4095 bytes)", excerpt(s))
	case s == "~":
		return home, nil
	case strings.HasPrefix(s, "~/"):
		return filepath.Join(home, s[2:]), nil
	case s[0] == '~':
		return "", fmt.Errorf("path %s: only ~ and ~/ are understood (for a file of that name write ./%s)", excerpt(s), s)
	case s[0] == '$':
		return "", fmt.Errorf("path %s: variables are not replaced (write ~ for the home directory)", excerpt(s))
	case filepath.IsAbs(s):
		return filepath.Clean(s), nil
	}
	return filepath.Join(base, s), nil
}

// literal refuses a path that looks like a pattern, unless a file of exactly
// that name exists.
func literal(s, name string) error {
	if !strings.ContainsAny(s, "*?") {
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	return fmt.Errorf("path %s: patterns are not understood (name the file or the directory)", excerpt(s))
}

// within reports whether name is dir or lies below it. Both are clean.
func within(name, dir string) bool {
	if name == dir || dir == "/" {
		return true
	}
	return len(name) > len(dir) && name[len(dir)] == '/' && name[:len(dir)] == dir
}

// ancestors returns a clean absolute path and every directory above it,
// nearest first, ending with "/".
func ancestors(name string) []string {
	out := []string{name}
	for name != "/" && name != "." {
		name = filepath.Dir(name)
		out = append(out, name)
	}
	return out
}
