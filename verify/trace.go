package verify

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kgate-dev/kgate/verify/capture"
)

// Step is one thing that a scenario did or saw.
type Step struct {
	From, To time.Time
	Kind     StepKind
	Words    []string // the command that was run, or one line of what was seen
	Status   int      // the command's exit status: 128+n when signal n ended it
	Watched  bool     // captures were running on the machine that it ran on
}

// StepKind says what a step is.
type StepKind string

// The kinds of steps.
const (
	StepRun     StepKind = "run"     // a command ran and ended, outside any box unless it is kgate run
	StepControl StepKind = "control" // a command ran in a box without a filter
	StepStart   StepKind = "start"   // a command was left running
	StepSeen    StepKind = "seen"    // a line of evidence
)

// Trace is what a scenario did, and what left while it did.
type Trace struct {
	Steps   []Step
	Packets []capture.Packet // in the order in which they were captured, link by link
	More    int              // packets that were captured beyond those
	Labs    int              // how many labs there were: without one nothing was captured
}

// maxTraced bounds the packets of one link that a trace keeps. A scenario that
// moves megabytes says no more by its ten thousandth packet.
const maxTraced = 4000

// traced adds a step that ends now to the trace, if there is one.
func (s *script) traced(step Step) {
	if s.opts.Trace == nil {
		return
	}
	step.To = time.Now()
	if step.From.IsZero() {
		step.From = step.To
	}
	for i, w := range step.Words {
		step.Words[i] = strings.ReplaceAll(w, s.work, "$WORK")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.Trace.Steps = append(s.opts.Trace.Steps, step)
}

// captured keeps what a lab's captures saw: as files, where those are wanted,
// and in the trace.
func (s *script) captured(link string) {
	if s.opts.Pcap == "" && s.opts.Trace == nil {
		return
	}
	dir := s.opts.Pcap
	if dir == "" {
		dir = s.work
	}
	file := filepath.Join(dir, s.captureName(link))
	n, err := s.lab.Pcap(link, file)
	if err != nil {
		s.evidence("no pcap of %s: %v", link, err)
		return
	}
	if s.opts.Pcap != "" {
		s.evidence("%s: %d packets", file, n)
	}
	if s.opts.Trace != nil {
		if err := s.opts.Trace.read(link, file); err != nil {
			s.evidence("%v", err)
		}
	}
}

func (t *Trace) read(link, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	packets, more, err := capture.ReadPcap(f, maxTraced)
	for i := range packets {
		packets[i].Link = link
		packets[i].Data = nil // decoded: the rest is the file's
	}
	t.Packets, t.More = append(t.Packets, packets...), t.More+more
	return err
}
