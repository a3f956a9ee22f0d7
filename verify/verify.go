package verify

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config says what Run runs.
type Config struct {
	Scripts fs.FS    // package scripts has them
	Kgate   string   // the kgate to verify: an executable file
	Only    []string // names of scenarios; none: all that prove a row of doctor
	Escape  bool     // the escape suite too
	Must    []string // conditions whose lack is a failure
	Pcap    string   // directory for what the captures saw, or ""
	Trace   bool     // keep what each scenario did and what left meanwhile

	// Started and Ended, if not nil, are told of each scenario.
	// They are never called at the same time.
	Started func(s Scenario, number, of int)
	Ended   func(r Outcome)
}

// Outcome is what became of one scenario.
type Outcome struct {
	Name     string   `json:"name"`
	Title    string   `json:"title"`
	Proves   []string `json:"proves"`
	Result   Result   `json:"result"`
	Reason   string   `json:"reason"` // why it was skipped or failed; "" when it passed
	Evidence []string `json:"evidence"`
	Seconds  float64  `json:"seconds"`
	Attacks  *Attacks `json:"attacks,omitempty"` // if it is of the escape suite and passed

	Log   string `json:"-"`
	Trace *Trace `json:"-"` // nil unless Config.Trace
}

// Verdict is what a whole run comes to.
type Verdict string

// The verdicts. Unproven: nothing failed, but a row that doctor calls READY has
// no scenario that passed.
const (
	Proven   Verdict = "proven"
	Unproven Verdict = "not proven"
	Failed   Verdict = "failed"
)

// Report is the outcome of all scenarios.
type Report struct {
	Verdict   Verdict   `json:"verdict"`
	Scenarios []Outcome `json:"scenarios"`
	Rows      []Row     `json:"rows"`
	Seconds   float64   `json:"seconds"`
	Attacks   *Attacks  `json:"attacks,omitempty"` // of all scenarios together
}

// Row is one row of doctor with what the scenarios showed of it.
type Row struct {
	Row    string   `json:"row"`
	Status string   `json:"status"` // as doctor says
	Reason string   `json:"reason"`
	Proven bool     `json:"proven"`
	By     []string `json:"by"` // the scenarios about it
}

// Categories of scripts, by the start of their names.
const (
	escapePrefix = "escape-" // attacks, run on request
)

// Scenarios lists what Run would run, in order.
func (c *Config) Scenarios() ([]Scenario, error) {
	every, err := c.every()
	if err != nil {
		return nil, err
	}
	var out []Scenario
	for _, s := range every {
		if c.wants(s) {
			out = append(out, s)
		}
	}
	for _, name := range c.Only {
		if !slices.ContainsFunc(out, func(s Scenario) bool { return s.Name == name }) {
			return nil, fmt.Errorf("verify: there is no scenario %q", name)
		}
	}
	return out, nil
}

func (c *Config) every() ([]Scenario, error) {
	names, err := fs.Glob(c.Scripts, "*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		text, err := fs.ReadFile(c.Scripts, name)
		if err != nil {
			return nil, err
		}
		all = append(all, Describe(name, text))
	}
	return all, nil
}

func (c *Config) wants(s Scenario) bool {
	switch {
	case len(c.Only) > 0:
		return slices.Contains(c.Only, s.Name)
	case s.OS != "" && s.OS != runtime.GOOS:
		return false
	case strings.HasPrefix(s.Name, escapePrefix):
		return c.Escape
	}
	return len(s.Proves) > 0
}

