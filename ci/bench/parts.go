package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mark is a place in the source where a launch notes the time, in a build that
// reads the changed files in place of the tree's (go help build, -overlay). What
// is shipped holds nothing of it.
type mark struct {
	file string
	old  string // where in the file; stands there once
	new  string // @ is the note
	part string // what of a launch ends here
}

// marks are in the order in which a launch comes by.
var marks = []mark{
	{"cmd/kgate/main.go", "func main() { os.Exit(Main()) }", "func main() { @; s := Main(); stamp.Tell(); os.Exit(s) }",
		"the kernel loads kgate; Go's runtime and the packages start"},
	{"cmd/kgate/run.go", "func run(r launcher.Request) error {\n", "func run(r launcher.Request) error {\n\t@\n", "the command line is read"},
	{"launcher/launch.go", "\tl.Policy = p\n", "\tl.Policy = p\n\t@\n", "the policy is read, and the programs that it denies are looked up"},
	{"launcher/launch.go", "\tl.Plan, err = b.Plan(", "\t@\n\tl.Plan, err = b.Plan(", "secrets to mask; the command is looked at"},
	{"launcher/launch.go", "\tif err := l.record(audit.Launch, \"\"); err != nil {\n", "\t@\n\tif err := l.record(audit.Launch, \"\"); err != nil {\n",
		"the box is planned: each path is looked at"},
	{"launcher/launch.go", "\tstatus, err := l.relay(in, out, errs)\n", "\t@\n\tstatus, err := l.relay(in, out, errs)\n", "a line of the log is written and synced"},
	{"launcher/relay.go", "\tvar p backends.Process\n", "\t@\n\tvar p backends.Process\n", "streams and signals"},
	{"backends/bubblewrap/start_linux.go", "\tif p.voice, err = listen(", "\t@\n\tif p.voice, err = listen(", "the names in the project are held, and the janitor starts"},
	{"backends/bubblewrap/start_linux.go", "\ttied.Do(func() {\n\t\tp.bwrap", "\t@\n\ttied.Do(func() {\n\t\tp.bwrap", "pipes, and bwrap's words"},
	{"backends/bubblewrap/start_linux.go", "\td.closeAll()\n\t// bwrap waits", "\t@\n\td.closeAll()\n\t// bwrap waits", "bwrap's process is made"},
	{"backends/bubblewrap/run_linux.go", "\tif pid, ok := <-born; ok {\n", "\tif pid, ok := <-born; ok {\n\t\t@\n", "bwrap starts and makes the namespaces"},
	{"backends/bubblewrap/run_linux.go", "\t\twhole := false\n", "\t\t@\n\t\twhole := false\n", "slirp4netns, the gate, the packet filter and the lookup"},
	{"backends/bubblewrap/run_linux.go", "\t\tif whole && p.ctx.Err() == nil {\n", "\t\t@\n\t\tif whole && p.ctx.Err() == nil {\n", "bwrap mounts, and what it has mounted is looked at"},
	{"backends/bubblewrap/run_linux.go", "\t\t\t\tclose(p.over)\n", "\t\t\t\t@\n\t\t\t\tclose(p.over)\n", "the command starts, runs and ends"},
	{"backends/bubblewrap/run_linux.go", "\tp.waitInit()\n\tp.cancel()\n", "\tp.waitInit()\n\t@\n\tp.cancel()\n", "bwrap takes the box down"},
	{"backends/bubblewrap/run_linux.go", "\therr := p.held.release()\n", "\therr := p.held.release()\n\t@\n", "the names and the janitor go"},
	{"backends/bubblewrap/run_linux.go", "\tclosing.Wait()\n", "\tclosing.Wait()\n\t@\n", "slirp4netns and the gate are gone"},
}

// last is what is left when the marks are over.
const last = "the outcome is passed on, and the process ends"

// stampSource is the package that notes: into memory, and when all is over on
// descriptor 3, which kgate itself keeps from its children.
const stampSource = `package stamp

import (
	"fmt"
	"os"
	"time"
)

var at [%d]int64

func At(i int) { at[i] = time.Now().UnixNano() }

func Tell() { fmt.Fprintln(os.NewFile(3, "stamps"), at) }
`

// overlay writes the changed files to a directory and returns the list of them as
// go build reads it. It is an error when a place is not there once: the marks are
// to follow the code.
func overlay(dir string) (string, error) {
	texts := map[string]string{"launcher/stamp/stamp.go": fmt.Sprintf(stampSource, len(marks))}
	for i, m := range marks {
		text, ok := texts[m.file]
		if !ok {
			data, err := os.ReadFile(m.file)
			if err != nil {
				return "", err
			}
			text = strings.Replace(string(data), "import (\n", "import (\n\t\"github.com/kgate-dev/kgate/launcher/stamp\"\n", 1)
		}
		if n := strings.Count(text, m.old); n != 1 {
			return "", fmt.Errorf("mark %q: %s holds %q %d times, not once", m.part, m.file, m.old, n)
		}
		texts[m.file] = strings.Replace(text, m.old, strings.Replace(m.new, "@", fmt.Sprintf("stamp.At(%d)", i), 1), 1)
	}
	replace := map[string]string{}
	for name, text := range texts {
		original, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[original] = changed
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o644)
}

// The two kinds of launch.
const (
	without = "no network"
	oneHost = "one host"
)

// partName is what ends at a mark, what is left after the last, or the whole.
func partName(i int) string {
	switch {
	case i < len(marks):
		return marks[i].part
	case i == len(marks):
		return last
	}
	return "**the whole**"
}

// inOrder is the table of the parts.
func inOrder(r result) string {
	median := map[string]float64{}
	for _, s := range r.Sides {
		median[s.Name] = s.Median
	}
	var s strings.Builder
	s.WriteString(`
A launch in order, by notes of the time in a build of its own: medians of each part by itself, so that
they add up to about the whole.

| part | ` + without + `, ms | ` + oneHost + `, ms |
|---|--:|--:|
`)
	for i := range len(marks) + 2 {
		part := partName(i)
		fmt.Fprintf(&s, "| %s | %.1f | %.1f |\n", part, median[without+": "+part], median[oneHost+": "+part])
	}
	return s.String()
}
