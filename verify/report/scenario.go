package report

import (
	"strings"

	"github.com/kgate-dev/kgate/verify"
)

// Bounds of what one scenario may put on the page.
const (
	maxSteps = 150   // of a timeline
	maxLines = 200   // of evidence
	maxLine  = 2000  // bytes of one
	maxLog   = 20000 // bytes
	maxFlows = 25    // of one step
)

func (p *page) scenarios(r *verify.Report) {
	n := tally(r)
	p.raw("<section aria-labelledby=\"all-head\">\n<h2 id=\"all-head\">Scenarios</h2>\n",
		`<div class="tools only-script" role="group" aria-label="Which scenarios to show">`, "\n",
		`<button type="button" data-show="all" aria-pressed="true">all `)
	p.textf("%d", len(r.Scenarios))
	p.raw("</button>\n")
	for _, result := range []verify.Result{verify.Pass, verify.Fail, verify.Skip} {
		l := resultLook(result)
		p.raw(`<button type="button" data-show="`, l.class, `" aria-pressed="false">`)
		p.textf("%s %d", l.word, n[result])
		p.raw("</button>\n")
	}
	p.raw(`<input type="search" id="find" aria-label="Show scenarios that hold these words" placeholder="words, an address, a name">`, "\n",
		`<button type="button" id="open">open all</button> <button type="button" id="close">close all</button>`, "\n",
		"</div>\n<p id=\"shown\" class=\"soft only-script\" role=\"status\"></p>\n")
	for _, result := range []verify.Result{verify.Fail, verify.Skip, verify.Pass} {
		for i := range r.Scenarios {
			if r.Scenarios[i].Result == result {
				p.scenario(&r.Scenarios[i])
			}
		}
	}
	p.raw("</section>\n")
}

func (p *page) scenario(o *verify.Outcome) {
	l := resultLook(o.Result)
	p.raw(`<details class="scenario `, l.class, `" data-result="`, l.class, `" id="s-`)
	p.text(o.Name)
	p.raw(`"`)
	if o.Result == verify.Fail {
		p.raw(" open")
	}
	p.element("><summary><span class=\"badge\">", l.word, "</span>")
	title := o.Title
	if title == "" {
		title = o.Name
	}
	p.element("<h3>", title, "</h3>")
	p.element(`<code class="name">`, o.Name, "</code>")
	p.raw(`<span class="took">`)
	p.textf("%.1f s", o.Seconds)
	p.raw("</span></summary>\n<div class=\"inside\">\n")
	if len(o.Proves) > 0 {
		p.element("<p class=\"soft\">About: ", strings.Join(o.Proves, ", "), "</p>\n")
	}
	if o.Reason != "" {
		p.element("<p><b>", clip(o.Reason, maxLine), "</b></p>\n")
	}
	p.evidence(o)
	if o.Trace != nil {
		p.timeline(o.Trace)
	}
	if o.Result != verify.Pass && o.Log != "" {
		p.raw(`<h4>What the script said</h4><pre tabindex="0" role="region" aria-label="What the script said">`)
		p.text(clip(o.Log, maxLog))
		p.raw("</pre>\n")
	}
	p.raw("</div></details>\n")
}

func (p *page) evidence(o *verify.Outcome) {
	if len(o.Evidence) == 0 {
		return
	}
	p.raw("<h4>What was seen</h4><ul class=\"evidence\">\n")
	for i, line := range o.Evidence {
		if i == maxLines {
			p.element("<li class=\"soft\">", count(len(o.Evidence)-i, "more line", "more lines"), "</li>\n")
			break
		}
		p.element("<li>", clip(line, maxLine), "</li>\n")
	}
	p.raw("</ul>\n")
}

func (p *page) legend(r *verify.Report) {
	p.raw("<section aria-labelledby=\"read-head\">\n<h2 id=\"read-head\">How to read a timeline</h2>\n<ul class=\"list\">\n",
		`<li><span class="free"><span class="kind">without a filter</span></span> The control: the same thing is tried in a box that has a network and no filter. It answers, so that a later silence means something.</li>`, "\n",
		`<li><span class="box"><span class="kind">kgate</span></span> The same kgate that wrote this page, started the way a person starts it.</li>`, "\n",
		"<li><b>left the box</b> was captured on the box's own interface, behind the filter: what the filter refuses is never there. <b>left the machine</b> was captured on the machine's link to the lab's internet. Packets stand beside the step during which they were seen, one line a conversation.</li>\n",
		"<li>Each launch with a host list looks the listed names up through the box's own name server before the command starts: those questions are kgate's.</li>\n",
		"<li>Where no lab was up there was nothing to capture, and the right-hand column is empty: those scenarios speak of files, processes and statuses.</li>\n",
		"<li>Addresses are those of a lab made of namespaces, named after its name server. No packet left this machine.</li>\n",
		"</ul>\n<p class=\"soft\">The packets themselves: <code>kgate verify --pcap DIR</code>")
	more := 0
	for _, o := range r.Scenarios {
		if o.Trace != nil {
			more += o.Trace.More
		}
	}
	if more > 0 {
		p.text("; " + count(more, "packet of this run is", "packets of this run are") + " only there, being beyond the first few thousand of a capture")
	}
	p.raw(".</p>\n</section>\n")
}
