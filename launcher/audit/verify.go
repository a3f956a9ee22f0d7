package audit

import (
	"fmt"
	"io"
	"slices"
)

// Finding is something that Verify has to say about one place in the log.
type Finding struct {
	File string `json:"file"`
	Line int    `json:"line"` // 1-based; 0 for the file as a whole
	What string `json:"what"` // one of the kinds below
	Text string `json:"text"`
}

// The kinds of finding.
const (
	Edited    = "edited"    // the line is not as it was written
	Removed   = "removed"   // lines are missing before this one
	Reordered = "reordered" // the line stands in the wrong place, or twice
	Truncated = "truncated" // lines, or the end of a line, are missing at the log's end
	Anchored  = "anchor"    // audit.head is missing or damaged
	Cut       = "cut"       // a writer was killed while it wrote: its process did not start
)

// String is FILE:LINE: WHAT: TEXT.
func (f Finding) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", f.File, f.What, f.Text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.What, f.Text)
}

// Report is what Verify found.
type Report struct {
	Files    []string  `json:"files"`    // read, oldest first
	Lines    int       `json:"lines"`    // that are in their place in the chain
	First    uint64    `json:"first"`    // sequence of the first of them; 0 when there are none
	Last     uint64    `json:"last"`     // and of the last
	Findings []Finding `json:"findings"` // the log is not as it was written
	Notes    []Finding `json:"notes"`    // what a crash leaves, and what cannot be told
}

// Clean says whether the log is as it was written.
func (r Report) Clean() bool { return len(r.Findings) == 0 }

// Verify reads the whole log, over all its files, and says which line was
// edited, removed, reordered, truncated or cut while it was written. partial
// accepts a log that begins later than line 1 because older files have been
// archived elsewhere. The error is about reading, never about what was read.
func Verify(file string, partial bool) (Report, error) {
	s, err := look(file)
	if err != nil {
		return Report{}, fmt.Errorf("verify the audit log: %w", err)
	}
	defer s.close()
	v := &verifier{head: s.head, headKnown: s.headErr == nil, partial: partial, hash: noHash}
	for _, p := range s.parts {
		v.report.Files = append(v.report.Files, p.f.Name())
	}
	// Each line is judged when the next is known: that one may say that it closed
	// this one.
	var held *Line
	for _, p := range s.parts {
		r := newReader(io.NewSectionReader(p.f, 0, p.size), p.f.Name())
		for {
			line, err := r.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return v.report, fmt.Errorf("verify the audit log: %w", err)
			}
			if held != nil {
				v.line(held, &line)
			}
			held = &line
		}
	}
	if held != nil {
		v.line(held, nil)
	}
	v.end(file, s.headErr)
	return v.report, nil
}

type verifier struct {
	head      link
	headKnown bool
	partial   bool

	last uint64 // the furthest line that is in its place
	hash string // of it
	bad  uint64 // lines since it that stand for one each and cannot be read

	any    bool
	gaps   []gap
	late   []uint64 // lines that were passed over and came later
	report Report
}

// gap is a run of lines that were not where they belong.
type gap struct {
	from, to uint64
	file     string
	line     int
	first    bool // nothing stands before it
}

func (v *verifier) find(l *Line, what, format string, args ...any) {
	v.report.Findings = append(v.report.Findings, Finding{l.File, l.Number, what, fmt.Sprintf(format, args...)})
}

func (v *verifier) line(l, next *Line) {
	k, err := parseLink(l.Raw)
	if next != nil {
		if n, nerr := parseLink(next.Raw); nerr == nil && n.torn != "" && n.torn == digest(l.Raw) {
			v.closed(l, k, err, n.seq)
			return
		}
	} else if !l.Whole {
		v.unfinished(l)
		return
	}
	switch {
	case err == errEdited:
		v.bad++
		v.find(l, Edited, "the line of sequence %d: %v", k.seq, err)
	case err != nil:
		v.bad++
		v.find(l, Edited, "the line after sequence %d: %v", v.last+v.bad-1, err)
	case !l.Whole:
		v.link(l, k)
		v.find(l, Truncated, "the line of sequence %d has lost its line end", k.seq)
	default:
		v.link(l, k)
	}
}

// closed judges a line that the next one, of sequence next, found unfinished.
func (v *verifier) closed(l *Line, k link, err error, next uint64) {
	switch {
	case next == v.last+v.bad+1:
		v.report.Notes = append(v.report.Notes, Finding{l.File, l.Number, Cut,
			fmt.Sprintf("the writer of sequence %d ended before its line was whole, so its process did not start; the next line goes on", next)})
	case err == nil:
		v.link(l, k)
		v.find(l, Truncated, "the line of sequence %d had been written and lost its line end", k.seq)
	default:
		v.bad++
		v.find(l, Truncated, "the line of sequence %d had been written whole and was cut short afterwards", v.last+v.bad)
	}
}

