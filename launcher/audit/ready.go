package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Ready returns what Append would fail with, as far as that can be known without
// writing: what stands at the log's names, whose it is, and whether it may be
// written. A disk that is full is not seen. Nothing is made or changed.
func (l *Log) Ready() error {
	if err := l.ready(); err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

func (l *Log) ready() error {
	dir := filepath.Dir(l.file)
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return creatable(dir)
	}
	if err == nil {
		err = ownDir(dir, info)
	} else {
		err = explain("look at", dir, err)
	}
	if err != nil {
		return err
	}
	for _, name := range []string{headFile(l.file), l.file} {
		f, _, err := openOwn(name, os.O_RDWR)
		switch {
		case err == nil:
			f.Close()
		case !errors.Is(err, os.ErrNotExist):
			return err
		default:
			if err := mayMake(dir); err != nil {
				return explain("make", name, err)
			}
		}
	}
	return nil
}

// creatable says why a directory that is not there cannot be made.
func creatable(dir string) error {
	above := filepath.Dir(dir)
	for above != filepath.Dir(above) {
		if _, err := os.Lstat(above); !errors.Is(err, os.ErrNotExist) {
			break
		}
		above = filepath.Dir(above)
	}
	if err := mayMake(above); err != nil {
		return explain("make", dir, err)
	}
	return nil
}

// mayMake asks access(2), which knows of read-only file systems as well.
func mayMake(dir string) error {
	const write, search = 2, 1 // W_OK and X_OK, the same on every Unix (POSIX, unistd.h)
	return syscall.Access(dir, write|search)
}
