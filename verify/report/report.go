// Package report writes what kgate verify found as one page of HTML: for a
// person who was not there, on a telephone, on paper, or through a screen reader.
// The page asks nothing of anybody: its style and its script are in it, and its
// own policy (Content-Security-Policy, W3C CSP Level 3) forbids all else.
package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"io"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify"
)

var (
	//go:embed page.css
	style string
	//go:embed page.js
	script string
)

// Context is what a page says beside the report.
type Context struct {
	When    time.Time // when the run began
	Part    bool      // only some scenarios were asked for
	Machine []Fact
}

// Fact is one line about the machine.
type Fact struct{ Name, Value string }

// look is how a result is shown.
type look struct {
	class markup
	word  string
}

func resultLook(r verify.Result) look {
	switch r {
	case verify.Pass:
		return look{"pass", "proven"}
	case verify.Fail:
		return look{"fail", "failed"}
	}
	return look{"skip", "not proven"}
}

// verdictLook is how a verdict is shown, and what it means.
func verdictLook(v verify.Verdict) (l look, meaning string) {
	switch v {
	case verify.Proven:
		return look{"pass", "Proven"}, "Everything that kgate doctor calls READY here was shown by scenarios on this machine."
	case verify.Failed:
		return look{"fail", "Failed"}, "At least one scenario saw something that kgate says cannot happen. It comes first below."
	}
	return look{"skip", "Not proven"}, "Nothing failed, but something that kgate doctor calls READY, or that was asked for, was not shown."
}

