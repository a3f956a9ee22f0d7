package hostfilter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Tools are the programs of the host that a filter is made with, as absolute
// paths. "" means that none was found.
type Tools struct {
	Slirp   string
	Nsenter string
	// Restore and Restore6 are the iptables-restore programs found, in the
	// order in which they are tried: the host's default, then nf_tables, then
	// legacy. The first that works is used.
	Restore, Restore6 []string
}

// FindTools looks the programs up on PATH and in the system directories, which
// an ordinary user's PATH often lacks. No program is run.
func FindTools() Tools {
	return Tools{
		Slirp:    find("slirp4netns"),
		Nsenter:  find("nsenter"),
		Restore:  findAll("iptables-restore", "iptables-nft-restore", "iptables-legacy-restore"),
		Restore6: findAll("ip6tables-restore", "ip6tables-nft-restore", "ip6tables-legacy-restore"),
	}
}

// systemDirs are where distributions put these programs.
var systemDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"}

func find(name string) string {
	if p, err := exec.LookPath(name); err == nil && filepath.IsAbs(p) {
		return p
	}
	for _, dir := range systemDirs {
		p := filepath.Join(dir, name)
		if i, err := os.Stat(p); err == nil && i.Mode().IsRegular() && i.Mode()&0o111 != 0 {
			return p
		}
	}
	return ""
}

func findAll(names ...string) []string {
	var paths []string
	for _, n := range names {
		if p := find(n); p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// check returns an error that names the first program that is missing.
// ip6tables is not one of them: without it the gate turns IPv6 off otherwise.
func (t Tools) check(ipv6 bool) error {
	switch {
	case t.Slirp == "":
		return missing("slirp4netns", "slirp4netns")
	case t.Nsenter == "":
		return missing("nsenter", "util-linux")
	case len(t.Restore) == 0:
		return missing("iptables-restore", "iptables")
	case ipv6 && len(t.Restore6) == 0:
		return missing("ip6tables-restore", "iptables")
	}
	return nil
}

func missing(program, pkg string) error {
	return fmt.Errorf("%s is not installed: install the package %s", program, pkg)
}
