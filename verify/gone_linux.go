package verify

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processesOf lists the processes, but for zombies and this one, that have
// marker in their arguments, environment or working directory. Processes of
// other users cannot be looked into and are none of ours, unless we are root.
func processesOf(marker string) ([]string, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range dirs {
		if pid, _ := strconv.Atoi(filepath.Base(dir)); pid == os.Getpid() {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		if !bytes.Contains(cmdline, []byte(marker)) && !bytes.Contains(environ, []byte(marker)) &&
			!strings.HasPrefix(cwd+"/", marker+"/") {
			continue
		}
		if ours(environ) || zombie(dir) {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s (in %s)", filepath.Base(dir),
			strings.ReplaceAll(strings.TrimRight(string(cmdline), "\x00"), "\x00", " "), cwd))
	}
	return out, nil
}

// ours tells the harness's own helpers (the lab's machine) from what it runs.
func ours(environ []byte) bool { return bytes.Contains(environ, []byte("KGATE_LAB_OWNER=")) }

func zombie(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return true // it has ended meanwhile
	}
	_, after, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ")
	return strings.HasPrefix(after, "Z") || strings.HasPrefix(after, "X")
}
