package launcher

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// input is a standard input that is poured into a pipe. A file that somebody has
// opened can be opened anew by its descriptor (/proc/self/fd, proc_pid_fd(5)), with
// whatever rights its owner has and past every mount: one that is given to be read
// could be written so, though it lies outside the box or is read-only in it.
type input struct {
	from  *os.File
	r, w  *os.File
	start int64 // where from stood
	wrote int64
	err   error
	done  chan struct{}
}

// pour begins to pour a file or a disk. It returns nil, and no error, for anything
// else: that cannot be opened anew, or leads to nothing that lasts.
func pour(from *os.File) (*input, error) {
	if from == nil {
		return nil, nil
	}
	info, err := from.Stat()
	if err != nil || !info.Mode().IsRegular() && info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) != fs.ModeDevice {
		return nil, nil
	}
	i := &input{from: from, done: make(chan struct{})}
	if i.start, err = from.Seek(0, io.SeekCurrent); err != nil {
		return nil, fmt.Errorf("find the place in standard input: %w", err)
	}
	if i.r, i.w, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("make a pipe for the command's standard input: %w", err)
	}
	if info.Size()-i.start > much {
		widen(i.w, widePipe)
	}
	go i.run()
	return i, nil
}

func (i *input) run() {
	defer close(i.done)
	// From is read beside its own place, which others may share: see stop.
	n, err := io.Copy(i.w, io.NewSectionReader(i.from, i.start, 1<<62))
	i.wrote = n
	if err != nil && !errors.Is(err, os.ErrClosed) {
		i.err = fmt.Errorf("read standard input: %w", err)
	}
	i.w.Close()
}

// stop ends the pouring when the command is gone, and leaves the file where the
// command has read to, for whoever reads on: a script's next line, say.
func (i *input) stop() error {
	if i == nil {
		return nil
	}
	i.w.Close()
	<-i.done
	defer i.r.Close()
	left, err := unix.IoctlGetInt(int(i.r.Fd()), unix.TIOCINQ)
	if err == nil {
		i.from.Seek(i.start+i.wrote-int64(left), io.SeekStart)
	}
	return i.err
}
