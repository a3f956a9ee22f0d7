package probe

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attackTable returns every attack by its name. Each family has a file. What a
// launch does not need is not made when the program starts.
func attackTable() map[string]attack {
	all := map[string]attack{}
	for _, family := range []map[string]attack{kernelAttacks(), mountAttacks(), processAttacks(), terminalAttacks(), programAttacks(), networkAttacks(), socketAttacks()} {
		maps.Copy(all, family)
	}
	return all
}

// own runs a command in namespaces of its own, over which it has every
// capability: the control for what only a want of capabilities prevents.
func own(argv []string) error {
	if len(argv) == 0 {
		return errUsage
	}
	cmd := exec.Command("/proc/self/exe", append([]string{Stage, "own-inner"}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS |
			unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return cmd.Run()
}

// ownInner is the first process there. It makes the views of processes and of
// settings the namespaces' own, and the whole machine's files read-only, but for
// one empty directory: what runs here may have rights over them.
func ownInner(argv []string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make / private: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := tmpfs(os.TempDir()); err != nil {
		return fmt.Errorf("mount %q: %w", os.TempDir(), err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// reached takes an error that comes from beyond all checks of rights for a
// success: what a call was asked to do there is nothing that can be done.
func reached(err error, beyond ...syscall.Errno) error {
	for _, errno := range beyond {
		if errors.Is(err, errno) {
			return nil
		}
	}
	return err
}

// result is a system call's error, nil if there was none.
func result(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
