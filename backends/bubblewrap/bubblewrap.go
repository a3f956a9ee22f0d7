// Package bubblewrap is the box on Linux: it turns a policy into the argument
// list of bwrap, and starts it.
//
// The box is made of what is listed and of nothing else. System directories are
// read-only, the home directory, /tmp and /run are empty and its own, the
// project is writable, and on top of what is writable lie the parts that hold
// the ways out through it and the paths that may not be read.
//
// Plan is text and facts: it builds and is tested on every system. Start and
// Probe need Linux.
package bubblewrap

import (
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kgate-dev/kgate/backends"
	"github.com/kgate-dev/kgate/backends/bubblewrap/seccomp"
	"github.com/kgate-dev/kgate/backends/hostfilter"
	"github.com/kgate-dev/kgate/launcher/policy"
)

// Backend plans and starts boxes made by bwrap.
type Backend struct {
	Host Host

	// Stage is the program that goes in front of the command's own words when
	// the command gets a terminal. It is bound read-only into the box.
	Stage Stage

	Verbose  io.Writer // a line for each refusal of the host filter; nil: none
	Warnings io.Writer // a line when a part of the host filter ends early; nil: none
}

var _ backends.Backend = (*Backend)(nil)

// Stage is a program of kgate's own inside the box, which ends by executing the
// command.
type Stage struct {
	Source string   // the file on the host; "" when there is no stage
	Words  []string // follow the program's name and stand before the command's
}

// InsidePath is a mount point that every box has and no host.
const InsidePath = "/run/kgate"

// Where the stage's program is in the box.
const stagePath = InsidePath + "/stage"

// New returns the backend that plans with the facts of one host.
func New(h Host) *Backend { return &Backend{Host: h} }

// Name is "bubblewrap".
func (b *Backend) Name() string { return "bubblewrap" }

// maxWords is bwrap's own limit on the words it takes, whether they come as
// arguments or from --args, the command's included ("Exceeded maximum number of
// arguments 9000", measured with 0.8.0).
const maxWords = 9000

// own is what a plan carries for Start alone.
type own struct {
	Bwrap   string // the tool's file
	Holds   []Hold // what keeps absent ways out absent
	Managed string // ~/.kgate
	Tools   hostfilter.Tools
	Nested  bool // allow.nested
}

// planner is one Plan in the making.
type planner struct {
	*layout
	p        *policy.Policy
	c        backends.Command
	stage    Stage
	tools    hostfilter.Tools // of the host filter, with a host list
	bwrap    string
	findings []backends.Finding
	holds    []Hold
	roots    []tree // what of the host is shown beyond the system's

	// What the search of the writable trees has come by: see nested.
	met    []string // socket files
	unseen bool     // not all of the trees was looked at
	tooled int      // files of tools below the tops

	mountsRead []mountLine // empty where no file system is mounted twice; nil: not read yet
}

// Plan turns a policy into the argument list of one launch. It reads the host
// and changes nothing. Its errors are facts that could not be read; what cannot
// be enforced is a finding.
func (b *Backend) Plan(p *policy.Policy, c backends.Command) (*backends.Plan, error) {
	w := &planner{layout: newLayout(b.Host), p: p, c: c, stage: b.Stage}
	w.tool()
	w.namespaces()
	w.system()
	w.trees()
	w.temporary()
	w.resolver()
	w.hideDenied()
	w.hideManaged()
	w.hidePrograms()
	w.protect()
	w.hideSockets()
	w.overlays()
	w.finish()

	plan := &backends.Plan{
		Backend:  b.Name(),
		Findings: w.findings,
		Parts:    w.parts,
		Files:    w.files,
		Command:  c,
		Network:  p.Effective(),
		Hosts:    p.Hosts,
		IPv6:     p.IPv6.Value,
		MTU:      p.MTU.Value,
		Extra: &own{
			Nested: p.Nested.Value,
			Bwrap:  w.bwrap, Holds: w.holds, Managed: filepath.Join(p.Home, ".kgate"), Tools: w.tools,
		},
	}
	if n := len(plan.Argv()); n > maxWords {
		plan.Findings = append(plan.Findings, backends.Finding{
			Row: "words", Status: backends.Blocked,
			Reason: fmt.Sprintf("the box needs %d words and bwrap takes %d, the command's own included", n, maxWords),
			Mend:   "deny directories rather than the files in them, or give the command fewer arguments",
		})
	}
	return plan, nil
}

func (w *planner) finding(row string, s backends.Status, reason, mend string) {
	w.findings = append(w.findings, backends.Finding{Row: row, Status: s, Reason: reason, Mend: mend})
}

// built is the origin of what no setting asks for.
func built(key string) policy.Origin { return policy.Origin{Kind: policy.FromDefault, Key: key} }

// tool finds bwrap on PATH. One that a command in the box could have put there
// is not run: it would run outside.
func (w *planner) tool() {
	w.bwrap = "bwrap"
	for _, dir := range w.h.Path() {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, "bwrap")
		info, err := follow(w.h, file)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if writableByBox(w.h, dir, w.p) {
			w.finding("bubblewrap", backends.Blocked,
				fmt.Sprintf("the first bwrap on PATH is %q, where a command in the box can write", file),
				"take that directory off PATH, or remove the file")
			return
		}
		w.bwrap = file
		if info.Mode()&fs.ModeSetuid != 0 && w.p.Effective().Value == policy.Restricted {
			w.finding("bubblewrap", backends.Blocked,
				fmt.Sprintf("%q is setuid: its user namespace is root's, and no host filter can be put into it", file),
				"sudo chmod u-s "+quote(file)+", or kgate network off")
		}
		return
	}
	w.finding("bubblewrap", backends.Blocked, "bwrap is not on PATH", "install the package bubblewrap")
}

