package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/kgate-dev/kgate/ci/manual"
)

// TestManual makes the manual pages of the packages: one for each command, with
// the same words as its help, and no request that roff does not know.
func TestManual(t *testing.T) {
	root := newRootCommand()
	pages := manual.Pages(root, manual.About{Version: "1.2.3", Date: "2026-12-01", Files: []string{"~/.kgate: it's kgate's own"}, More: []string{"bwrap(1)"}})
	if len(pages) < 13 {
		t.Errorf("%d pages", len(pages))
	}
	requests := regexp.MustCompile(`^\.(TH|SH|PP|TP|B|BR|I|br|nh|ad|RS|RE|nf|fi)( |$)`)
	for name, text := range pages {
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", `EXIT STATUS`, "EXAMPLES", "SEE ALSO"} {
			if !strings.Contains(text, "\n.SH \""+section+"\"\n") {
				t.Errorf("%s has no section %s", name, section)
			}
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !requests.MatchString(line) {
				t.Errorf("%s: %q is a request", name, line)
			}
			if strings.Contains(strings.NewReplacer(`\-`, "", `\e`, "", `\(aq`, "", `\(ga`, "", `\(ti`, "", `\(ha`, "", `\(dq`, "", `\fB`, "", `\fI`, "", `\fR`, "", `\&`, "").Replace(line), `\`) {
				t.Errorf("%s: an escape in %q", name, line)
			}
		}
		if groff, err := exec.LookPath("groff"); err == nil {
			cmd := exec.Command(groff, "-man", "-ww", "-z", "-Tutf8")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "<standard input>") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	if page := pages["kgate-run.1"]; !strings.Contains(page, `\fB\-\-allow\-net\fR \fIHOST[:PORT]\fR`) || !strings.Contains(page, "\nkgate run \\-\\- git status\n") {
		t.Errorf("kgate-run.1:\n%s", page)
	}
	again := manual.Pages(newRootCommand(), manual.About{Version: "1.2.3", Date: "2026-12-01", Files: []string{"~/.kgate: it's kgate's own"}, More: []string{"bwrap(1)"}})
	for name := range pages {
		if pages[name] != again[name] {
			t.Errorf("%s differs the second time", name)
		}
	}
}