// Run runs the scenarios with c.Kgate on this machine, a few at a time. The
// error is about the run itself, not about what it found.
func Run(c Config) (*Report, error) {
	scenarios, err := c.Scenarios()
	if err != nil {
		return nil, err
	}
	if c.Pcap != "" {
		if c.Pcap, err = filepath.Abs(c.Pcap); err == nil {
			err = os.MkdirAll(c.Pcap, 0o755)
		}
		if err != nil {
			return nil, fmt.Errorf("verify: make the directory of captures: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", "kgate-verify-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if _, err := Extract(c.Scripts, dir); err != nil {
		return nil, err
	}
	from := time.Now()
	report := &Report{Scenarios: []Outcome{}, Rows: []Row{}}
	rows, err := doctor(c.Kgate)
	if err != nil {
		return nil, err
	}
	report.Scenarios = c.all(scenarios, dir)
	report.Attacks = sum(report.Scenarios)
	report.judge(rows, len(c.Only) > 0)
	report.Seconds = time.Since(from).Seconds()
	return report, nil
}

// patience is how long one scenario may take.
const patience = 2 * time.Minute

// atOnce is how many scenarios run at a time: they mostly wait.
const atOnce = 3

// all runs the scenarios and returns what became of them, in their order.
func (c *Config) all(scenarios []Scenario, dir string) []Outcome {
	out := make([]Outcome, len(scenarios))
	var next, telling sync.Mutex
	var workers sync.WaitGroup
	number := 0
	for range atOnce {
		workers.Go(func() {
			for {
				next.Lock()
				i := number
				number++
				next.Unlock()
				if i >= len(scenarios) {
					return
				}
				telling.Lock()
				if c.Started != nil {
					c.Started(scenarios[i], i+1, len(scenarios))
				}
				telling.Unlock()
				out[i] = c.one(scenarios[i], filepath.Join(dir, scenarios[i].Name+".txtar"))
				telling.Lock()
				if c.Ended != nil {
					c.Ended(out[i])
				}
				telling.Unlock()
			}
		})
	}
	workers.Wait()
	return out
}

func (c *Config) one(s Scenario, file string) Outcome {
	o := Outcome{Name: s.Name, Title: s.Title, Proves: append([]string{}, s.Proves...), Evidence: []string{}}
	if c.Trace {
		o.Trace = &Trace{}
	}
	from := time.Now()
	p := Params(Options{
		Files: []string{file}, Kgate: c.Kgate, Must: c.Must, Pcap: c.Pcap, Trace: o.Trace,
		Evidence: func(_, line string) { o.Evidence = append(o.Evidence, line) },
		Attacks:  func(_ string, a Attacks) { o.Attacks = &a },
	})
	p.Deadline = from.Add(patience)
	r := runScript(p)
	o.Seconds = time.Since(from).Seconds()
	o.Result, o.Log = r.Result, r.Log
	switch r.Result {
	case Skip:
		o.Reason = r.Reason
		for name, err := range Conditions() {
			if strings.Contains(r.Log, "[!"+name+"]") {
				o.Reason = fmt.Sprintf("%s (%v)", r.Reason, err)
			}
		}
	case Fail:
		o.Reason = failure(r.Log)
	}
	return o
}

// failure is the line of a script's log that says what went wrong.
func failure(log string) string {
	for _, line := range strings.Split(log, "\n") {
		if _, why, ok := strings.Cut(line, "FAIL: "); ok {
			return why
		}
	}
	return strings.TrimSpace(log)
}

// judge compares the scenarios with what doctor said. part is set when only some
// of them were run: then rows that no scenario was about are left out.
func (r *Report) judge(rows []Row, part bool) {
	r.Verdict = Proven
	for _, row := range rows {
		row.By, row.Proven = []string{}, false
		passed, other := 0, 0
		for _, o := range r.Scenarios {
			if !slices.Contains(o.Proves, row.Claim()) {
				continue
			}
			row.By = append(row.By, o.Name)
			if o.Result == Pass {
				passed++
			} else {
				other++
			}
		}
		if part && len(row.By) == 0 {
			continue // nobody asked
		}
		row.Proven = passed > 0 && other == 0
		if row.Status == "READY" && !row.Proven {
			r.Verdict = Unproven
		}
		r.Rows = append(r.Rows, row)
	}
	for _, o := range r.Scenarios {
		switch {
		case o.Result == Fail:
			r.Verdict = Failed
			return
		// Asked for by name and not shown is not proven, whatever doctor says.
		case part && o.Result == Skip:
			r.Verdict = Unproven
		}
	}
	if len(r.Scenarios) == 0 {
		r.Verdict = Unproven
	}
}

// claims says what the rows come to that are parts of one claim: a scenario shows
// that the parts work together, which is what a person relies on.
var claims = map[string]string{
	"bubblewrap":   "box",
	"namespaces":   "box",
	"markers":      "box",
	"sandbox-exec": "box",
	"profile":      "box",
	"slirp4netns":  "network restricted",
	"/dev/net/tun": "network restricted",
	"nsenter":      "network restricted",
	"iptables":     "network restricted",
	"ip6tables":    "network restricted",
	"resolver":     "network restricted",
	"hosts":        "network restricted",
	"host filter":  "network restricted",
}

// Claim is what a scenario must say that it proves to speak for the row.
func (r *Row) Claim() string {
	if c, ok := claims[r.Row]; ok {
		return c
	}
	// The mode is in the reason: "network off: the command has ...".
	if mode, _, ok := strings.Cut(r.Reason, ":"); ok && r.Row == "network" {
		return mode
	}
	return r.Row
}

// doctor asks the kgate under test what it claims of this machine, with the
// person's own policy, in the directory that the person is in. Its status
// is 1 when something is blocked, which is an answer too.
func doctor(kgate string) ([]Row, error) {
	cmd := exec.Command(kgate, "doctor", "--json")
	cmd.Args[0] = "kgate"
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("verify: kgate doctor --json: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	var said struct {
		Rows []Row `json:"rows"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("verify: kgate doctor --json: %w", err)
	}
	return said.Rows, nil
}