func writableByBox(h Host, dir string, p *policy.Policy) bool {
	real, _, err := resolve(h, dir)
	if err != nil {
		return false
	}
	trees := []string{p.Project}
	for _, g := range p.Paths {
		if g.Write {
			trees = append(trees, g.Name)
		}
	}
	for _, t := range trees {
		if within(dir, t) {
			return true
		}
		if rt, _, err := resolve(h, t); err == nil && within(real, rt) {
			return true
		}
	}
	return false
}

// namespaces is everything that is the same for every launch: what the command
// is cut off from, and what it may not do.
func (w *planner) namespaces() {
	for _, x := range []struct{ word, why string }{
		{"user", "no privileges of the host, whoever starts kgate"},
		{"ipc", "no shared memory or semaphores of the host"},
		{"pid", "no processes of the host"},
		{"uts", "the host's name cannot be changed"},
	} {
		w.add("unshare-"+x.word, x.why, built("namespaces"), "--unshare-"+x.word)
	}
	w.add("unshare-cgroup", "no control groups of the host, where the kernel has the namespace",
		built("namespaces"), "--unshare-cgroup-try")
	mode := w.p.Effective()
	switch mode.Value {
	case policy.Open:
		w.finding("network", backends.Degraded,
			"network open: the network box is gone; the command reaches whatever this machine reaches, its local services and abstract sockets (X11, D-Bus) included",
			"kgate network off")
	case policy.Restricted:
		w.add("unshare-net", "no network but the one that the host filter attaches", mode.From, "--unshare-net")
		w.restricted()
	default:
		w.add("unshare-net", "no network at all", mode.From, "--unshare-net")
		w.finding("network", backends.Ready, "network off: the command has a network namespace with nothing in it", "")
	}
	w.add("die-with-parent", "the box ends when kgate does", built("lifetime"), "--die-with-parent")
	w.add("cap-drop", "no capabilities, so that root in the box is not root", built("privileges"), "--cap-drop", "ALL")
}

// CallsFile is the name of the plan's file that holds the filter of system calls.
const CallsFile = "seccomp"

// calls adds the filter of system calls.
func (w *planner) calls() {
	nested := w.p.Nested
	program := filterOfCalls(nested.Value)
	from := built("system calls")
	why := "the kernel's own ways past namespaces (vsock, io_uring, keyrings, new user namespaces and others) are refused"
	switch {
	case program == nil:
		w.finding("system calls", backends.Blocked, "there is no filter of system calls for "+runtime.GOARCH, "run kgate on amd64 or arm64")
		return
	case nested.Value:
		from = nested.From
		why = "the kernel's own ways past namespaces are refused, but for those that a box in the box needs"
		w.finding("system calls", backends.Degraded,
			fmt.Sprintf("%d rules; allow.nested (%s): the command may make user namespaces, in which it has capabilities over what it makes there", len(seccomp.For(true)), from),
			"take allow.nested out of the policy")
	default:
		w.finding("system calls", backends.Ready, fmt.Sprintf("%d rules refuse the kernel's own ways past namespaces", len(seccomp.For(false))), "")
	}
	w.files = append(w.files, backends.File{Name: CallsFile, Mode: 0o400, Content: program, Why: why})
	w.add("seccomp", why, from, "--seccomp", "@"+CallsFile)
}

// CallRules says what the plan's filter of system calls refuses, a line a rule.
func CallRules(plan *backends.Plan) []string {
	o, ok := plan.Extra.(*own)
	if !ok {
		return nil
	}
	return seccomp.Text(o.Nested)
}

// finish adds the descriptors, the working directory and the command's own
// words. A word that starts with "@" is the number of a descriptor that Start
// makes.
func (w *planner) finish() {
	w.calls()
	w.add("status-fd", "how the command ended, apart from how the box did", built("lifetime"), "--json-status-fd", "@status")
	w.add("sync-fd", "tells when the box is gone", built("lifetime"), "--sync-fd", "@sync")
	w.add("block-fd", "the command waits until all of the box is there and has been looked at", built("lifetime"), "--block-fd", "@block")
	w.innerEnv()
	w.add("chdir", "the working directory", built("working directory"), "--chdir", w.real(w.c.Dir))
	w.add("end", "what follows is the command", built("command"), "--")
	if w.staged() {
		w.add("stage", "makes the terminal the command's own", built("terminal"),
			append([]string{stagePath}, w.stage.Words...)...)
	}
	argv := w.c.Argv
	if len(argv) == 0 {
		argv = []string{"true"} // doctor plans without a command
	}
	w.add("command", "what the person asked for", built("command"), argv...)
}

func (w *planner) staged() bool { return w.c.Terminal && w.stage.Source != "" }

// temporary creates the directories that the command's own variables point to
// in the box's empty trees, so that programs find them.
func (w *planner) temporary() {
	for _, name := range []string{"TMPDIR", "XDG_RUNTIME_DIR"} {
		dir := ""
		for _, e := range w.c.Env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				dir = v
			}
		}
		if dir == "" || !filepath.IsAbs(dir) {
			continue
		}
		dir = filepath.Clean(dir)
		if m := w.at(dir); m.kind == empty && m.path != dir {
			w.add("dir:"+dir, name+" points here", built("environment"), "--perms", "0700", "--dir", dir)
		}
	}
}
