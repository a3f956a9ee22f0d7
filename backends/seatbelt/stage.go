//go:build unix

package seatbelt

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// StageName is the first argument under which kgate's own file becomes the
// first program in the box; see [Stage].
const StageName = "seatbelt-stage"

// The descriptors of the first program in the box, beside the standard ones and
// backends.ControlFD.
const (
	statusFD = 4 // on which it says that the box stands
	errsFD   = 5 // the command's stderr; until then descriptor 2 is for sandbox-exec's own words
)

// The first argument of the stage: what it does with backends.ControlFD.
const (
	keepControl  = "control"
	closeControl = "plain"
)

// Stage is the first program in the box. Whether a status of 65 or 71 is
// sandbox-exec's or the command's cannot be told from outside; that this program
// ran can. It says so, gives the command its stderr, and becomes the command.
// Its arguments are what to do with the control descriptor, then the command's
// words. It returns only when it could not, having said why.
func Stage(args []string) int {
	status := os.NewFile(statusFD, "status")
	if len(args) < 2 || status == nil {
		return 125
	}
	syscall.CloseOnExec(statusFD)
	if args[0] != keepControl {
		syscall.CloseOnExec(3)
	}
	if err := unix.Dup2(errsFD, 2); err != nil {
		return 125
	}
	syscall.CloseOnExec(errsFD)
	if _, err := status.Write([]byte{stood}); err != nil {
		return 125
	}
	status.WriteString(strconv.Itoa(int(execute(args[1:]))))
	return 125
}

// stood is the stage's first byte on the status descriptor; the number of the
// error that kept the command from starting follows, or the end of the file.
const stood = 's'

// execute becomes a program as a shell would find it, and returns why it could
// not. Relative entries of PATH are passed over.
func execute(argv []string) syscall.Errno {
	if strings.Contains(argv[0], "/") {
		return become(argv[0], argv)
	}
	last := syscall.ENOENT
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, argv[0])
		if info, err := os.Stat(file); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
			continue
		}
		if errno := become(file, argv); errno != syscall.ENOENT {
			last = errno
			break
		}
	}
	return last
}

func become(file string, argv []string) syscall.Errno {
	err := syscall.Exec(file, argv, os.Environ())
	if errors.Is(err, syscall.ENOEXEC) {
		// A script without a first line is the shell's, as for execvp(3).
		err = syscall.Exec("/bin/sh", append([]string{"sh", file}, argv[1:]...), os.Environ())
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return syscall.EIO
	}
	return errno
}
