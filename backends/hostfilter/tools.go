package hostfilter

import (
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

// FindTools asks find for each program: its absolute path, or "". No program is
// run. A caller whose PATH a command in a box can write to must not find there.
func FindTools(find func(name string) string) Tools {
	all := func(names ...string) (paths []string) {
		for _, n := range names {
			if p := find(n); p != "" {
				paths = append(paths, p)
			}
		}
		return paths
	}
	return Tools{
		Slirp:    find("slirp4netns"),
		Nsenter:  find("nsenter"),
		Restore:  all("iptables-restore", "iptables-nft-restore", "iptables-legacy-restore"),
		Restore6: all("ip6tables-restore", "ip6tables-nft-restore", "ip6tables-legacy-restore"),
	}
}

// OnPath finds a program on PATH, or where distributions put those of iptables,
// which an ordinary user's PATH often lacks.
func OnPath(name string) string {
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

var systemDirs = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

// Check returns a *Fault that names the first program that is missing.
// ip6tables is not one of them: without it the gate turns IPv6 off otherwise.
func (t Tools) Check(ipv6 bool) error {
	switch {
	case t.Slirp == "":
		return missing(RowSlirp, "slirp4netns")
	case t.Nsenter == "":
		return missing(RowEnter, "util-linux")
	case len(t.Restore) == 0:
		return missing(RowFilter, "iptables")
	case ipv6 && len(t.Restore6) == 0:
		return missing(RowFilter6, "iptables")
	}
	return nil
}
