// Package docs has no code: its tests run what the pages tell people to type.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of a page.
type block struct {
	line   int // of its fence
	lang   string
	lines  []string
	marks  []string // comments right before it: "not run: why", "file: path"
	number int
}

// mark is what stands behind "name: " in a comment before the block.
func (b *block) mark(name string) (string, bool) {
	for _, m := range b.marks {
		if value, ok := strings.CutPrefix(m, name+": "); ok {
			return value, true
		}
	}
	return "", false
}

func (b *block) text() string { return strings.Join(b.lines, "\n") + "\n" }

type page struct {
	file   string // from the top of the source tree
	dir    string
	prose  []string // its lines, those of blocks empty
	blocks []*block
}

// top is the top of the source tree.
const top = ".."

func pages(t *testing.T) []*page {
	t.Helper()
	files, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Join("docs", files[i])
	}
	more, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range more {
		files = append(files, filepath.Base(f))
	}
	var all []*page
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(top, f))
		if err != nil {
			t.Fatal(err)
		}
		p := &page{file: f, dir: filepath.Dir(f)}
		for _, problem := range p.read(string(text)) {
			t.Errorf("%s: %s", f, problem)
		}
		all = append(all, p)
	}
	if len(all) < 8 {
		t.Fatalf("only %d pages", len(all))
	}
	return all
}

var comment = regexp.MustCompile(`^<!-- (.+) -->$`)

// read cuts a page into prose and blocks, and returns what it cannot.
func (p *page) read(text string) (problems []string) {
	var (
		open  *block
		marks []string
		last  string
	)
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && line == "```":
			open = nil
			p.prose = append(p.prose, "")
		case open != nil:
			open.lines = append(open.lines, line)
			p.prose = append(p.prose, "")
		case isFence:
			open = &block{line: i + 1, lang: fence, marks: marks, number: len(p.blocks) + 1}
			p.blocks = append(p.blocks, open)
			p.prose = append(p.prose, "")
			marks = nil
		default:
			if m := comment.FindStringSubmatch(line); m != nil {
				marks = append(marks, m[1])
			} else {
				marks = nil
			}
			if strings.HasPrefix(line, "    ") && last == "" {
				problems = append(problems, "a block without a fence, which no test would run: "+line)
			}
			p.prose = append(p.prose, line)
		}
		last = line
	}
	if open != nil {
		problems = append(problems, "a block without an end")
	}
	return problems
}

// TestRead shows that what the other tests rely on is noticed.
func TestRead(t *testing.T) {
	p := &page{}
	problems := p.read("words\n\n    indented\n\n<!-- not run: why -->\n<!-- file: a -->\n```sh\ntrue\n```\n\n```yaml\nx: 1\n")
	if len(problems) != 2 || len(p.blocks) != 2 || p.blocks[0].text() != "true\n" {
		t.Errorf("%q %+v", problems, p.blocks)
	}
	if why, ok := p.blocks[0].mark("not run"); !ok || why != "why" {
		t.Errorf("marks %q", p.blocks[0].marks)
	}
	if len(p.blocks[1].marks) > 0 {
		t.Errorf("marks %q", p.blocks[1].marks)
	}
}
