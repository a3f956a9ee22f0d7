package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify/lab"
)

// patience is how long one probe may take.
const patience = 20 * time.Second

// bench is what all measurements share.
type bench struct {
	dir    string
	home   string
	socket string
	lab    *lab.Lab
	launch int // launches to time
}

// measure runs everything and returns the table.
func measure(dir string, n int) (string, error) {
	b := &bench{dir: dir, home: os.Getenv("HOME"), launch: n}
	// Everything in it is removed again and again: it must be the scratch one.
	if lent, err := os.Stat(filepath.Join(dir, "home")); err != nil {
		return "", err
	} else if here, err := os.Stat(b.home); err != nil || !os.SameFile(lent, here) {
		return "", fmt.Errorf("%s is not the scratch home (%v)", b.home, err)
	}
	tmp, err := os.MkdirTemp("", "kgate-peers-socket-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	b.socket = filepath.Join(tmp, "service")
	service, err := net.Listen("unix", b.socket)
	if err != nil {
		return "", err
	}
	defer service.Close()
	go func() {
		for {
			c, err := service.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "hello")
			c.Close()
		}
	}()
	if b.lab, err = lab.Start(lab.Options{}); err != nil {
		return "", err
	}
	defer b.lab.Close()
	table := make([][]string, len(peers))
	for i, p := range peers {
		if table[i], err = b.column(p); err != nil {
			return "", err
		}
	}
	for j, q := range probes {
		if table[0][j] != "yes" {
			return "", fmt.Errorf("%s: %s without any box: the probe cannot be right", q.name, table[0][j])
		}
	}
	return b.page(table), nil
}

// column is a peer's cells: one for each probe, then how long a launch takes
// without a network and with one host.
func (b *bench) column(p peer) ([]string, error) {
	var cells []string
	silent := false
	why := b.missing(p)
	for _, q := range probes {
		fmt.Fprintf(os.Stderr, "%s: %s\n", p.name, q.name)
		switch {
		case why != "":
			cells = append(cells, "not measured ("+why+")")
		case q.list && !p.lists:
			cells = append(cells, "not measured (no host list)")
		default:
			cell, err := b.ask(p, q)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", p.name, q.name, err)
			}
			if q.name == listed && cell == "no" {
				// Then a no to the others says nothing.
				cell, silent = "not measured (not reached in the lab)", true
			} else if q.list && silent {
				cell = "not measured (see above)"
			}
			cells = append(cells, cell)
		}
	}
	if why != "" {
		return append(cells, "not measured ("+why+")", "not measured ("+why+")"), nil
	}
	took, err := b.time(p, false)
	if err != nil {
		return nil, err
	}
	listed := "not measured (no host list)"
	if p.lists {
		listed, err = b.time(p, true)
	}
	return append(cells, took, listed), err
}

// missing is why a peer cannot be measured: it was not installed, or its box
// does not run "true" here. What it said goes to standard error.
func (b *bench) missing(p peer) string {
	if why, err := os.ReadFile(filepath.Join(b.dir, p.name+".missing")); err == nil {
		return string(why)
	}
	at, err := b.fresh(p, false)
	if err != nil {
		return err.Error()
	}
	if status, said := b.outside(at, p.box(at, []string{absolute("true")})); status != 0 {
		fmt.Fprintf(os.Stderr, "%s: status %d: %s\n", p.name, status, said)
		if status < 0 { // ended by its patience's end
			return "no answer in time"
		}
		return "does not run here"
	}
	return ""
}

// fresh makes the home and the project anew.
func (b *bench) fresh(p peer, list bool) (place, error) {
	at := place{dir: b.dir, home: b.home, project: filepath.Join(b.home, "project"), list: list}
	names, err := os.ReadDir(b.home)
	if err != nil {
		return at, err
	}
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(b.home, n.Name())); err != nil {
			return at, err
		}
	}
	for name, text := range map[string]string{"notes.txt": "words\n", ".ssh/id_ed25519": "not a real key\n", "project/fetch.py": fetch} {
		if err := write(filepath.Join(b.home, name), text); err != nil {
			return at, err
		}
	}
	for _, argv := range [][]string{
		{"git", "init", "-q", at.project},
		{"cp", filepath.Join(b.dir, "kgate"), filepath.Join(at.project, "kgate-probe")},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return at, fmt.Errorf("%q: %w\n%s", argv, err, out)
		}
	}
	if p.settings == nil {
		return at, nil
	}
	return at, p.settings(at)
}

func (b *bench) environ(at place) []string {
	return []string{"HOME=" + at.home, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:" + filepath.Dir(node()), "LANG=C.UTF-8", "PWD=" + at.project,
		"AWS_SECRET_ACCESS_KEY=not-a-real-key", "USER=" + os.Getenv("USER")}
}

func node() string {
	file, err := exec.LookPath("node")
	if err != nil {
		return "/usr/bin/node"
	}
	return file
}

// absolute finds a program on PATH: not every peer does.
func absolute(name string) string {
	if file, err := exec.LookPath(name); err == nil {
		return file
	}
	return name
}

// outside runs a command on this machine.
func (b *bench) outside(at place, argv []string) (int, string) {
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = at.project, b.environ(at)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}