// hash is a source of a Content-Security-Policy that allows one text alone.
func hash(text string) markup {
	sum := sha256.Sum256([]byte(text))
	return markup("'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
}

// Write writes the page.
func Write(w io.Writer, r *verify.Report, c Context) error {
	p := newPage(w)
	l, meaning := verdictLook(r.Verdict)
	p.raw(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src `, hash(style), `; script-src `, hash(script),
		`; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>kgate verify: `)
	p.text(strings.ToLower(l.word))
	p.raw("</title>\n<style>", markup(style), "</style>\n</head>\n<body class=\"", l.class, "\">\n", `<a class="skip-link" href="#main">To the findings</a>`, "\n")
	p.head(r, c, l, meaning)
	p.raw("<main id=\"main\" tabindex=\"-1\">\n")
	p.open(r, c)
	p.claims(r)
	p.scenarios(r)
	p.facts(c)
	p.legend(r)
	p.raw("</main>\n<footer><p>Written by kgate verify --report. The page is complete in itself and asks nothing of any network.</p></footer>\n")
	p.raw("<script>", markup(script), "</script>\n</body>\n</html>\n")
	return p.w.Flush()
}

func tally(r *verify.Report) map[verify.Result]int {
	n := map[verify.Result]int{}
	for _, o := range r.Scenarios {
		n[o.Result]++
	}
	return n
}

func (p *page) head(r *verify.Report, c Context, l look, about string) {
	n := tally(r)
	p.raw("<header class=\"verdict\">\n<p class=\"soft\">kgate verify</p>\n")
	p.element("<h1>", l.word, "</h1>\n")
	if c.Part && r.Verdict == verify.Proven {
		about = "Each scenario that was asked for passed on this machine. The others were not run."
	}
	p.element("<p>", about, "</p>\n<ul class=\"counts\">\n")
	for _, result := range []verify.Result{verify.Pass, verify.Fail, verify.Skip} {
		l := resultLook(result)
		class := l.class
		if n[result] == 0 {
			class = "none"
		}
		p.raw(`<li class="`, class, `"><b>`)
		p.textf("%d", n[result])
		p.element("</b> ", l.word, "</li>\n")
	}
	p.raw("</ul>\n<p class=\"soft\"><time datetime=\"")
	p.text(c.When.UTC().Format(time.RFC3339))
	p.raw(`">`)
	p.text(c.When.Format("2 January 2006, 15:04:05 -0700"))
	p.raw("</time>, ")
	p.textf("%s in %.1f seconds", count(len(r.Scenarios), "scenario", "scenarios"), r.Seconds)
	p.raw("</p>\n</header>\n")
}

// open lists what was not proven, and why: failures first.
func (p *page) open(r *verify.Report, c Context) {
	p.raw("<section aria-labelledby=\"open-head\">\n<h2 id=\"open-head\">Not proven, and why</h2>\n")
	defer p.raw("</section>\n")
	var items int
	item := func(l look, name, why string, scenario bool) {
		if items++; items == 1 {
			p.raw("<ul class=\"list\">\n")
		}
		p.raw(`<li class="`, l.class, `"><span class="badge">`)
		p.text(l.word)
		p.raw("</span> ")
		if scenario {
			p.link(name)
		} else {
			p.element("<b>", name, "</b>")
		}
		p.element("<p>", clip(why, 2000), "</p></li>\n")
	}
	for _, result := range []verify.Result{verify.Fail, verify.Skip} {
		for _, o := range r.Scenarios {
			if o.Result == result {
				item(resultLook(result), o.Name, o.Reason, true)
			}
		}
	}
	for _, row := range r.Rows {
		switch {
		case row.Status != "READY":
			item(statusLook(row), row.Row, row.Reason, false)
		case !row.Proven && len(row.By) == 0:
			item(look{"skip", "not proven"}, row.Row, "doctor says READY; no scenario of this run is about it", false)
		case !row.Proven:
			item(look{"skip", "not proven"}, row.Row, "doctor says READY; the scenarios about it did not all pass: "+strings.Join(row.By, ", "), false)
		}
	}
	switch {
	case items > 0:
		p.raw("</ul>\n")
	case c.Part:
		p.raw("<p>Nothing among the scenarios that were asked for.</p>\n")
	default:
		p.raw("<p>Nothing: each scenario passed, and doctor calls everything READY.</p>\n")
	}
	p.raw("<p class=\"soft\">A page like this speaks of one machine, one kgate and one moment, and of what its scenarios try.</p>\n")
}

func statusLook(row verify.Row) look {
	switch {
	case row.Status == "READY" && row.Proven:
		return look{"pass", row.Status}
	case row.Status == "BLOCKED":
		return look{"fail", row.Status}
	}
	return look{"skip", row.Status}
}

// link leads to a scenario of the page.
func (p *page) link(name string) {
	p.raw(`<a href="#s-`)
	p.text(name)
	p.element(`">`, name, "</a>")
}

func (p *page) claims(r *verify.Report) {
	p.raw("<section aria-labelledby=\"claims-head\">\n<h2 id=\"claims-head\">What doctor says of this machine</h2>\n")
	if len(r.Rows) == 0 {
		p.raw("<p>No row of doctor is about the scenarios of this run.</p>\n</section>\n")
		return
	}
	p.raw("<ul class=\"list claims\">\n")
	for _, row := range r.Rows {
		l := statusLook(row)
		p.raw(`<li class="`, l.class, `"><span><span class="badge">`)
		p.text(l.word)
		p.element("</span></span> <b>", row.Row, "</b> ")
		p.element("<span>", clip(row.Reason, 2000), "</span>")
		p.raw(` <span class="by soft">`)
		switch {
		case row.Proven:
			p.raw("proven by ")
		case len(row.By) > 0:
			p.raw("not proven by ")
		default:
			p.raw("no scenario of this run is about it")
		}
		for i, name := range row.By {
			if i > 0 {
				p.raw(", ")
			}
			p.link(name)
		}
		p.raw("</span></li>\n")
	}
	p.raw("</ul>\n</section>\n")
}

func (p *page) facts(c Context) {
	p.raw("<section aria-labelledby=\"facts-head\">\n<h2 id=\"facts-head\">Machine and versions</h2>\n<dl class=\"facts\">\n")
	for _, f := range c.Machine {
		p.element("<dt>", f.Name, "</dt>")
		p.element("<dd>", f.Value, "</dd>\n")
	}
	p.raw("</dl>\n</section>\n")
}
