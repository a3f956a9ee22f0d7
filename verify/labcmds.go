package verify

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kgate-dev/kgate/verify/lab"
	"github.com/kgate-dev/kgate/verify/probe"
)

func labCommands() map[string]command {
	return map[string]command{
		"lab":     cmdLab,
		"bare":    cmdBare,
		"probe":   cmdProbe,
		"sink":    cmdSink,
		"packets": cmdPackets,
		"dnsseen": cmdDNSSeen,
	}
}

const usageLab = "lab up [upstream=ADDR] | dns NAME ANSWER... | dns-stop | dns-go | unfilter | mark | down"

func cmdLab(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "lab")
	if len(args) == 0 {
		ts.Fatalf("usage: %s", usageLab)
	}
	s := of(ts)
	if args[0] == "up" {
		ts.Check(s.labUp(args[1:]))
		return
	}
	l := s.needLab(ts)
	switch {
	case args[0] == "dns" && len(args) > 2:
		ts.Check(l.DNS(args[1], args[2:]))
	case args[0] == "dns-stop" && len(args) == 1:
		ts.Check(l.Silence(true))
	case args[0] == "dns-go" && len(args) == 1:
		ts.Check(l.Silence(false))
	case args[0] == "unfilter" && len(args) == 1:
		ts.Check(l.Unfilter())
	case args[0] == "mark" && len(args) == 1:
		ts.Check(l.Mark())
	case args[0] == "down" && len(args) == 1:
		ts.Check(s.labDown())
	default:
		ts.Fatalf("usage: %s", usageLab)
	}
}

func (s *script) needLab(ts *testscript.TestScript) *lab.Lab {
	if s.lab == nil {
		ts.Fatalf("there is no lab: say lab up first")
	}
	return s.lab
}

// labUp makes the lab and puts the client into the project.
func (s *script) labUp(args []string) error {
	if s.lab != nil {
		return fmt.Errorf("the lab is up already")
	}
	var o lab.Options
	for _, w := range args {
		value, ok := strings.CutPrefix(w, "upstream=")
		if !ok {
			return fmt.Errorf("usage: %s", usageLab)
		}
		o.Upstream = value
	}
	if err := s.putProbe(); err != nil {
		return err
	}
	l, err := lab.Start(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.lab = l
	s.labs++
	if s.opts.Trace != nil {
		s.opts.Trace.Labs = s.labs
	}
	s.mu.Unlock()
	return nil
}

// captureName names the file of a link's capture after the script.
func (s *script) captureName(link string) string {
	if s.labs > 1 {
		return fmt.Sprintf("%s-%s-%d.pcap", s.name, link, s.labs)
	}
	return s.name + "-" + link + ".pcap"
}

// labDown keeps what the captures saw, if that is wanted, and ends the lab.
func (s *script) labDown() error {
	l := s.lab
	if l == nil {
		return nil
	}
	for _, link := range []string{"box", "outer"} {
		s.captured(link)
	}
	s.mu.Lock()
	s.lab = nil
	s.mu.Unlock()
	return l.Close()
}

func cmdProbe(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "probe")
	if len(args) != 0 {
		ts.Fatalf("usage: probe")
	}
	ts.Check(of(ts).putProbe())
}

// putProbe puts the client into the project, if it is not there. It is a copy,
// and not a link: the command in the box may write to it.
func (s *script) putProbe() error {
	err := copyProgram(s.opts.Kgate, filepath.Join(s.work, "proj", probe.Name))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// copyProgram copies a program to be executed under a name that is not taken.
// A process that is started meanwhile would have the copy open for writing until it
// executes its own program, and the kernel does not execute a file that anybody has
// open so (ETXTBSY of execve(2)): none is.
func copyProgram(from, to string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

const usageBare = "bare [-6] [-own] CMD [ARG...]"

func cmdBare(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "bare")
	s := of(ts)
	s.needLab(ts)
	argv := []string{"kgate", lab.StageBare}
	var six, own bool
	args = options(ts, usageBare, args, func(f *flag.FlagSet) {
		f.BoolVar(&six, "6", false, "")
		f.BoolVar(&own, "own", false, "")
	})
	if len(args) == 0 {
		ts.Fatalf("usage: %s", usageBare)
	}
	if six {
		argv = append(argv, "-6")
	}
	if own {
		argv = append(argv, "-own")
	}
	from := time.Now()
	got := s.run(ts, "", false, append(append(argv, "--"), args...))
	s.traced(Step{From: from, Kind: StepControl, Words: slices.Clone(args), Status: got, Watched: true})
	if got != 0 {
		ts.Fatalf("exit status %d, want 0", got)
	}
	s.evidence("without a filter: %s: answered", strings.Join(args, " "))
}

// negation takes the "!" that may stand before the words of a witness's
// question, where it reads better than before its name.
func negation(neg bool, args []string) (bool, []string) {
	if len(args) > 0 && args[0] == "!" {
		return !neg, args[1:]
	}
	return neg, args
}

func cmdSink(ts *testscript.TestScript, neg bool, args []string) {
	neg, args = negation(neg, args)
	s := of(ts)
	a, err := s.needLab(ts).Sinks(args, !neg)
	ts.Check(err)
	s.judge(ts, neg, "the servers", strings.Join(args, " "), a)
}

func cmdPackets(ts *testscript.TestScript, neg bool, args []string) {
	neg, args = negation(neg, args)
	if len(args) == 0 || strings.Contains(args[0], "=") {
		ts.Fatalf("usage: packets [!] box|outer|any KEY=VALUE...")
	}
	link, words := args[0], args[1:]
	if more, rest := negation(neg, words); len(rest) < len(words) {
		neg, words = more, rest
	}
	s := of(ts)
	a, err := s.needLab(ts).Packets(link, words, !neg)
	ts.Check(err)
	s.judge(ts, neg, "packets on "+link, strings.Join(words, " "), a)
}

// judge fails the script if there was something where there should be nothing,
// or the other way round.
func (s *script) judge(ts *testscript.TestScript, neg bool, what, about string, a lab.Answer) {
	if about != "" {
		about = ", " + about
	}
	switch {
	case neg && a.Count > 0:
		ts.Fatalf("%s%s: %d, want none:\n%s", what, about, a.Count, strings.Join(a.Lines, "\n"))
	case !neg && a.Count == 0:
		ts.Fatalf("%s%s: none of %d, want some", what, about, a.Total)
	}
	s.evidence("%s%s: %d of %d", what, about, a.Count, a.Total)
}

func cmdDNSSeen(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: dnsseen NAME")
	}
	s := of(ts)
	l := s.needLab(ts)
	name := `(^|\.)` + regexp.QuoteMeta(strings.ToLower(strings.TrimSuffix(args[0], "."))) // and what is below it
	a, err := l.Sinks([]string{"proto=dns", "text=" + name + " "}, !neg)
	ts.Check(err)
	s.judge(ts, neg, "queries at the name servers", args[0], a)
	if neg {
		a, err = l.Packets("any", []string{"name=" + name + "$"}, false)
		ts.Check(err)
		s.judge(ts, neg, "queries in packets", args[0], a)
	}
}
