// Picture writes the parts of the pages that are taken from life:
//
//	go run ./ci/picture
//
// runs a session in a terminal with the kgate of this source tree, in a home of
// its own, and draws it as docs/session.svg; and runs one scenario and puts what
// its capture saw into docs/filter.md. Both are the same on every run, but for
// what the machine itself says of itself (versions, times, port numbers).
//
//	go run ./ci/picture -check
//
// writes nothing, and fails if the pages are not what it would write, numbers
// aside.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kgate-dev/kgate/verify"
)

func main() {
	// The lab's machine is this program, started anew.
	if status, ok := verify.Stage(os.Args); ok {
		os.Exit(status)
	}
	check := flag.Bool("check", false, "write nothing, and fail if something would change")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "ci/picture:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	work, err := os.MkdirTemp("", "kgate-picture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	kgate := filepath.Join(work, "bin", "kgate")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s", "-o", kgate, "./cmd/kgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build kgate: %w (run this at the top of the source tree)", err)
	}
	lines, err := session(work)
	if err != nil {
		return err
	}
	table, err := packets(kgate, work)
	if err != nil {
		return err
	}
	filter, err := os.ReadFile("docs/filter.md")
	if err != nil {
		return err
	}
	if filter, err = between(filter, "<!-- capture -->\n", "<!-- end of capture -->", table); err != nil {
		return fmt.Errorf("docs/filter.md: %w", err)
	}
	var failed error
	for file, text := range map[string][]byte{"docs/session.svg": draw(lines), "docs/filter.md": filter} {
		old, _ := os.ReadFile(file)
		switch {
		case check && still(old) != still(text):
			failed = errors.Join(failed, fmt.Errorf("%s is not what go run ./ci/picture writes:\n%s", file, difference(still(old), still(text))))
		case !check && still(old) != still(text):
			if err := os.WriteFile(file, text, 0o644); err != nil {
				return err
			}
			fmt.Println("wrote", file)
		default:
			fmt.Println("unchanged", file)
		}
	}
	return failed
}

// between puts text between two marks.
func between(page []byte, from, to, text string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(from))
	_, after, ok2 := bytes.Cut(rest, []byte(to))
	if !ok || !ok2 {
		return nil, fmt.Errorf("no place between %q and %q", from, to)
	}
	return bytes.Join([][]byte{before, []byte(from), []byte(text), []byte(to), after}, nil), nil
}

// still leaves out of a text what differs from run to run and from machine to
// machine.
func still(text []byte) string {
	for _, r := range [][2]string{
		{`/usr/bin/bwrap, version [0-9.]+`, "bwrap"},
		{`[0-9]+ (files|paths|masked|rules)`, "N $1"},
		{`\([0-9]+ masked\)`, "(N masked)"},
		{`\b(10\.0\.2\.100|203\.0\.113\.2):[0-9]+`, "$1:PORT"},
		{`(?m)^ *[0-9]+ ms`, "TIME"},
		{`(?m)^.* (ACK|(FIN|PSH|FIN\+PSH)\+ACK|RST(\+ACK)?)\n`, ""}, // how a connection ends is told in many ways
	} {
		text = regexp.MustCompile(r[0]).ReplaceAll(text, []byte(r[1]))
	}
	return string(text)
}

// difference is the first line that differs.
func difference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		var l, r string
		if i < len(x) {
			l = x[i]
		}
		if i < len(y) {
			r = y[i]
		}
		if l != r {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, l, r)
		}
	}
	return ""
}
