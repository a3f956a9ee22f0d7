package probe

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountAttacks change what is where, or give back the rights to do so. Outside
// the box each works in namespaces of one's own: see own. None may harm a machine
// on which it works: see privately.
func mountAttacks() map[string]attack {
	return map[string]attack{
		"mount-tmpfs": privately(func(dir string) error { return mounted(tmpfs(dir), dir) }),
		"mount-bind":  privately(bind),
		"mount-move":  privately(moved),
		"mount-new":   privately(newMount),
		"mount-copy":  privately(copyMount),
		"mount-attr":  onMount(setAttr),
		"remount":     onMount(remount),
		"umount":      onMount(func(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }),
		"pivot-root": privately(func(dir string) error {
			if err := tmpfs(dir); err != nil {
				return err
			}
			return unix.PivotRoot(dir, dir)
		}),
		"chroot":        privately(syscall.Chroot),
		"new-mounts":    func(context.Context, string) error { return unshared(unix.CLONE_NEWNS) },
		"new-network":   func(context.Context, string) error { return unshared(unix.CLONE_NEWNET) },
		"new-processes": func(context.Context, string) error { return unshared(unix.CLONE_NEWPID) },
		"setns":         joinNamespace,
		"hostname":      setHostname,
		"capset":        regain,
		"device-node":   deviceNode,
		"owner":         chownAway,
		"setuid":        becomeOther,
	}
}

// apartFromAll gives this thread a view of mounts of its own, if it may have one:
// where there is no box, what is mounted is gone with the process, and nobody
// else has seen it. Who may mount may do this too, so that nothing which could
// be mounted is missed.
func apartFromAll() error {
	runtime.LockOSThread()
	if unix.Unshare(unix.CLONE_NEWNS) != nil {
		return nil
	}
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// privately gives an attack a directory that is its own, and mounts that are.
func privately(f func(dir string) error) attack {
	return func(context.Context, string) error {
		dir, err := os.MkdirTemp("", "kgate-attack-")
		if err != nil {
			return unready(err)
		}
		// The one directory, and nothing below it, whatever is there by now.
		defer os.Remove(dir)
		if err := apartFromAll(); err != nil {
			return unready(err)
		}
		return f(dir)
	}
}

// onMount is an attack on a mount of the box that the script names: where there
// is no box, no mount is there.
func onMount(f func(dir string) error) attack {
	return func(_ context.Context, dir string) error {
		if err := apartFromAll(); err != nil {
			return unready(err)
		}
		return f(dir)
	}
}

func tmpfs(dir string) error { return unix.Mount("none", dir, "tmpfs", 0, "size=64k") }

// mounted takes a mount away again, and passes on the error of making it.
func mounted(err error, dir string) error {
	if err == nil {
		unix.Unmount(dir, unix.MNT_DETACH)
	}
	return err
}

// twoIn makes two directories in one, and takes them away again.
func twoIn(dir string, f func(a, b string) error) error {
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, d := range []string{a, b} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
		defer os.Remove(d)
	}
	return f(a, b)
}

func bind(dir string) error {
	return twoIn(dir, func(a, b string) error { return mounted(unix.Mount(a, b, "", unix.MS_BIND, ""), b) })
}

// moved moves a mount that this process makes itself.
func moved(dir string) error {
	return twoIn(dir, func(a, b string) error {
		if err := tmpfs(a); err != nil {
			return err
		}
		if err := unix.Mount(a, b, "", unix.MS_MOVE, ""); err != nil {
			return mounted(err, a)
		}
		return mounted(nil, b)
	})
}

// newMount is mount(2) by the newer calls.
func newMount(dir string) error {
	fd, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("fsopen: %w", err)
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return fmt.Errorf("fsconfig: %w", err)
	}
	made, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("fsmount: %w", err)
	}
	return mounted(unix.MoveMount(made, "", unix.AT_FDCWD, dir, unix.MOVE_MOUNT_F_EMPTY_PATH), dir)
}

// copyMount is a bind mount by the newer calls.
func copyMount(dir string) error {
	return twoIn(dir, func(a, b string) error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, a, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fmt.Errorf("open_tree: %w", err)
		}
		return mounted(unix.MoveMount(fd, "", unix.AT_FDCWD, b, unix.MOVE_MOUNT_F_EMPTY_PATH), b)
	})
}

func setAttr(dir string) error {
	return unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
}

func remount(dir string) error {
	return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_NOSUID|unix.MS_NODEV, "")
}

// unshared makes namespaces with unshare(2), in a process that has one thread.
func unshared(flags uintptr) error {
	cmd := exec.Command("/proc/self/exe", Stage)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: flags}
	err := cmd.Start()
	if err == nil {
		cmd.Wait()
	}
	return err
}

func joinNamespace(context.Context, string) error {
	fd, err := unix.Open("/proc/self/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, unix.CLONE_NEWUTS)
}

// setHostname sets the name that the machine has already.
func setHostname(context.Context, string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	return unix.Sethostname([]byte(name))
}

// regain takes the capability over everything, if it may be had.
func regain(context.Context, string) error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	bit := uint32(1) << unix.CAP_SYS_ADMIN
	data[0] = unix.CapUserData{Effective: bit, Permitted: bit}
	return unix.Capset(&head, &data[0])
}

// deviceNode makes one more /dev/null: the right is the same for every device.
func deviceNode(context.Context, string) error {
	name := filepath.Join(os.TempDir(), fmt.Sprintf("kgate-attack-null-%d", os.Getpid()))
	err := unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
	if err == nil {
		err = os.Remove(name)
	}
	return err
}

// chownAway gives a file to somebody else.
func chownAway(context.Context, string) error {
	f, err := os.CreateTemp("", "kgate-attack-")
	if err != nil {
		return unready(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	return f.Chown(65534, 65534)
}

// becomeOther becomes another user, in this process alone.
func becomeOther(context.Context, string) error {
	uid := 1
	if os.Getuid() == 1 {
		uid = 2
	}
	return syscall.Setuid(uid)
}
