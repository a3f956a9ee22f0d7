package probe

import (
	"context"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programAttacks become the program whose path they are given, asked for its
// version: by its descriptor, without a name that could be refused.
func programAttacks() map[string]attack {
	return map[string]attack{
		"by-descriptor": func(_ context.Context, path string) error { return executeOpen(path, unix.O_RDONLY) },
		"by-path-only":  func(_ context.Context, path string) error { return executeOpen(path, unix.O_PATH) },
		"by-memory":     func(_ context.Context, path string) error { return executeMemory(path) },
	}
}

func executeOpen(path string, flags int) error {
	fd, err := unix.Open(path, flags, 0)
	if err != nil {
		return err
	}
	return executeFD(fd, path)
}

// executeMemory copies a program into a file that has no name.
func executeMemory(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, text); err != nil {
		return err
	}
	return executeFD(fd, path)
}

// executeFD is fexecve(3): execveat(2) without a path.
func executeFD(fd int, name string) error {
	argv, err := syscall.SlicePtrFromStrings([]string{name, "--version"})
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(os.Environ())
	if err != nil {
		return err
	}
	empty := []byte{0}
	return call(unix.SYS_EXECVEAT, uintptr(fd), ptr(&empty[0]), uintptr(unsafe.Pointer(&argv[0])),
		uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH)
}
