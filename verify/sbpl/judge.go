package sbpl

import "fmt"

// Verdict is what a profile says of one question.
type Verdict int

// The verdicts. Unknown is the zero value, so that a forgotten one passes for
// nothing.
const (
	Unknown Verdict = iota
	Allow
	Deny
)

func (v Verdict) String() string {
	return [...]string{"unknown", "allow", "deny"}[v]
}

func verdict(allow bool) Verdict {
	if allow {
		return Allow
	}
	return Deny
}

// Type is the kind of file a path is.
type Type int

// The kinds that profiles can tell apart.
const (
	UnknownType Type = iota
	Regular
	Directory
	Symlink
	Socket
	Device
)

var types = map[string]Type{
	"REGULAR-FILE": Regular, "DIRECTORY": Directory, "SYMLINK": Symlink, "SOCKET": Socket, "CHARACTER-DEVICE": Device,
}

// Net is an internet address as an operation sees it.
type Net struct {
	Side  string // "remote" for what is connected to, "local" for what is bound
	Proto string // "tcp" or "udp"
	Port  uint16
	Own   bool // one of the machine's own addresses, which "localhost" matches
}

// Query is one question: may this operation be done to this object?
type Query struct {
	Op   string
	Path string // for files and unix sockets, as the kernel resolves it
	Type Type
	Net  *Net
	Name string // of a service, a sysctl, an IPC object or a kernel policy

	Target     string            // "self", "same-sandbox" or "others"
	Extensions []string          // what the process was given by the kernel
	Words      map[string]string // numbers and constants, by the filter's name

	// NoRegex takes every regular expression for one that may or may not match:
	// what is still denied then does not rest on how they are read.
	NoRegex bool
}

// Answer is a verdict with the rule that decided it; Rule is nil when none did.
type Answer struct {
	Verdict Verdict
	Rule    *Rule
	Why     string // for unknown: what is not known
}

func (a Answer) String() string {
	switch {
	case a.Rule != nil && a.Why != "":
		return fmt.Sprintf("%s (%s; %s)", a.Verdict, a.Rule, a.Why)
	case a.Rule != nil:
		return fmt.Sprintf("%s (%s)", a.Verdict, a.Rule)
	case a.Why != "":
		return fmt.Sprintf("%s (%s)", a.Verdict, a.Why)
	}
	return fmt.Sprintf("%s (no rule)", a.Verdict)
}

// Judge answers one question.
func (p *Profile) Judge(q Query) Answer {
	if !IsOperation(q.Op) {
		return Answer{Why: fmt.Sprintf("operation %q", q.Op)}
	}
	if p.imported {
		return Answer{Why: "the profile imports rules of the system"}
	}
	var fallback *Rule // the decision of the most specific rules without a filter
	var doubt *Rule
	for _, op := range lineage(q.Op) {
		rules := p.rules[op]
		for i := len(rules) - 1; i >= 0; i-- {
			r := rules[i]
			if r.filter == nil {
				continue
			}
			switch r.filter.match(&q) {
			case maybe:
				if doubt == nil {
					doubt = r
				} else if doubt.Allow != r.Allow {
					return Answer{Rule: r, Why: "may match, and so may " + doubt.String()}
				}
			case yes:
				return settle(r, doubt, fallback)
			}
		}
		if op != "default" && fallback != nil {
			continue
		}
		for i := len(rules) - 1; i >= 0; i-- {
			r := rules[i]
			if r.filter != nil {
				continue
			}
			if fallback == nil {
				fallback = r
			} else if fallback.Op == r.Op && fallback.Allow != r.Allow {
				return Answer{Rule: r, Why: "two rules without a filter disagree"}
			}
		}
	}
	if fallback == nil {
		return Answer{Why: "no default"}
	}
	if doubt != nil && doubt.Allow != fallback.Allow {
		return Answer{Rule: doubt, Why: "it is not known whether this rule matches"}
	}
	return Answer{Verdict: verdict(fallback.Allow), Rule: fallback}
}

// settle weighs a rule that matches against what was met before it: a rule that
// may match and would win, and a rule without a filter for a more specific
// operation, of which it is not known whether it would win.
func settle(r, doubt, fallback *Rule) Answer {
	if doubt != nil && doubt.Allow != r.Allow {
		return Answer{Rule: doubt, Why: "it is not known whether this rule matches; if it does not, " + r.String()}
	}
	if fallback != nil && fallback.Allow != r.Allow {
		return Answer{Rule: r, Why: "not known against the specific operation of " + fallback.String()}
	}
	return Answer{Verdict: verdict(r.Allow), Rule: r}
}
