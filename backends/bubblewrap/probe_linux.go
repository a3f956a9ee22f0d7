package bubblewrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// probeWithin bounds a probe: a tool that hangs must not hang doctor.
var probeWithin = 10 * time.Second

// The oldest release with all that Plan asks for (--perms), by bubblewrap's own
// release notes.
const oldestMajor, oldestMinor = 0, 5

// Probe runs bwrap in a throwaway project and says what came of it. That the
// tool is there does not say that it boxes: a file that must be readable and two
// that must not decide, and so does the list of network devices.
func (b *Backend) Probe(p *policy.Policy) []backends.Finding {
	plan, err := b.Plan(&policy.Policy{Home: p.Home, Homes: p.Homes, Project: p.Project, Paths: p.Paths}, backends.Command{Dir: p.Dir})
	if err != nil {
		return []backends.Finding{blocked("bubblewrap", err.Error(), "")}
	}
	tool := plan.Extra.(*own).Bwrap
	if !filepath.IsAbs(tool) {
		return nil // the plan's own findings say why
	}
	var rows [3][]backends.Finding
	var all sync.WaitGroup
	all.Go(func() { rows[0] = []backends.Finding{probeVersion(tool)} })
	all.Go(func() { rows[1] = b.probeBox(p) })
	if p.Effective().Value == policy.Restricted {
		all.Go(func() { rows[2] = b.probeFilter(p, tool) })
	}
	all.Wait()
	return append(append(rows[0], rows[1]...), rows[2]...)
}

func blocked(row, reason, mend string) backends.Finding {
	return backends.Finding{Row: row, Status: backends.Blocked, Reason: reason, Mend: mend}
}

func probeVersion(tool string) backends.Finding {
	ctx, cancel := context.WithTimeout(context.Background(), probeWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, tool, "--version")
	cmd.Env = []string{"LC_ALL=C"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	said := strings.TrimSpace(string(out))
	if err != nil {
		return blocked("bubblewrap", fmt.Sprintf("%s --version: %v: %s", tool, err, said), "install the package bubblewrap again")
	}
	version, ok := strings.CutPrefix(said, "bubblewrap ")
	parts := strings.Split(version, ".")
	if !ok || len(parts) < 2 {
		return blocked("bubblewrap", fmt.Sprintf("%s --version says %q, which is not bubblewrap's", tool, said), "install the package bubblewrap")
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if errors.Join(err1, err2) == nil && (major < oldestMajor || major == oldestMajor && minor < oldestMinor) {
		return blocked("bubblewrap", fmt.Sprintf("%s is version %s, too old for what kgate asks of it", tool, version),
			fmt.Sprintf("install bubblewrap %d.%d or later", oldestMajor, oldestMinor))
	}
	return backends.Finding{Row: "bubblewrap", Status: backends.Ready, Reason: fmt.Sprintf("%s, version %s", tool, version)}
}

// The probe's command needs nothing but the shell itself.
const witness = `read -r x <"$1" && echo "shown=$x"
read -r x <"$2" && echo "denied=$x"
read -r x <"$3" && echo "outside=$x"
n=0; while read -r x; do n=$((n+1)); done </proc/net/dev; echo "devices=$n"
:`

// probeBox launches the witness in a box with the real argument list.
func (b *Backend) probeBox(p *policy.Policy) []backends.Finding {
	dir, err := os.MkdirTemp("", "kgate-probe-")
	if err != nil {
		return []backends.Finding{blocked("namespaces", "no directory for the probe can be made: "+err.Error(), "make room in the temporary directory")}
	}
	defer os.RemoveAll(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	project := filepath.Join(dir, "project")
	shown, denied, outside := filepath.Join(project, "shown"), filepath.Join(project, "denied"), filepath.Join(dir, "outside")
	err = os.Mkdir(project, 0o700)
	for _, file := range []string{shown, denied, outside} {
		err = errors.Join(err, os.WriteFile(file, []byte("marker\n"), 0o600))
	}
	if err != nil {
		return []backends.Finding{blocked("namespaces", "the probe's files cannot be written: "+err.Error(), "make room in the temporary directory")}
	}
	out, err := b.launchWitness(&policy.Policy{
		Home: p.Home, Homes: p.Homes, Project: project, Dir: project,
		Network:  policy.Mode{Value: policy.Off},
		DenyRead: []policy.Path{{Name: denied}},
	}, filepath.Join(dir, "managed"), shown, denied, outside)
	if verdict := judge(out); err != nil && out != "" && strings.Contains(out, "devices=") {
		return []backends.Finding{verdict}
	}
	if err != nil {
		var known *backends.BlockedError
		if errors.As(err, &known) {
			return known.Findings
		}
		return []backends.Finding{blocked("namespaces", err.Error(), "run the line that kgate explain prints by hand to see more")}
	}
	made := backends.Finding{Row: "namespaces", Status: backends.Ready, Reason: "a throwaway box was made, with every namespace"}
	return []backends.Finding{made, judge(out)}
}

// judge reads what the witness said.
func judge(out string) backends.Finding {
	wrong := ""
	switch {
	case !strings.Contains(out, "shown=marker\n"):
		wrong = "a file of the project could not be read in the box"
	case strings.Contains(out, "denied="):
		wrong = "a denied file could be read in the box"
	case strings.Contains(out, "outside="):
		wrong = "a file outside the project could be read in the box"
	case !strings.Contains(out, "devices=3\n"): // two lines of heading, and lo
		wrong = "the machine's network devices are in the box"
	}
	if wrong != "" {
		return blocked("markers", wrong+": bwrap runs and does not enforce", "install the package bubblewrap, and see that PATH leads to it")
	}
	return backends.Finding{Row: "markers", Status: backends.Ready,
		Reason: "in a throwaway box the project was readable, a denied file and one outside were not, and there was no network"}
}

func (b *Backend) launchWitness(p *policy.Policy, managed string, markers ...string) (string, error) {
	argv := append([]string{"/bin/sh", "-c", witness, "sh"}, markers...)
	plan, err := b.Plan(p, backends.Command{Argv: argv, Dir: p.Dir, Env: []string{"LC_ALL=C", "PATH=/usr/bin:/bin"}})
	if err != nil {
		return "", err
	}
	plan.Extra.(*own).Managed = managed
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	// The shell's complaints about what it cannot read are not output.
	proc, err := b.Start(plan, backends.Stdio{Out: w})
	w.Close()
	if err != nil {
		return "", err
	}
	timer := time.AfterFunc(probeWithin, func() { proc.Kill() })
	defer timer.Stop()
	out, _ := io.ReadAll(io.LimitReader(r, 4096))
	exit, err := proc.Wait()
	if err == nil && exit.Signal == unix.SIGKILL {
		err = fmt.Errorf("a throwaway box did not end within %v", probeWithin)
	}
	return string(out), err
}

func (b *Backend) probeFilter(p *policy.Policy, tool string) []backends.Finding {
	resolver, err := hostfilter.HostResolver()
	if err != nil {
		return []backends.Finding{blocked(hostfilter.RowResolver, err.Error(), "name a name server in /etc/resolv.conf")}
	}
	return hostfilter.Probe(hostfilter.Config{Hosts: p.Hosts, IPv6: p.IPv6.Value, MTU: p.MTU.Value, Resolver: resolver, Tools: filterTools(b.Host, p)}, tool)
}
