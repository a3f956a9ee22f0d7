package command

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellText inspects text that a shell would run. Parent is the scope whose
// variables the shell inherits; params are $0, $1 and so on.
func (i *inspector) shellText(c setting, text string, params []field, lang syntax.LangVariant) error {
	if err := i.step(c); err != nil {
		return passed(err)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parsed, err := i.parse(text, lang)
	if err != nil {
		return i.undecided(c, excerpt(text), fmt.Sprintf("the shell text %s could not be parsed (%s)", excerpt(text), err))
	}
	c.scope = newScope(c.scope, params)
	c.plain = false
	c.scope.collect(parsed.Stmts)
	for _, dir := range c.scope.dirs {
		i.changesDir(dir)
	}
	w := &walker{i: i, c: c}
	return w.stmts(parsed.Stmts)
}

// walker goes through the statements of one text.
type walker struct {
	i     *inspector
	c     setting
	calls int // functions being followed
}

func (w *walker) stmts(list []*syntax.Stmt) error {
	for _, s := range list {
		if err := w.stmt(s, w.c.in); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) stmt(s *syntax.Stmt, in input) error {
	if s == nil {
		return nil
	}
	for _, r := range s.Redirs {
		if err := w.words(r.Word, r.Hdoc); err != nil {
			return err
		}
		if fed, ok := w.redirected(r); ok {
			in = fed
		}
	}
	if s.Cmd == nil {
		return nil
	}
	return w.command(s.Cmd, in)
}

func (w *walker) command(cmd syntax.Command, in input) error {
	switch cmd := cmd.(type) {
	case *syntax.CallExpr:
		return w.call(cmd, in)
	case *syntax.BinaryCmd:
		return w.binary(cmd, in)
	case *syntax.DeclClause:
		for _, a := range cmd.Args {
			if err := w.assign(a); err != nil {
				return err
			}
		}
		return nil
	case *syntax.FuncDecl:
		// The body is looked at where it stands: a function that nobody calls is
		// not worth a rule of its own. In a file it counts when it is called.
		if w.c.file {
			return nil
		}
		inner := *w
		inner.c.in = in
		inner.c.scope = w.c.scope.deferred()
		return inner.stmt(cmd.Body, in)
	}
	inner := *w
	inner.c.in = in
	return inner.compound(cmd)
}

func (w *walker) compound(cmd syntax.Command) error {
	switch cmd := cmd.(type) {
	case *syntax.Subshell:
		return w.stmts(cmd.Stmts)
	case *syntax.Block:
		return w.stmts(cmd.Stmts)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			if err := w.stmts(c.Cond); err != nil {
				return err
			}
			if w.c.file { // a branch may never be taken
				return nil
			}
			if err := w.stmts(c.Then); err != nil {
				return err
			}
		}
		return nil
	case *syntax.WhileClause:
		if err := w.stmts(cmd.Cond); err != nil {
			return err
		}
		return w.stmts(cmd.Do)
	case *syntax.ForClause:
		if err := w.nested(cmd.Loop); err != nil {
			return err
		}
		return w.stmts(cmd.Do)
	case *syntax.CaseClause:
		if err := w.words(cmd.Word); err != nil || w.c.file {
			return err
		}
		for _, item := range cmd.Items {
			if err := w.words(item.Patterns...); err != nil {
				return err
			}
			if err := w.stmts(item.Stmts); err != nil {
				return err
			}
		}
		return nil
	case *syntax.TimeClause:
		return w.stmt(cmd.Stmt, w.c.in)
	case *syntax.CoprocClause:
		return w.stmt(cmd.Stmt, w.c.in)
	case *syntax.TestDecl:
		return w.stmt(cmd.Body, w.c.in)
	}
	return w.nested(cmd) // arithmetic, tests and let hold no commands but substitutions
}

// binary follows a chain of && and || without recursion: it may be long.
func (w *walker) binary(cmd *syntax.BinaryCmd, in input) error {
	type link struct {
		op syntax.BinCmdOperator
		s  *syntax.Stmt
	}
	var chain []link
	var first *syntax.Stmt
	for {
		chain = append(chain, link{cmd.Op, cmd.Y})
		first = cmd.X
		left, ok := cmd.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(cmd.X.Redirs) > 0 {
			break
		}
		cmd = left
	}
	if err := w.stmt(first, in); err != nil {
		return err
	}
	before, read := first, in
	for n := len(chain) - 1; n >= 0; n-- {
		l := chain[n]
		piped := l.op == syntax.Pipe || l.op == syntax.PipeAll
		if l.op == syntax.OrStmt && w.c.file {
			continue
		}
		from := in
		if piped {
			from = w.printedBy(before, read)
		}
		if err := w.stmt(l.s, from); err != nil {
			return err
		}
		before, read = l.s, from
	}
	return nil
}

// redirected tells what a redirection puts on standard input.
func (w *walker) redirected(r *syntax.Redirect) (input, bool) {
	if r.N != nil && r.N.Value != "0" {
		return input{}, false
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc == nil {
			return input{given: true, known: true}, true
		}
		if quotedWord(r.Word) {
			return input{given: true, known: true, text: r.Hdoc.Lit()}, true
		}
		return input{given: true, known: true, text: w.document(r.Hdoc)}, true
	case syntax.WordHdoc:
		return input{given: true, known: true, text: w.scalar(r.Word).text}, true
	case syntax.RdrIn, syntax.RdrInOut:
		f := w.scalar(r.Word)
		if f.proc != nil {
			return *f.proc, true
		}
		if f.sure && f.text != "/dev/stdin" {
			return input{given: true, path: f.text}, true
		}
		return input{given: true}, f.text != "/dev/stdin"
	case syntax.DplIn:
		return input{given: true}, true
	}
	return input{}, false
}

// words looks into words for substitutions.
func (w *walker) words(list ...*syntax.Word) error {
	for _, word := range list {
		if word == nil || plain(word) {
			continue
		}
		if err := w.nested(word); err != nil {
			return err
		}
	}
	return nil
}

// nested inspects the command and process substitutions below a node.
func (w *walker) nested(n syntax.Node) error {
	var found error
	syntax.Walk(n, func(n syntax.Node) bool {
		if found != nil {
			return false
		}
		switch n := n.(type) {
		case *syntax.CmdSubst:
			found = w.stmts(n.Stmts)
			return false
		case *syntax.ProcSubst:
			found = w.stmts(n.Stmts)
			return false
		}
		return true
	})
	return found
}

func (w *walker) assign(a *syntax.Assign) error {
	if a.Value != nil {
		if err := w.words(a.Value); err != nil {
			return err
		}
		if a.Name != nil && a.Name.Value == "PS4" {
			// The shell expands it at each traced command.
			text := `: "` + strings.ReplaceAll(w.scalar(a.Value).text, `"`, "") + `"`
			return w.i.shellText(mild(w.c), text, nil, syntax.LangBash)
		}
	}
	if a.Array != nil {
		if err := w.nested(a.Array); err != nil {
			return err
		}
	}
	if a.Index != nil {
		return w.nested(a.Index)
	}
	return nil
}

// mild is the setting of text that may run: only what is surely denied in it
// is refused.
func mild(c setting) setting {
	c.lenient = true
	return c
}

func (w *walker) call(c *syntax.CallExpr, in input) error {
	for _, a := range c.Assigns {
		if err := w.assign(a); err != nil {
			return err
		}
	}
	if len(c.Args) == 0 {
		return nil
	}
	if err := w.words(c.Args...); err != nil {
		return err
	}
	ctx := w.c
	ctx.in = in
	if name, ok := literal(c.Args[0]); ok && !special(ctx, name) {
		// The usual case, and the reason why long texts are quick to look
		// through: the words behind the program do not matter.
		f, err := w.i.program(ctx, name, baseName(name))
		if err != nil || f == nil || w.i.ordinary(f) {
			return err
		}
	}
	for _, words := range w.lines(c.Args) {
		if err := w.start(ctx, words); err != nil {
			return err
		}
	}
	return nil
}

// start is the inspector's start with the functions of this text in sight.
func (w *walker) start(ctx setting, words []field) error {
	if len(words) > 0 && words[0].sure {
		if f := ctx.scope.function(words[0].text); f != nil {
			return w.follow(ctx, f, words)
		}
		if word := ctx.scope.alias(words[0].text); word != nil && w.calls < maxCalls {
			_, value, _ := strings.Cut(w.scalar(word).text, "=")
			again := *w
			again.calls++
			return again.start(ctx, append(splitFields(value), words[1:]...))
		}
	}
	return w.i.start(words, ctx)
}

// follow looks at a function's body again with the words it is called with.
func (w *walker) follow(ctx setting, f *function, words []field) error {
	if err := w.i.step(ctx); err != nil {
		return passed(err)
	}
	if d, ok := w.i.denied(words[0].text); ok {
		return w.i.deny(d.Text, d.From, "named as "+excerpt(words[0].text))
	}
	for ; f != nil; f = f.other {
		if !f.params && !ctx.file {
			continue // looked at where it is defined
		}
		if w.calls >= maxCalls {
			return w.i.undecided(ctx, words[0].text, fmt.Sprintf("the function %s calls functions more than %d deep", excerpt(words[0].text), maxCalls))
		}
		inner := *w
		inner.calls++
		inner.c = ctx
		inner.c.scope = ctx.scope.called(words)
		body := f.body
		if err := w.i.within("function "+words[0].text, func() error { return inner.stmt(body, ctx.in) }); err != nil {
			return err
		}
	}
	return nil
}
