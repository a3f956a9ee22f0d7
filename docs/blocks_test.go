package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgate-dev/kgate/verify"
)

var (
	built string
	bin   string
)

func TestMain(m *testing.M) {
	// A lab's machine is this program, started anew.
	if status, ok := verify.Stage(os.Args); ok {
		os.Exit(status)
	}
	status := m.Run()
	if bin != "" {
		os.RemoveAll(bin)
	}
	os.Exit(status)
}

// kgate is the kgate of this source tree.
func kgate(t *testing.T) string {
	t.Helper()
	if built != "" {
		return built
	}
	var err error
	if bin, err = os.MkdirTemp("", "kgate-docs-"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(bin, "kgate")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", file, "./cmd/kgate")
	cmd.Dir = top
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build kgate: %v\n%s", err, out)
	}
	// The one word that harnesses take.
	if err := os.Symlink("kgate", filepath.Join(bin, "kgate-sh")); err != nil {
		t.Fatal(err)
	}
	built = file
	return built
}

// need skips a test where a condition does not hold, and fails it where
// KGATE_MUST says that it does.
func need(t *testing.T, name string) {
	t.Helper()
	if why := verify.Conditions()[name]; why != nil {
		if strings.Contains(os.Getenv("KGATE_MUST"), name) {
			t.Fatal(why)
		}
		t.Skip(why)
	}
}

// TestBlocks runs the blocks of each page in their order, as a person would who
// types them: in a fresh home with a project below it. A block that cannot run
// says why in a comment before it, and is counted.
func TestBlocks(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the pages' host lists are Linux's; kgate verify has what a Mac can show")
	}
	need(t, "userns")
	need(t, "hostfilter")
	count := map[string]int{}
	for _, p := range pages(t) {
		if len(p.blocks) == 0 {
			continue
		}
		person := newPerson(t)
		for _, b := range p.blocks {
			t.Run(fmt.Sprintf("%s/%d", p.file, b.line), func(t *testing.T) {
				if why, ok := b.mark("not run"); ok {
					if len(strings.Fields(why)) < 3 {
						t.Errorf("not run: %q is no reason", why)
					}
					count["not run"]++
					t.Logf("not run: %s", why)
					return
				}
				count["run"]++
				person.runs(t, b)
			})
		}
	}
	t.Logf("%d blocks run, %d not", count["run"], count["not run"])
	if count["run"] < 15 || count["not run"] > count["run"] {
		t.Errorf("%d blocks run, %d not", count["run"], count["not run"])
	}
}

// person has a home, and is somewhere in it.
type person struct{ home, at string }

func newPerson(t *testing.T) *person {
	t.Helper()
	home := t.TempDir()
	project := filepath.Join(home, "project")
	for name, text := range map[string]string{
		"project/Makefile": "test:\n\t@echo all tests pass\n",
		"notes/todo":       "buy milk\n",
	} {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", project).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	return &person{home: home, at: project}
}

func (p *person) runs(t *testing.T, b *block) {
	t.Helper()
	switch b.lang {
	case "sh":
		p.types(t, b.lines)
	case "yaml":
		p.writes(t, b)
	case "txtar":
		file := filepath.Join(t.TempDir(), "page.txtar")
		if err := os.WriteFile(file, []byte(b.text()), 0o644); err != nil {
			t.Fatal(err)
		}
		testscript.Run(t, verify.Params(verify.Options{Kgate: kgate(t), Files: []string{file}, Must: []string{"userns"}}))
	case "text":
		// What was seen, and no command. It is written by a program, which says
		// again that it is so: see ci/picture.
		if b.lines[0] == "" || !strings.HasPrefix(b.lines[0], "$ kgate ") {
			t.Errorf("text that no program writes")
		}
	default:
		t.Errorf("a block of %q, which no test knows how to run", b.lang)
	}
}

// writes puts a policy where its mark says, and has kgate read it.
func (p *person) writes(t *testing.T, b *block) {
	t.Helper()
	name, ok := b.mark("file")
	if !ok {
		t.Fatal("a file without a mark that says which")
	}
	file := strings.NewReplacer("~", p.home, "PROJECT", filepath.Join(p.home, "project")).Replace(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.text()), 0o600); err != nil {
		t.Fatal(err)
	}
	p.types(t, []string{"(cd ~/project && kgate explain -- true >/dev/null)"})
}

var wanted = regexp.MustCompile(`\s+# exit status (\d+)$`)

// types runs each line in a shell and fails unless its status is 0, or what a
// comment at its end says. Where the person is afterwards is kept.
func (p *person) types(t *testing.T, lines []string) {
	t.Helper()
	where := filepath.Join(t.TempDir(), "where")
	var script strings.Builder
	for _, line := range lines {
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		want := "0"
		if m := wanted.FindStringSubmatch(line); m != nil {
			want = m[1]
		}
		// The line ends with a comment, perhaps: so the test of its status is on the next.
		fmt.Fprintf(&script, "%s\nstatus=$?; [ $status = %s ] || { echo \"status $status, want %s:\" %s >&2; exit 99; }\n", line, want, want, quote(line))
	}
	script.WriteString("pwd >" + quote(where) + "\n")
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir = p.at
	cmd.Env = append(os.Environ(), "HOME="+p.home, "PATH="+filepath.Dir(kgate(t))+":"+os.Getenv("PATH"), "SHELL=/bin/sh", "LANG=C.UTF-8",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+p.home, "TERM=dumb", "CODEX_HOME=", "XDG_CONFIG_HOME=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if at, err := os.ReadFile(where); err == nil {
		p.at = strings.TrimSpace(string(at))
	}
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TestTypesNotices shows that a line that does not do what the page says fails.
func TestTypesNotices(t *testing.T) {
	p := newPerson(t)
	p.types(t, []string{"cd ..   # somewhere else", "sh -c 'exit 7'   # exit status 7"})
	if p.at != p.home {
		t.Errorf("at %s", p.at)
	}
	for _, line := range []string{"false", "true   # exit status 1", "no-such-program"} {
		cmd := exec.Command(os.Args[0], "-test.run", "TestTypesInner")
		cmd.Env = append(os.Environ(), "KGATE_DOCS_LINE="+line)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%q passes:\n%s", line, out)
		}
	}
}

func TestTypesInner(t *testing.T) {
	if line := os.Getenv("KGATE_DOCS_LINE"); line != "" {
		newPerson(t).types(t, []string{line})
	}
}
