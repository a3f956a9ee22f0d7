// Report makes pages with kgate verify --report and uses them in a headless
// Chromium as people do: with a mouse, with a keyboard, on a telephone, in the
// dark, on paper, and through the tree that screen readers read.
//
//	go run ./ci/report [-o DIR]
//
// installs Chromium and pdftotext where they are missing (hundreds of megabytes,
// which is why this is no part of ci/test), writes pages, pictures and a PDF to
// DIR (dist/report), prints a line for each thing that it tried, and fails if one
// did not hold.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify"
	"github.com/kgate-dev/kgate/verify/report"
)

// shown are the scenarios on the real page: some with packets, some without.
const shown = "home-refused,exec-denied,network-off-silent,host-allowed,other-host-refused,dns-gated"

func main() {
	out := flag.String("o", "dist/report", "where the pages and pictures go")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "ci/report:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	if err := install(); err != nil {
		return err
	}
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "kgate-report-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	real, made := filepath.Join(out, "real.html"), filepath.Join(out, "made-up.html")
	if err := verifyPage(work, real); err != nil {
		return err
	}
	if err := report.Save(made, func(w io.Writer) error { return report.Write(w, madeUp(), madeUpContext) }); err != nil {
		return err
	}
	b, err := open(work)
	if err != nil {
		return err
	}
	defer b.close()
	t := &trial{browser: b, out: out}
	t.watchman(work)
	for _, page := range []struct {
		name, file string
		scenarios  int
	}{{"real", real, strings.Count(shown, ",") + 1}, {"made-up", made, 3}} {
		t.page, t.name, t.scenarios = "file://"+page.file, page.name, page.scenarios
		t.everything()
	}
	fmt.Printf("%d held, %d did not; pages and pictures are in %s\n", t.held, t.failed, out)
	if t.failed > 0 {
		return fmt.Errorf("%d of %d things did not hold", t.failed, t.held+t.failed)
	}
	return nil
}

func install() error {
	need := []string{"pdftotext=poppler-utils"}
	found := false
	for _, name := range browsers {
		_, err := exec.LookPath(name)
		found = found || err == nil
	}
	if !found {
		need = append(need, "chromium")
	}
	cmd := exec.Command("ci/packages", need...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ci/packages %s: %w (run this at the top of the source tree)", strings.Join(need, " "), err)
	}
	return nil
}

// verifyPage has a kgate of this tree write a page, in a home of its own.
func verifyPage(work, file string) error {
	kgate, home := filepath.Join(work, "kgate"), filepath.Join(work, "home")
	if err := os.MkdirAll(filepath.Join(home, "project"), 0o755); err != nil {
		return err
	}
	build := exec.Command("go", "build", "-trimpath", "-o", kgate, "./cmd/kgate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build kgate: %w", err)
	}
	cmd := exec.Command(kgate, "verify", "--only", shown, "--must", "hostfilter,lab", "--report", file)
	cmd.Dir = filepath.Join(home, "project")
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("kgate verify: %w", err)
	}
	return nil
}

// hostile is what nobody wants on a page.
const hostile = "<script>window.hit=1</script><img src=http://127.0.0.1:9/x onerror=window.hit=1>\x1b[31m\x00\u202egnp.exe</pre></details>"

// madeUp is a report with everything that a good machine's has not.
func madeUp() *verify.Report {
	long := strings.Repeat("verylongwordwithoutabreak", 40)
	return &verify.Report{
		Verdict: verify.Failed, Seconds: 61,
		Scenarios: []verify.Outcome{
			{Name: "breaks", Title: "A thing that does not hold, of which " + hostile + " is said.", Proves: []string{"box"}, Result: verify.Fail,
				Reason: "breaks.txtar:7: exit status 0, want 126 " + hostile, Log: "> status 126 kgate run -- curl\n" + hostile + "\n" + long, Seconds: 3.2},
			{Name: "skipped", Title: "What this machine cannot show.", Result: verify.Skip, Reason: "bubblewrap, slirp4netns and iptables do not work together here (/dev/net/tun: permission denied)", Seconds: 0.1},
			{Name: "holds", Title: "A thing that holds.", Proves: []string{"box"}, Result: verify.Pass, Evidence: []string{hostile, long}, Seconds: 12},
		},
		Rows: []verify.Row{
			{Row: "box", Status: "READY", Reason: "tried", By: []string{"breaks", "holds"}},
			{Row: "network", Status: "DEGRADED", Reason: "network open: the network box is gone"},
			{Row: "/dev/net/tun", Status: "BLOCKED", Reason: "permission denied; " + long},
		},
	}
}

var madeUpContext = report.Context{When: time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC), Machine: []report.Fact{{Name: "system", Value: "made up"}}}
