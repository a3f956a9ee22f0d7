// Package action has the steps of the GitHub Action and their test; action.yml is
// at the root of the tree, where GitHub looks for it.
package action

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

type input struct {
	Description string
	Default     *string
}

type step struct {
	ID, If, Uses, Shell, Run string
	With, Env                map[string]string
	Dir                      string `yaml:"working-directory"`
}

type metadata struct {
	Name, Description string
	Inputs            map[string]input
	Outputs           map[string]struct{ Description, Value string }
	Runs              struct {
		Using string
		Steps []step
	}
}

func read(t *testing.T) metadata {
	t.Helper()
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var m metadata
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

var expression = regexp.MustCompile(`\$\{\{ ?([^}]+?) ?\}\}`)

// TestMetadata holds what GitHub asks of a composite action, and that no input
// becomes part of a script.
func TestMetadata(t *testing.T) {
	m := read(t)
	if m.Runs.Using != "composite" || m.Name == "" || m.Description == "" {
		t.Errorf("%+v", m)
	}
	all, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range m.Inputs {
		if in.Description == "" || in.Default == nil {
			t.Errorf("input %s has no description or no default", name)
		}
		if !strings.Contains(string(all), "inputs."+name+" ") {
			t.Errorf("input %s is used nowhere", name)
		}
	}
	for _, e := range expression.FindAllStringSubmatch(string(all), -1) {
		if name, ok := strings.CutPrefix(e[1], "inputs."); ok {
			if _, ok := m.Inputs[name]; !ok {
				t.Errorf("%s is no input", name)
			}
		}
	}
	for i, s := range m.Runs.Steps {
		switch {
		case s.Uses != "":
			if !regexp.MustCompile(`@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("step %d: %s is not pinned to a commit", i, s.Uses)
			}
		case s.Shell != "bash":
			t.Errorf("step %d: shell %q", i, s.Shell)
		case strings.Contains(s.Run, "${{"):
			t.Errorf("step %d: an expression in a script: %s", i, s.Run)
		}
	}
}

// runner stands in for GitHub's.
type runner struct {
	t          *testing.T
	dir        string
	inputs     map[string]string
	outputs    string
	pathFile   string
	summary    string
	workspace  string
	log        string
	statusOf   map[string]int
	stepsTaken []string
}

func newRunner(t *testing.T, with map[string]string) *runner {
	dir := t.TempDir()
	r := &runner{t: t, dir: dir, inputs: map[string]string{}, statusOf: map[string]int{},
		outputs: filepath.Join(dir, "output"), pathFile: filepath.Join(dir, "path"), summary: filepath.Join(dir, "summary"),
		workspace: filepath.Join(dir, "home", "work")}
	if err := os.MkdirAll(r.workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, in := range read(t).Inputs {
		r.inputs[name] = *in.Default
	}
	r.inputs["prefix"] = filepath.Join(dir, "prefix")
	for k, v := range with {
		if _, ok := r.inputs[k]; !ok {
			t.Fatalf("no input %s", k)
		}
		r.inputs[k] = v
	}
	return r
}

// value replaces the expressions of a text.
func (r *runner) value(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		what := expression.FindStringSubmatch(e)[1]
		if v, ok := r.inputs[strings.TrimPrefix(what, "inputs.")]; ok {
			return v
		}
		if what == "github.token" {
			return ""
		}
		r.t.Fatalf("this runner knows no %s", what)
		return ""
	})
}

// wants evaluates the conditions that the action has.
func (r *runner) wants(condition string) bool {
	if condition == "" {
		return true
	}
	m := regexp.MustCompile(`^inputs\.([a-z-]+) (==|!=) '([^']*)'$`).FindStringSubmatch(condition)
	if m == nil {
		r.t.Fatalf("this runner does not understand if: %s", condition)
	}
	return (r.inputs[m[1]] == m[3]) == (m[2] == "==")
}

// run takes the action's steps, up to the first that fails.
func (r *runner) run() int {
	root, err := filepath.Abs("../..")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range read(r.t).Runs.Steps {
		if s.Uses != "" || !r.wants(s.If) {
			continue
		}
		r.stepsTaken = append(r.stepsTaken, s.Run)
		script := filepath.Join(r.dir, "script.sh")
		if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
			r.t.Fatal(err)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		cmd.Dir = filepath.Join(r.workspace, r.value(s.Dir))
		cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(r.workspace), "GITHUB_ACTION_PATH="+root, "GITHUB_WORKSPACE="+r.workspace,
			"GITHUB_OUTPUT="+r.outputs, "GITHUB_PATH="+r.pathFile, "GITHUB_STEP_SUMMARY="+r.summary,
			"GOCACHE="+goenv(r.t, "GOCACHE"), "GOMODCACHE="+goenv(r.t, "GOMODCACHE"), "GOFLAGS=-buildvcs=false")
		for k, v := range s.Env {
			cmd.Env = append(cmd.Env, k+"="+r.value(v))
		}
		out, err := cmd.CombinedOutput()
		r.log += string(out)
		if err != nil {
			return cmd.ProcessState.ExitCode()
		}
	}
	return 0
}

func goenv(t *testing.T, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (r *runner) said(file string) string {
	text, _ := os.ReadFile(file)
	return string(text)
}

// TestSteps takes the steps as a runner does, with a prefix of the test's own.
func TestSteps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("what it installs, it installs into a Linux runner")
	}
	if testing.Short() {
		t.Skip("builds kgate and runs scenarios")
	}
	t.Run("verify and a command", func(t *testing.T) {
		r := newRunner(t, map[string]string{"verify": "true", "only": "home-refused,home-write-isolated", "junit": "report.xml", "must": "userns",
			"command": `touch made && printf '%s\n' "$0" >&2; ! ls ~/.kgate`})
		if status := r.run(); status != 0 {
			t.Fatalf("status %d\n%s", status, r.log)
		}
		if len(r.stepsTaken) != 3 {
			t.Errorf("steps %q", r.stepsTaken)
		}
		kgate := filepath.Join(r.inputs["prefix"], "bin", "kgate")
		if out := r.said(r.outputs); out != "kgate="+kgate+"\nverdict=proven\n" {
			t.Errorf("outputs %q", out)
		}
		if r.said(r.pathFile) != filepath.Dir(kgate)+"\n" || !strings.Contains(r.said(r.summary), "\nproven: 2 proven") {
			t.Errorf("path %q, summary %q", r.said(r.pathFile), r.said(r.summary))
		}
		if to, err := os.Readlink(kgate + "-sh"); to != "kgate" {
			t.Errorf("kgate-sh: %q %v", to, err)
		}
		for _, file := range []string{"report.xml", "made"} {
			if _, err := os.Stat(filepath.Join(r.workspace, file)); err != nil {
				t.Error(err)
			}
		}
		policy := r.said(filepath.Join(filepath.Dir(r.workspace), ".kgate", "config.yaml"))
		if !strings.Contains(policy, "\nnetwork: off\n") {
			t.Errorf("policy\n%s", policy)
		}
	})
	t.Run("a status, a policy of one's own, and hostile inputs", func(t *testing.T) {
		r := newRunner(t, map[string]string{"command": `exit 7`, "network": "restricted", "allow-net": "host.example:443 *.a.example", "allow-path": "/srv/x y\n"})
		own := filepath.Join(filepath.Dir(r.workspace), ".kgate")
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(own, "config.yaml"), []byte("version: 1\nnetwork: off\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		// The policy that is there says off, so the hosts are refused: it was kept.
		if status := r.run(); status != 125 || !strings.Contains(r.log, `"host.example:443" cannot be reached with network off`) {
			t.Errorf("status %d\n%s", status, r.log)
		}
		r.inputs["allow-net"], r.inputs["allow-path"] = "", "$(touch "+r.dir+"/pasted)\n;touch "+r.dir+"/pasted"
		if status := r.run(); status == 0 {
			t.Errorf("status %d\n%s", status, r.log)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "pasted")); err == nil {
			t.Error("an input was run as a script")
		}
		r.inputs["allow-path"] = ""
		if status := r.run(); status != 7 {
			t.Errorf("status %d, want the command's own\n%s", status, r.log)
		}
	})
}
