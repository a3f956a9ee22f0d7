package report

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Machine says what ran where: the system, who ran it, the tools' own words for
// their versions, and which kgate it was. It names neither the machine nor the
// person, so that a page can be handed on.
func Machine(kgate string) []Fact {
	facts := []Fact{{"system", system()}, {"who", who(os.Geteuid())}, {"kgate", build()}, {"kgate's file", digest(kgate)}}
	if runtime.GOOS != "linux" {
		return facts
	}
	for _, tool := range []string{"bwrap", "slirp4netns", "iptables", "nsenter"} { // what a box is made with
		facts = append(facts, Fact{tool, version(tool)})
	}
	return facts
}

func system() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return runtime.GOOS + "/" + runtime.GOARCH
	}
	s := fmt.Sprintf("%s %s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Machine[:]))
	if name := release("/etc/os-release"); name != "" {
		s = name + ", " + s
	}
	return s + ", " + count(runtime.NumCPU(), "processor", "processors")
}

// release is the name that os-release(5) has for people.
func release(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if v, ok := strings.CutPrefix(in.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

func who(uid int) string {
	if uid == 0 {
		return "root"
	}
	return "an ordinary user, uid " + strconv.Itoa(uid)
}

func build() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "built without a record of its version"
	}
	s := []string{info.Main.Version}
	if info.Main.Version == "" || info.Main.Version == "(devel)" {
		s[0] = "built from a source tree"
	}
	for _, set := range info.Settings {
		switch {
		case set.Key == "vcs.revision":
			s = append(s, "revision "+set.Value)
		case set.Key == "vcs.modified" && set.Value == "true":
			s = append(s, "with changes")
		}
	}
	return strings.Join(append(s, info.GoVersion), ", ")
}

func digest(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("SHA-256 %x", h.Sum(nil))
}

// version is the first line of what a tool says of its version.
func version(tool string) string {
	path, err := exec.LookPath(tool)
	for _, dir := range []string{"/usr/sbin/", "/sbin/"} {
		if err != nil {
			path, err = exec.LookPath(dir + tool)
		}
	}
	if err != nil {
		return "not found"
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	if err != nil || len(first) == 0 {
		return fmt.Sprintf("does not say (%v)", err)
	}
	return string(first)
}