// unfinished judges a last line without a line end.
func (v *verifier) unfinished(l *Line) {
	if want := v.last + v.bad + 1; v.headKnown && v.head.seq >= want {
		v.bad++
		v.find(l, Truncated, "the line of sequence %d had been written whole and was cut short afterwards", want)
		return
	}
	v.report.Notes = append(v.report.Notes, Finding{l.File, l.Number, Cut,
		fmt.Sprintf("the writer of sequence %d ended before its line was whole, so its process did not start; the next launch goes on", v.last+v.bad+1)})
}

// link puts a line that is whole in itself into the chain.
func (v *verifier) link(l *Line, k link) {
	switch {
	case k.seq <= v.last:
		v.late = append(v.late, k.seq)
		v.find(l, Reordered, "the line of sequence %d stands after that of %d", k.seq, v.last)
		return
	case k.seq > v.last+v.bad+1:
		v.gaps = append(v.gaps, gap{v.last + v.bad + 1, k.seq - 1, l.File, l.Number, !v.any})
	case k.seq == v.last+1 && k.prev != v.hash:
		v.find(l, Edited, "the line of sequence %d does not follow from the one before it: one of them was replaced", k.seq)
	}
	if k.anchorLost {
		v.find(l, Anchored, "audit.head was missing or damaged when sequence %d was written: whether lines had been cut off before it cannot be told", k.seq)
	}
	if v.headKnown && k.seq == v.head.seq && k.hash != v.head.hash {
		v.find(l, Edited, "the line of sequence %d is not the one that was written there (audit.head holds another hash)", k.seq)
	}
	if v.report.First == 0 {
		v.report.First = k.seq
	}
	v.any = true
	v.last, v.hash, v.bad = k.seq, k.hash, 0
	v.report.Lines++
	v.report.Last = k.seq
}

func (v *verifier) end(file string, headErr error) {
	last := v.last + v.bad
	head := headFile(file)
	switch {
	case !v.headKnown && last > 0:
		v.report.Findings = append(v.report.Findings, Finding{head, 0, Anchored,
			fmt.Sprintf("%v: whether lines have been cut off the log's end cannot be told", headErr)})
	case v.headKnown && v.head.seq > last:
		f := Finding{file, 0, Truncated, fmt.Sprintf("%s missing at the end: audit.head knows of %d", span(last+1, v.head.seq), v.head.seq)}
		v.report.Findings = append(v.report.Findings, f)
	case v.headKnown && v.head.seq < v.last:
		v.report.Notes = append(v.report.Notes, Finding{head, 0, Anchored,
			fmt.Sprintf("it is behind, at sequence %d (a writer or the machine stopped just then): a cut after that would not be seen", v.head.seq)})
	}
	v.missing()
}

// missing reports the gaps, less what came later in the wrong place.
func (v *verifier) missing() {
	slices.Sort(v.late)
	v.late = slices.Compact(v.late)
	for _, g := range v.gaps {
		for _, r := range g.without(v.late) {
			f := Finding{g.file, g.line, Removed, fmt.Sprintf("%s missing before this line", span(r.from, r.to))}
			if g.first && r.from == 1 && v.partial {
				f.Text = fmt.Sprintf("the log begins here; %s elsewhere", span(r.from, r.to))
				v.report.Notes = append(v.report.Notes, f)
				continue
			}
			v.report.Findings = append(v.report.Findings, f)
		}
	}
	order := make(map[string]int)
	for i, name := range v.report.Files {
		order[name] = i + 1
	}
	slices.SortStableFunc(v.report.Findings, func(a, b Finding) int {
		at := func(f Finding) int {
			if f.Line == 0 {
				return len(order) + 1
			}
			return order[f.File]
		}
		if d := at(a) - at(b); d != 0 {
			return d
		}
		return a.Line - b.Line
	})
}

func (g gap) without(late []uint64) []gap {
	var out []gap
	for _, seq := range late {
		if seq < g.from || seq > g.to {
			continue
		}
		if seq > g.from {
			out = append(out, gap{from: g.from, to: seq - 1})
		}
		g.from = seq + 1
	}
	if g.from <= g.to {
		out = append(out, g)
	}
	return out
}

func span(from, to uint64) string {
	if from == to {
		return fmt.Sprintf("the line of sequence %d is", from)
	}
	return fmt.Sprintf("the lines of sequence %d to %d are", from, to)
}
