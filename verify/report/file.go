package report

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Check tells whether a page can be written at name, before minutes are spent on
// what goes into it. It leaves nothing behind.
func Check(name string) error {
	real, err := target(name)
	if err != nil {
		return err
	}
	tmp, err := temporary(real)
	if err != nil {
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}

// Save has a page written and puts it in its place at once: until then name
// holds what it held before, or nothing, and so it does after an error. The file
// belongs to this person alone (mode 0600): a page tells much of a machine.
func Save(name string, write func(io.Writer) error) error {
	real, err := target(name)
	if err != nil {
		return err
	}
	tmp, err := temporary(real)
	if err != nil {
		return err
	}
	if err = write(tmp); err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), real)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return fmt.Errorf("report: write %q: %w", name, err)
	}
	return nil
}

// target is the file that a page goes to: links are followed, so that the page
// comes to lie where a link points, and devices and pipes are left as they are.
func target(name string) (string, error) {
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		real = name
		if _, err := os.Lstat(name); err == nil {
			return "", fmt.Errorf("report: %q is a link to nothing; name the file itself", name)
		}
	} else if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	if info, err := os.Stat(real); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("report: %q is not a file that can be replaced; name one, such as report.html", name)
	}
	return real, nil
}

func temporary(real string) (*os.File, error) {
	dir := filepath.Dir(real)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("report: no directory %q to write %q in; first: mkdir -p %s", dir, filepath.Base(real), dir)
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(real)+".*")
	if err != nil {
		return nil, fmt.Errorf("report: write in %q: %w", dir, err)
	}
	return f, nil
}
