package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
	span    = regexp.MustCompile("`([^`]+)`")
)

// slug is the anchor that a heading gets.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

func anchors(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &page{}
	p.read(string(text))
	var out []string
	for _, line := range p.prose {
		if m := heading.FindStringSubmatch(line); m != nil {
			out = append(out, slug(m[1]))
		}
	}
	return out, nil
}

// TestLinks follows each link of each page. All are within the tree, so that no
// page depends on somebody's server.
func TestLinks(t *testing.T) {
	followed := 0
	for _, p := range pages(t) {
		for i, line := range p.prose {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				followed++
				if why := follow(p, m[1]); why != "" {
					t.Errorf("%s:%d: %s: %s", p.file, i+1, m[1], why)
				}
			}
		}
	}
	t.Logf("%d links", followed)
	if followed < 100 {
		t.Errorf("only %d links were found", followed)
	}
}

func follow(p *page, target string) string {
	if strings.Contains(target, "://") {
		return "leads out of the source tree"
	}
	path, anchor, has := strings.Cut(target, "#")
	file := filepath.Join(top, p.dir, path)
	if path == "" {
		file = filepath.Join(top, p.file)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err.Error()
	}
	if info.IsDir() || !has {
		return ""
	}
	all, err := anchors(file)
	if err != nil {
		return err.Error()
	}
	if !slices.Contains(all, anchor) {
		return "no such heading"
	}
	return ""
}

func TestFollowNotices(t *testing.T) {
	p := &page{file: "README.md", dir: "."}
	for target, ok := range map[string]bool{
		"docs/policy.md": true, "docs/policy.md#order": true, "docs/policy.md#no-such": false, "docs/none.md": false, "https://example.org/": false,
	} {
		if why := follow(p, target); (why == "") != ok {
			t.Errorf("%s: %q", target, why)
		}
	}
}

// helps has the help of each command that was asked for.
var helps sync.Map

func help(t *testing.T, command string) string {
	if text, ok := helps.Load(command); ok {
		return text.(string)
	}
	out, err := exec.Command(kgate(t), append(strings.Fields(command), "--help")...).CombinedOutput()
	text := string(out)
	// What is no command gets the help of the one above it.
	if words := strings.Fields(command); err != nil || !strings.Contains(text, "kgate "+strings.Join(words, " ")) {
		text = ""
	}
	helps.Store(command, text)
	return text
}

// said are the pieces of a page that are code: blocks, and words in backquotes.
func (p *page) said() []string {
	var out []string
	for _, b := range p.blocks {
		if b.lang == "sh" {
			out = append(out, b.lines...)
		}
	}
	for _, line := range p.prose {
		for _, m := range span.FindAllStringSubmatch(line, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

var (
	called = regexp.MustCompile(`(?:^|[\s;&|(])kgate ([a-z].*)`)
	tried  = regexp.MustCompile(`go test (\./\S+) .*-run '?(\w+)`)
	ran    = regexp.MustCompile(`(?:^|\s)(\.?/?(?:ci|\.ci|docs|cmd|verify|backends|launcher|testdata)/[\w./-]*\w)`)
)

// TestNamesOnPages looks up each command, flag, scenario, test and file that a
// page names.
func TestNamesOnPages(t *testing.T) {
	looked := 0
	for _, p := range pages(t) {
		for _, s := range p.said() {
			for _, why := range unknown(t, s, &looked) {
				t.Errorf("%s: %q: %s", p.file, s, why)
			}
		}
	}
	t.Logf("%d names", looked)
	if looked < 60 {
		t.Errorf("only %d names were found", looked)
	}
}

func unknown(t *testing.T, s string, looked *int) (problems []string) {
	if m := called.FindStringSubmatch(s); m != nil {
		problems = append(problems, unknownCommand(t, m[1], looked)...)
	}
	if m := tried.FindStringSubmatch(s); m != nil {
		*looked++
		if out, err := exec.Command("grep", "-rlE", `^func `+m[2], filepath.Join(top, m[1])).Output(); err != nil || len(out) == 0 {
			problems = append(problems, "no such test")
		}
	}
	for _, m := range ran.FindAllStringSubmatch(s, -1) {
		if strings.Contains(m[1], "NAME") {
			continue // any name
		}
		*looked++
		if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
			problems = append(problems, "no such file")
		}
	}
	return problems
}

// unknownCommand takes what stands behind "kgate ".
func unknownCommand(t *testing.T, line string, looked *int) (problems []string) {
	line, _, _ = strings.Cut(line, " #")
	words := strings.Fields(line)
	command := words[0]
	*looked++
	if help(t, command) == "" {
		return []string{"no such command"}
	}
	if len(words) > 1 && regexp.MustCompile(`^[a-z]+$`).MatchString(words[1]) && help(t, command+" "+words[1]) != "" {
		command += " " + words[1]
	}
	for i, w := range words[1:] {
		if w == "--" || strings.ContainsAny(w, "|;&>") {
			break
		}
		if flag, ok := strings.CutPrefix(w, "--"); ok {
			*looked++
			flag, _, _ = strings.Cut(strings.TrimRight(flag, "]"), "=")
			if !regexp.MustCompile(`--` + regexp.QuoteMeta(flag) + `\b`).MatchString(help(t, command)) {
				problems = append(problems, "no such flag: --"+flag)
			}
			if flag == "only" && i+2 < len(words) {
				for _, name := range strings.Split(strings.TrimSuffix(words[i+2], ","), ",") {
					if _, err := os.Stat(filepath.Join(top, "testdata/scripts", name+".txtar")); err != nil && name != "NAME" {
						problems = append(problems, "no such scenario: "+name)
					}
				}
			}
		}
	}
	return problems
}

func TestUnknownNotices(t *testing.T) {
	n := 0
	for s, ok := range map[string]bool{
		"kgate run --allow-path ~ -- x --y": true, "kgate rum -- x": false, "kgate run --alow-path x": false, "kgate log verify --json": true,
		"kgate verify --only home-refused": true, "kgate verify --only home-refuzed": false, "HOME=x kgate doctor --json": true,
		"go test ./backends/seatbelt -run TestMacCompiles": true, "go test ./backends/seatbelt -run TestMacComplies": false,
		"ci/test": true, "ci/tests": false,
	} {
		if got := unknown(t, s, &n); (len(got) == 0) != ok {
			t.Errorf("%s: %q", s, got)
		}
	}
}
