package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// edit is a mutant of the source: one place of one file is another, in a build
// that reads the changed file in place of the tree's (go help build, -overlay).
type edit struct {
	name string
	file string // below the root of the tree
	text []byte // of the whole file, changed
	// tests name what is to fail, the likeliest first: "PACKAGE PATTERN" for tests
	// of Go, or a scenario.
	tests []string
	// in is the package of a check: all of a package's checks are in one build,
	// which leaves out the one that it is told the name of.
	in *checked
}

// checked is a package whose checks can be left out one at a time.
type checked struct {
	dir   string
	files map[string][]byte // the changed ones
}

// step is a line of the source that a launch needs, with what is to be in its
// place.
type step struct {
	name, file string
	old, new   string
	tests      []string
}

// edit makes the mutant of a step. It is an error when the source does not hold
// the old text once: the table is to follow the code.
func (s step) edit() (edit, error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return edit{}, err
	}
	if n := bytes.Count(text, []byte(s.old)); n != 1 {
		return edit{}, fmt.Errorf("mutant %s: %s holds %q %d times, not once", s.name, s.file, s.old, n)
	}
	return edit{name: "step:" + s.name, file: s.file, text: bytes.Replace(text, []byte(s.old), []byte(s.new), 1), tests: s.tests}, nil
}

// checks finds the checks of a package: each condition whose branch ends by
// returning an error that it makes, or the error of a check that it has just
// called. In the mutant the condition never holds. What passes on an error from
// further up is no check. The package's own tests are to fail.
func checks(dir string) ([]edit, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []edit
	in := &checked{dir, map[string][]byte{}}
	for _, file := range files {
		if beside[filepath.Base(file)] || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_darwin.go") || strings.HasSuffix(file, "_other.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, text, 0)
		if err != nil {
			return nil, err
		}
		seen := map[string]int{}
		var changes []change
		for _, decl := range tree.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			for _, cond := range conditions(f) {
				from, to := set.Position(cond.Pos()).Offset, set.Position(cond.End()).Offset
				name := fmt.Sprintf("check:%s.%s:%s", filepath.Base(dir), f.Name.Name, strings.Join(strings.Fields(string(text[from:to])), ""))
				if seen[name]++; seen[name] > 1 {
					name += fmt.Sprintf("#%d", seen[name])
				}
				if race[name] {
					continue
				}
				// The condition stays, so that what it uses is used.
				changes = append(changes, change{from, "(("}, change{to, fmt.Sprintf(") && mutantLeftOut != %q)", name)})
				all = append(all, edit{name: name, file: file, in: in})
			}
		}
		if len(changes) > 0 {
			in.files[file] = inserted(text, changes)
		}
	}
	in.files[filepath.Join(dir, "mutant_left_out.go")] = fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar mutantLeftOut = os.Getenv(\"KGATE_MUTANT\")\n", filepath.Base(dir))
	return all, nil
}

// change is text to be put in before a byte.
type change struct {
	at   int
	text string
}

func inserted(text []byte, changes []change) []byte {
	slices.SortStableFunc(changes, func(a, b change) int { return a.at - b.at })
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, text[at:c.at]...), c.text...)
		at = c.at
	}
	return append(out, text[at:]...)
}

// beside are files that no launch uses: those of kgate init and kgate network.
var beside = map[string]bool{"create.go": true, "network.go": true, "offer.go": true}

// race are checks that hold against a change between two calls of the same
// function, which no test can make at that moment.
var race = map[string]bool{"check:policy.readFile:err!=nil||!info.Mode().IsRegular()": true}

// conditions are those of a function's checks.
func conditions(f *ast.FuncDecl) []ast.Expr {
	var all []ast.Expr
	ast.Inspect(f, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.IfStmt:
			c, ok := s.Cond.(*ast.BinaryExpr)
			passesOn := ok && c.Op == token.NEQ && fmt.Sprint(c.X) == "err" && fmt.Sprint(c.Y) == "nil"
			if passesOn && s.Init != nil && returnsErr(s.Body.List) || !passesOn && makesErr(s.Body.List) {
				all = append(all, s.Cond)
			}
		case *ast.SwitchStmt:
			for _, stmt := range s.Body.List {
				if c := stmt.(*ast.CaseClause); s.Tag == nil && makesErr(c.Body) {
					all = append(all, c.List...)
				}
			}
		}
		return true
	})
	return all
}

// last is the last value that a list of statements ends by returning.
func last(list []ast.Stmt) ast.Expr {
	if len(list) == 0 {
		return nil
	}
	r, ok := list[len(list)-1].(*ast.ReturnStmt)
	if !ok || len(r.Results) == 0 {
		return nil
	}
	return r.Results[len(r.Results)-1]
}

func returnsErr(list []ast.Stmt) bool {
	id, ok := last(list).(*ast.Ident)
	return ok && id.Name == "err"
}

func makesErr(list []ast.Stmt) bool {
	switch e := last(list).(type) {
	case *ast.CallExpr:
		switch f := e.Fun.(type) {
		case *ast.SelectorExpr:
			return makers[f.Sel.Name]
		case *ast.Ident:
			return makers[f.Name]
		}
	case *ast.UnaryExpr: // &RefusedError{…}
		return e.Op == token.AND
	}
	return false
}

// makers are the functions that make an error.
var makers = map[string]bool{"Errorf": true, "New": true, "at": true, "bad": true, "wider": true, "unknown": true, "refuse": true, "undecided": true, "explain": true}

// overlay writes changed files and the list that go build reads, and returns the
// latter's name.
func overlay(dir string, files map[string][]byte) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		full, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[full] = filepath.Join(dir, "changed-"+filepath.Base(file))
		if err := os.WriteFile(replace[full], text, 0o600); err != nil {
			return "", err
		}
	}
	list := filepath.Join(dir, "overlay.json")
	text, _ := json.Marshal(map[string]any{"Replace": replace})
	return list, os.WriteFile(list, text, 0o600)
}
