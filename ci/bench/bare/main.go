// Bare is bwrap with slirp4netns and nothing else: the least that gives a command
// a network of its own. It is what the restricted launch is measured against.
//
//	bare [--mtu=N] [--slirp=OPTION] BWRAP-ARGUMENT... -- COMMAND...
//
// It waits for slirp4netns' ready descriptor before the command starts, and has
// no filter. It imports little, so that its own start is as short as a Go
// program's can be.
//
//go:build linux

package main

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const getUserns = 0xb701 // NS_GET_USERNS of ioctl_ns(2)

func main() {
	info, infoW := pipe()
	block, blockW := pipe()
	ready, readyW := pipe()
	exit, exitW := pipe()
	mtu := "--mtu=65520"
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--mtu=") {
		mtu = os.Args[1]
		os.Args = slices.Delete(os.Args, 1, 2)
	}
	args := []string{"slirp4netns", "--configure", mtu, "--disable-host-loopback", "--ready-fd=3", "--exit-fd=4"}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--slirp=") {
		args = append(args, strings.TrimPrefix(os.Args[1], "--slirp="))
		os.Args = slices.Delete(os.Args, 1, 2)
	}
	at := slices.Index(os.Args, "--")
	argv := slices.Concat([]string{"bwrap"}, os.Args[1:at], []string{"--info-fd", "3", "--block-fd", "4"}, os.Args[at:])
	box := start("/usr/bin/bwrap", argv, infoW, block)
	var said []byte
	for buf := make([]byte, 512); !bytes.ContainsRune(said, '}'); {
		n, err := syscall.Read(info, buf)
		if n <= 0 {
			die("bwrap says nothing", err)
		}
		said = append(said, buf[:n]...)
	}
	_, after, _ := bytes.Cut(said, []byte("child-pid\": "))
	pid, _, _ := bytes.Cut(after, []byte{'\n'})
	pid = bytes.TrimRight(pid, ",")
	net, err := syscall.Open("/proc/"+string(pid)+"/ns/net", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		die("open the network namespace", err)
	}
	user, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(net), getUserns, 0)
	if errno != 0 {
		die("find its owner", errno)
	}
	slirp := start("/usr/bin/slirp4netns", append(args,
		"--userns-path=/proc/self/fd/5", "--netns-type=path", "/proc/self/fd/6", "tap0"), readyW, exit, int(user), net)
	syscall.Close(readyW)
	if n, err := syscall.Read(ready, make([]byte, 1)); n != 1 {
		die("slirp4netns is not ready", err)
	}
	syscall.Write(blockW, []byte{1})
	status := wait(box)
	syscall.Close(exitW)
	wait(slirp)
	os.Exit(status)
}

func pipe() (r, w int) {
	var p [2]int
	if err := syscall.Pipe2(p[:], syscall.O_CLOEXEC); err != nil {
		die("pipe", err)
	}
	return p[0], p[1]
}

func start(path string, argv []string, fds ...int) int {
	files := []uintptr{0, 1, 2}
	if argv[0] != "bwrap" {
		null, err := syscall.Open("/dev/null", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
		if err != nil {
			die("open /dev/null", err)
		}
		files = []uintptr{uintptr(null), uintptr(null), uintptr(null)}
	}
	for _, fd := range fds {
		files = append(files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: files})
	if err != nil {
		die(path, err)
	}
	return pid
}

func wait(pid int) int {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return status.ExitStatus()
		}
		if err != syscall.EINTR {
			die("wait for "+strconv.Itoa(pid), err)
		}
	}
}

func die(what string, err error) {
	text := "bare: " + what
	if err != nil {
		text += ": " + err.Error()
	}
	os.Stderr.WriteString(text + "\n")
	os.Exit(125)
}