// inside runs it on the lab's machine.
func (b *bench) inside(at place, argv []string) (int, string, error) {
	out, err := os.CreateTemp("", "kgate-peers-")
	if err != nil {
		return 0, "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, "", err
	}
	defer null.Close()
	if program, err := exec.LookPath(argv[0]); err == nil {
		argv = append([]string{program}, argv[1:]...)
	}
	job, err := b.lab.Start(lab.Command{Argv: argv, Dir: at.project, Env: b.environ(at), Files: [3]*os.File{null, out, out}})
	if err != nil {
		return 0, "", err
	}
	stop := time.AfterFunc(patience, func() { job.Signal(9, true) })
	defer stop.Stop()
	status, err := job.Wait()
	text, _ := os.ReadFile(out.Name())
	return status, strings.TrimSpace(string(text)), err
}

// ask runs one probe in one box and says yes or no.
func (b *bench) ask(p peer, q probe) (string, error) {
	at, err := b.fresh(p, q.list)
	if err != nil {
		return "", err
	}
	fill := strings.NewReplacer("$PROJ", at.project, "$HOME", at.home, "$SOCKET", b.socket)
	command := slices.Clone(q.command)
	command[0] = absolute(command[0])
	for i := range command {
		command[i] = fill.Replace(command[i])
	}
	if !q.list {
		status, said := b.outside(at, p.box(at, command))
		if q.left != "" {
			_, err := os.Lstat(fill.Replace(q.left))
			return yes(err == nil), nil
		}
		if status != 0 {
			fmt.Fprintf(os.Stderr, "    status %d: %s\n", status, said)
		}
		return yes(status == 0), nil
	}
	if err := b.lab.Mark(); err != nil {
		return "", err
	}
	status, said, err := b.inside(at, p.box(at, command))
	if err != nil {
		return "", err
	}
	seen, err := b.lab.Sinks(strings.Fields(q.sink), status == 0)
	if err != nil {
		return "", err
	}
	if seen.Count == 0 {
		fmt.Fprintf(os.Stderr, "    status %d: %s\n", status, said)
	}
	return yes(seen.Count > 0), nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// time is the median of launches of true: the network off, on this machine, or
// with one host on the list, on the lab's.
func (b *bench) time(p peer, list bool) (string, error) {
	at, err := b.fresh(p, list)
	if err != nil {
		return "", err
	}
	if busy() {
		return "not measured (the machine was busy)", nil
	}
	var all []time.Duration
	for range b.launch + 2 {
		argv := p.box(at, []string{absolute("true")})
		begun := time.Now()
		status, said := 0, ""
		if list {
			status, said, err = b.inside(at, argv)
		} else {
			status, said = b.outside(at, argv)
		}
		all = append(all, time.Since(begun))
		if err != nil || status != 0 {
			return "", fmt.Errorf("true ended with %d: %s (%v)", status, said, err)
		}
	}
	all = all[2:] // the first ones fill caches
	slices.Sort(all)
	return fmt.Sprintf("%.1f ms", float64(all[len(all)/2].Microseconds())/1000), nil
}

// busy tells whether more wants to run than there are processors for, by the
// load of the last minute (proc_loadavg(5)): a launch's time then says nothing.
// This program's own work counts too, so one more than the processors is allowed.
func busy() bool {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return false
	}
	var load float64
	fmt.Sscan(string(text), &load)
	return load > float64(runtime.NumCPU())+1
}

// page is the table as it stands on the page.
func (b *bench) page(table [][]string) string {
	var s strings.Builder
	s.WriteString("The same commands in each box, judged from outside (`go run ./ci/peers -write` measures and writes this). " +
		"Only the first line and that the listed host answers should be yes.\n\n| the command |")
	for _, p := range peers {
		fmt.Fprintf(&s, " %s |", p.name)
	}
	s.WriteString("\n|---|" + strings.Repeat("---|", len(peers)) + "\n")
	launches := []string{"the network off", "one host on the list"}
	for j := range len(probes) + len(launches) {
		name := ""
		if j < len(probes) {
			name = probes[j].name
		} else {
			name = fmt.Sprintf("a launch of `true`, %s, median of %d", launches[j-len(probes)], b.launch)
		}
		fmt.Fprintf(&s, "| %s |", name)
		for i := range peers {
			fmt.Fprintf(&s, " %s |", table[i][j])
		}
		s.WriteString("\n")
	}
	s.WriteString("\n")
	for i, p := range peers {
		if p.how == "" {
			continue
		}
		fmt.Fprintf(&s, "%s %s: %s. ", p.name, b.version(p), p.how)
		if i == len(peers)-1 {
			s.WriteString("\n\n")
		}
	}
	fmt.Fprintf(&s, "Measured on %s as an ordinary user. Not measured: landrun, nsjail and fence, which no registry that was at hand carries. "+
		"Each peer can be set up more tightly than its documentation begins.\n", system())
	return s.String()
}

func (b *bench) version(p peer) string {
	if p.known != "" {
		return p.known
	}
	out, _ := exec.Command(p.version[0], p.version[1:]...).Output()
	first, _, _ := strings.Cut(string(out), "\n")
	fields := strings.Fields(first)
	if len(fields) == 0 {
		return "of unknown version"
	}
	return fields[len(fields)-1]
}

func system() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	name := "Linux"
	text, _ := os.ReadFile("/etc/os-release")
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			name = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	release, _, _ := strings.Cut(strings.TrimSpace(string(kernel)), "-")
	return name + ", Linux " + release
}
