package verify

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// tree is every name below some directories, with what it is.
type tree map[string]string

// readTree describes everything below root but what matches a pattern of except.
func readTree(into tree, root string, except []string) error {
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, pattern := range except {
			if ok, err := path.Match(pattern, rel); err != nil {
				return err
			} else if ok && d.IsDir() {
				return fs.SkipDir
			} else if ok {
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			what += fmt.Sprintf(" %d:%d", st.Uid, st.Gid)
		}
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(" %x", sha256.Sum256(text))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			what += " -> " + to
		}
		into[name] = what
		return nil
	})
}

// differences lists what one tree has and the other has not.
func differences(before, after tree) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch now, ok := after[name]; {
		case !ok:
			out = append(out, "removed: "+name)
		case now != before[name]:
			out = append(out, fmt.Sprintf("changed: %s: %s, now %s", name, before[name], now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			out = append(out, "left behind: "+name+" "+after[name])
		}
	}
	return out
}

const usageSnapshot = "snapshot [-except GLOB]... DIR..."

func cmdSnapshot(ts *testscript.TestScript, neg bool, args []string) {
	never(ts, neg, "snapshot")
	s := of(ts)
	s.except = nil
	args = options(ts, usageSnapshot, args, func(f *flag.FlagSet) {
		f.Func("except", "", func(v string) error { s.except = append(s.except, v); return nil })
	})
	if len(args) == 0 {
		ts.Fatalf("usage: %s", usageSnapshot)
	}
	s.before, s.roots = tree{}, nil
	for _, dir := range args {
		dir = ts.MkAbs(dir)
		s.roots = append(s.roots, dir)
		ts.Check(readTree(s.before, dir, s.except))
	}
}

func cmdUnchanged(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	if len(args) != 0 || s.before == nil {
		ts.Fatalf("usage: unchanged, after snapshot")
	}
	after := tree{}
	for _, dir := range s.roots {
		ts.Check(readTree(after, dir, s.except))
	}
	diff := differences(s.before, after)
	switch {
	case neg && len(diff) == 0:
		ts.Fatalf("nothing changed")
	case !neg && len(diff) > 0:
		ts.Fatalf("%s", strings.Join(diff, "\n"))
	case !neg:
		s.evidence("%d names unchanged", len(after))
	}
}
