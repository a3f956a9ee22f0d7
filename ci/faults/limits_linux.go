package main

import (
	"fmt"
	"os"
	"strings"
)

// limits are the trials with too little of something, and with name servers that
// are silent.
func limits() []trial {
	var all []trial
	add := func(mode, name string, prefix []string) {
		all = append(all, trial{name: strings.Replace(name, " ", " "+mode+" ", 1), mode: mode, prefix: prefix, free: atOnce, warm: true})
	}
	limit := func(name, option string, values ...int) {
		for _, mode := range modes {
			for _, n := range values {
				add(mode, fmt.Sprintf("%s %d", name, n), []string{"sh", "-c", fmt.Sprintf(`ulimit -%s %d; exec "$@"`, option, n), "sh"})
			}
		}
	}
	limit("nofile", "n", 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 48, 64)
	limit("memory", "v", 50_000, 100_000, 150_000, 200_000, 400_000, 1_000_000, 2_000_000, 4_000_000)
	limit("filesize", "f", 1, 2, 3, 8)
	if os.Geteuid() != 0 { // root's processes are not counted
		limit("nproc", "p", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 22, 24, 26, 28, 30, 35, 40, 60)
	}
	// A mount namespace of the launch's own, in which the person is root: a file
	// system of so many pages and names, filled to the last, around kgate's files
	// or the project. What was there is put there first.
	full := func(dir string, pages, names int) []string {
		return own(fmt.Sprintf(`cp -a %[1]s ~/saved && mount -t tmpfs -o size=%[2]dk,nr_inodes=%[3]d none %[1]s && cp -a ~/saved/. %[1]s && rm -r ~/saved && cd ~/src/project || exit 99`, dir, pages*4, names))
	}
	for _, mode := range modes {
		for pages := 3; pages <= 6; pages++ {
			add(mode, fmt.Sprintf("full kgate's %d pages", pages), full("~/.kgate", pages, 100))
		}
		for names := 5; names <= 8; names++ {
			add(mode, fmt.Sprintf("full kgate's %d names", names), full("~/.kgate", 100, names))
		}
		for _, names := range []int{8, 9, 10, 12, 15, 20, 25, 30} {
			add(mode, fmt.Sprintf("full project's %d names", names), full("~/src/project", 20_000, names))
		}
		for _, what := range []string{"~/.kgate", "~/.kgate/audit.jsonl", "~/.kgate/audit.head", "~/.kgate/run", "~/src/project", "~"} {
			add(mode, "readonly "+what, own(fmt.Sprintf(`mkdir -p ~/.kgate/run && mount --rbind %[1]s %[1]s && mount -o remount,ro,bind %[1]s && cd ~/src/project || exit 99`, what)))
		}
	}
	return append(all,
		trial{name: "resolver restricted silent", mode: "restricted", free: atOnce, silent: true, fails: true},
		trial{name: "resolver restricted falls silent", mode: "restricted", free: whenStruck, silences: true})
}

// own is a prefix that runs a line in namespaces of its own and then launches
// there. What only those see is told on the launcher's standard output.
func own(line string) []string {
	return []string{"unshare", "-Urm", "sh", "-c", line + `
before=$(ls -A)
"$@"
s=$?
rm -f ran read sent allowed done over 2>/dev/null
[ "$before" = "$(ls -A)" ] || echo "left in the project:" $(ls -A)
echo "launch lines:" $(grep -c '"kind":"launch"' ~/.kgate/audit.jsonl)
"$REAL" log verify >/dev/null 2>&1 || echo "log verify fails"
exit $s`, "sh"}
}
