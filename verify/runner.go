package verify

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// Result is how a scenario ended.
type Result string

// The results of a scenario. A skip proves nothing.
const (
	Pass Result = "pass"
	Fail Result = "fail"
	Skip Result = "skip"
)

// scriptRun is a script's result with what testscript said of it.
type scriptRun struct {
	Result Result
	Reason string // why it was skipped
	Log    string
}

// runScript runs the only script of p.
func runScript(p testscript.Params) scriptRun {
	root := &witness{}
	root.in(func() { testscript.RunT(root, p) })
	if len(root.children) == 0 {
		return scriptRun{Result: Fail, Log: root.log.String()}
	}
	c := root.children[0]
	r := scriptRun{Result: Pass, Reason: c.reason, Log: c.log.String()}
	switch {
	case c.failed || root.failed:
		r.Result = Fail
	case c.skipped:
		r.Result = Skip
	}
	return r
}

// witness is testscript's T outside go test. Scripts run one after the other.
type witness struct {
	mu       sync.Mutex
	log      strings.Builder
	reason   string
	failed   bool
	skipped  bool
	children []*witness
}

// in runs f on a goroutine of its own, which FailNow and Skip end.
func (t *witness) in(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if e := recover(); e != nil {
				t.failed = true
				t.Log("panic:", e)
			}
		}()
		f()
	}()
	<-done
}

func (t *witness) Run(name string, f func(testscript.T)) {
	c := &witness{}
	t.children = append(t.children, c)
	c.in(func() { f(c) })
}

func (t *witness) Log(args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(&t.log, args...)
}

func (t *witness) Skip(args ...any) {
	t.skipped = true
	t.reason = strings.TrimSpace(fmt.Sprintln(args...))
	t.Log(args...)
	runtime.Goexit()
}

func (t *witness) Fatal(args ...any) {
	t.Log(args...)
	t.FailNow()
}

func (t *witness) FailNow() {
	t.failed = true
	runtime.Goexit()
}

func (t *witness) Parallel()     {}
func (t *witness) Verbose() bool { return false }
