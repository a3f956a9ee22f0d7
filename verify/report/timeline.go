package report

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify"
	"github.com/kgate-dev/kgate/verify/capture"
	"github.com/kgate-dev/kgate/verify/lab"
)

// flow is a conversation: the packets of one step, one link and two ends.
type flow struct {
	link      string
	proto     string
	src, dst  netip.AddrPort // of its first packet
	names     []string       // asked for
	out, back int            // packets from src, and to it
	bytes     int            // of both, on the wire
	faults    int            // packets that could not be decoded whole
}

// row is a step with what was captured from its start until the next one's.
type row struct {
	verify.Step
	flows []*flow
	own   int // packets that kernels send by themselves: ARP, neighbour discovery
	total int
}

// rows puts packets beside steps. Those before the first step count to it: the
// lab was coming up.
func rows(t *verify.Trace) []*row {
	var out, watched []*row
	for _, s := range t.Steps {
		if s.Kind == verify.StepSeen && strings.HasPrefix(s.Words[0], "without a filter: ") {
			continue // the step itself says so
		}
		r := &row{Step: s}
		out = append(out, r)
		if s.Watched {
			watched = append(watched, r)
		}
	}
	if len(watched) == 0 {
		return out
	}
	packets := slices.Clone(t.Packets)
	slices.SortStableFunc(packets, func(a, b capture.Packet) int { return a.Time.Compare(b.Time) })
	at := 0
	for i := range packets {
		for at+1 < len(watched) && !packets[i].Time.Before(watched[at+1].From) {
			at++
		}
		watched[at].add(&packets[i])
	}
	return out
}

func (r *row) add(p *capture.Packet) {
	r.total++
	if kernels(p) {
		r.own++
		return
	}
	proto := "?"
	for _, name := range p.Protos { // from the outside in
		if name != "ip4" && name != "ip6" && name != "dns" {
			proto = name
		}
	}
	src, dst := netip.AddrPortFrom(p.Src, p.SrcPort), netip.AddrPortFrom(p.Dst, p.DstPort)
	i := slices.IndexFunc(r.flows, func(f *flow) bool {
		return f.link == p.Link && f.proto == proto && (f.src == src && f.dst == dst || f.src == dst && f.dst == src)
	})
	if i < 0 {
		i = len(r.flows)
		r.flows = append(r.flows, &flow{link: p.Link, proto: proto, src: src, dst: dst})
	}
	f := r.flows[i]
	if f.src == src {
		f.out++
	} else {
		f.back++
	}
	f.bytes += p.Len
	for _, name := range p.Names {
		if !slices.Contains(f.names, name) {
			f.names = append(f.names, name)
		}
	}
	if p.Err != "" {
		f.faults++
	}
}

// kernels tells whether a packet is one that a kernel sends because it has an
// interface: ARP, or ICMPv6 to or from the link itself (RFC 4861, RFC 3810).
func kernels(p *capture.Packet) bool {
	return p.Is("arp") || p.Is("icmp6") && (p.Dst.IsMulticast() || p.Dst.IsLinkLocalUnicast() || p.Src.IsLinkLocalUnicast())
}

func end(a netip.AddrPort) string {
	s := a.Addr().String()
	if a.Port() != 0 {
		s = a.String()
	}
	if name := lab.Who(a.Addr()); name != "" {
		s += " (" + name + ")"
	}
	return s
}

func (f *flow) ends() string {
	s := strings.ToUpper(f.proto)
	if f.src.Addr().IsValid() {
		s += " " + end(f.src) + " → " + end(f.dst)
	}
	if len(f.names) > 0 {
		quoted := make([]string, len(f.names))
		for i, n := range f.names {
			quoted[i] = strconv.Quote(n)
		}
		s += ", asks for " + strings.Join(quoted, ", ")
	}
	return s
}

func (f *flow) amount() string {
	s := fmt.Sprintf("%d out, %d back, %s", f.out, f.back, count(f.bytes, "byte", "bytes"))
	if f.faults > 0 {
		s += ", " + count(f.faults, "cannot be decoded", "cannot be decoded")
	}
	return s
}

// where says in words where a capture was.
func where(link string) string {
	if link == "box" {
		return "left the box"
	}
	return "left the machine"
}

func (p *page) timeline(t *verify.Trace) {
	all := rows(t)
	runs := 0
	for _, r := range all {
		if r.Kind != verify.StepSeen {
			runs++
		}
	}
	if runs == 0 {
		return
	}
	about := count(runs, "thing tried", "things tried")
	if t.Labs > 0 {
		about += ", " + count(len(t.Packets)+t.More, "packet captured", "packets captured")
	}
	p.element("<h4>Timeline: ", about, "</h4>\n")
	if t.Labs > 0 {
		p.raw(`<div class="heads" aria-hidden="true"><span>what was tried</span><span>what left</span></div>`, "\n")
	}
	p.raw("<ol class=\"timeline\">\n")
	begin := all[0].From
	for i, r := range all {
		if i == maxSteps {
			p.element("<li class=\"seen soft\">", count(len(all)-i, "more step", "more steps"), "</li>\n")
			break
		}
		p.step(r, r.From.Sub(begin))
	}
	p.raw("</ol>\n")
}

// how says what a step is, and how it is shown.
func (r *row) how() look {
	switch {
	case r.Kind == verify.StepControl:
		return look{"free", "without a filter"}
	case r.Kind == verify.StepSeen:
		return look{"seen", "seen"}
	case len(r.Words) > 1 && r.Words[0] == "kgate" && (r.Words[1] == "run" || r.Words[1] == "shell"):
		return look{"box", "kgate"}
	}
	return look{"plain", "outside"}
}

func (p *page) step(r *row, after time.Duration) {
	l := r.how()
	p.raw(`<li class="`, l.class, `">`)
	if r.Kind == verify.StepSeen {
		p.element("<span>", clip(strings.Join(r.Words, " "), maxLine), "</span></li>\n")
		return
	}
	p.raw(`<div class="tried"><span class="at">`)
	p.textf("%.2f s", after.Seconds())
	p.element(`</span> <span class="kind">`, l.word, "</span>")
	p.element(" <code>", clip(line(r.Words), maxLine), "</code>")
	if r.Kind == verify.StepStart {
		p.raw(`<span class="ended">left running</span></div>`)
	} else {
		p.raw(`<span class="ended">`)
		p.textf("exit status %d after %d ms", r.Status, r.To.Sub(r.From).Milliseconds())
		p.raw("</span></div>")
	}
	if r.Watched {
		p.left(r)
	}
	p.raw("</li>\n")
}

func (p *page) left(r *row) {
	p.raw(`<div class="left">`)
	if len(r.flows) == 0 {
		p.raw(`<span class="nothing">no packet left</span>`)
	} else {
		p.raw(`<ul class="flows">`)
		for i, f := range r.flows {
			if i == maxFlows {
				p.element("<li class=\"soft\">", count(len(r.flows)-i, "more conversation", "more conversations"), "</li>")
				break
			}
			p.element(`<li><span class="link">`, where(f.link), "</span> ")
			p.text(f.ends())
			p.element(` <span class="many">`, f.amount(), "</span></li>")
		}
		p.raw("</ul>")
	}
	if r.own > 0 {
		p.element(` <span class="ended">`, count(r.own, "packet", "packets")+" of the kernels' own (ARP, neighbour discovery)", "</span>")
	}
	p.raw("</div>")
}

// line shows a command with its words apart.
func line(words []string) string {
	shown := make([]string, len(words))
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\$`;&|<>(){}*?[]#~") {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		shown[i] = w
	}
	return strings.Join(shown, " ")
}
