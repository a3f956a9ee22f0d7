package integrate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
)

// state is what is kept of an integration, below ~/.kgate, where no command in a
// box can reach it: each file as it was, and what was done to it.
type state struct {
	Files []saved `json:"files"`
	dir   string
}

// saved is one file.
type saved struct {
	File    string      `json:"file"`
	Existed bool        `json:"existed"`
	Mode    fs.FileMode `json:"mode"`
	Backup  string      `json:"backup,omitempty"` // name of the copy, when it existed
	Wrote   string      `json:"wrote"`            // sha256 of what was written
	Splice  Splice      `json:"splice"`
	Dirs    []string    `json:"dirs,omitempty"` // directories made for it, deepest first
}

func stateDir(h *Host, name string) string {
	return filepath.Join(h.Home, ".kgate", "integrate", name)
}

func readState(h *Host, name string) (*state, error) {
	s := &state{dir: stateDir(h, name)}
	data, err := os.ReadFile(filepath.Join(s.dir, "state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read what is kept of the integration: %w", err)
	}
	return s, nil
}

func (s *state) write() error {
	if len(s.Files) == 0 {
		err := os.RemoveAll(s.dir)
		os.Remove(filepath.Dir(s.dir)) // stays when another integration is in it
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(s.dir, "state.json"), append(data, '\n'), 0o600)
}

func (s *state) find(file string) *saved {
	for i := range s.Files {
		if s.Files[i].File == file {
			return &s.Files[i]
		}
	}
	return nil
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// Apply makes the change. Before a file is touched its copy and the way back
// are on disk. When one file cannot be changed, the others are as they were.
func (p *Plan) Apply() error {
	kept := slices.Clone(p.state.Files)
	for i, e := range p.Edits {
		if err := p.state.apply(e); err != nil {
			err = fmt.Errorf("change %q: %w", e.File, err)
			return errors.Join(err, p.state.back(p.Edits[:i], e, kept))
		}
	}
	return nil
}

// back takes back the changes that were made before one that failed.
func (s *state) back(made []Edit, failed Edit, kept []saved) error {
	var errs []error
	var dirs []string
	for _, e := range append(slices.Clone(made), failed) {
		f := s.find(e.File)
		if f == nil {
			continue
		}
		switch {
		case e.File == failed.File: // was not written
		case e.Before == nil:
			errs = append(errs, os.Remove(e.File))
		default:
			errs = append(errs, writeFile(e.File, e.Before, f.Mode))
		}
		if e.Before == nil {
			dirs = append(dirs, f.Dirs...)
		}
	}
	removeDirs(dirs)
	s.Files = kept
	return errors.Join(append(errs, s.write())...)
}

// removeDirs removes those directories that are empty.
func removeDirs(dirs []string) {
	sort.Slice(dirs, func(i, j int) bool { return len(dirs[i]) > len(dirs[j]) }) // deepest first
	for _, dir := range dirs {
		os.Remove(dir) // stays when there is something in it
	}
}

func (s *state) apply(e Edit) error {
	now, err := read(e.File)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, e.Before) || (now == nil) != (e.Before == nil) {
		return errors.New("it changed meanwhile; nothing was written (run kgate integrate again)")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	var f saved
	old := s.find(e.File)
	if old != nil && old.Wrote == sum(now) {
		// A second change of kgate's own: the way back still leads to before the first.
		f = *old
		f.Splice = e.Splice
	} else {
		f = saved{File: e.File, Mode: 0o600, Splice: e.Splice, Dirs: missing(filepath.Dir(e.File))}
		if old != nil {
			f.Dirs = old.Dirs
		}
		if now != nil {
			info, err := os.Stat(e.File)
			if err != nil {
				return err
			}
			f.Mode = info.Mode().Perm()
		}
		if e.base != nil {
			f.Existed, f.Backup = true, s.free(e.File)
			if err := writeFile(filepath.Join(s.dir, f.Backup), e.base, 0o600); err != nil {
				return err
			}
		}
	}
	f.Wrote = sum(e.After)
	if old != nil {
		*old = f
	} else {
		s.Files = append(s.Files, f)
	}
	if err := s.write(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(e.File), 0o700); err != nil {
		return err
	}
	return writeFile(e.File, e.After, f.Mode)
}

// free is a name for a copy that no other has.
func (s *state) free(file string) string {
	for n := len(s.Files); ; n++ {
		name := strconv.Itoa(n) + "-" + filepath.Base(file)
		if _, err := os.Lstat(filepath.Join(s.dir, name)); err != nil {
			return name
		}
	}
}

// missing lists the directories that have to be made, deepest first.
func missing(dir string) []string {
	var out []string
	for {
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return out
		}
		out = append(out, dir)
		dir = filepath.Dir(dir)
	}
}

// Undo plans the way back: each file as it was before, or, where somebody
// changed it since, without what was put in. Nothing is written.
func (hs *Harness) Undo(h *Host) (*Plan, error) {
	p := &Plan{Harness: hs}
	var err error
	if p.state, err = readState(h, hs.Name); err != nil {
		return nil, err
	}
	for _, f := range p.state.Files {
		now, err := read(f.File)
		if err != nil {
			return nil, err
		}
		e := Edit{File: f.File, Before: now}
		if e.After, err = p.state.without(f, now); err != nil {
			return nil, fmt.Errorf("%q changed since kgate wrote it: %w; the copy from before is %q", f.File, err, filepath.Join(p.state.dir, f.Backup))
		}
		if now == nil || e.After != nil && bytes.Equal(now, e.After) {
			continue // somebody has undone it
		}
		if err := writable(f.File); err != nil {
			return nil, err
		}
		p.Edits = append(p.Edits, e)
	}
	return p, nil
}

// Known says whether something is kept of an integration.
func (p *Plan) Known() bool { return len(p.state.Files) > 0 }

// Remove carries out the plan of Undo.
func (p *Plan) Remove() error {
	for _, e := range p.Edits {
		f := p.state.find(e.File)
		err := error(nil)
		if e.After == nil && !f.Existed {
			err = os.Remove(e.File)
		} else {
			err = writeFile(e.File, e.After, f.Mode)
		}
		if err != nil {
			return fmt.Errorf("restore %q: %w", e.File, err)
		}
	}
	var dirs []string
	for _, f := range p.state.Files {
		dirs = append(dirs, f.Dirs...)
	}
	removeDirs(dirs)
	p.state.Files = nil
	return p.state.write()
}

// without is a file's text without what kgate put into it; nil where nothing
// would be left of a file that kgate made.
func (s *state) without(f saved, now []byte) ([]byte, error) {
	var was []byte
	if f.Existed {
		var err error
		if was, err = os.ReadFile(filepath.Join(s.dir, f.Backup)); err != nil {
			return nil, fmt.Errorf("read its copy: %w", err)
		}
	}
	if now == nil || sum(now) == f.Wrote || f.Existed && bytes.Equal(now, was) {
		return was, nil
	}
	out, err := f.Splice.undo(now)
	if isJSON(f.File) && (err != nil || !sound(now, out)) {
		out, err = unsetJSON(was, f.Splice.apply(was), now)
	}
	if err != nil {
		err = fmt.Errorf("%w: take it out by hand:\n%s", err, strings.TrimSpace(f.Splice.New))
	} else if !f.Existed && blank(out) {
		out = nil
	}
	return out, err
}

// base is what a change of a file starts from: the text without an earlier
// change of kgate's, where that can be told from the rest.
func (s *state) base(file string) (base, now []byte, err error) {
	if now, err = read(file); err != nil || now == nil {
		return nil, now, err
	}
	f := s.find(file)
	if f == nil {
		return now, now, nil
	}
	if base, err = s.without(*f, now); err != nil {
		return now, now, nil
	}
	return base, now, nil
}

// read returns nil for a file that is not there.
func read(file string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

// real is the file that a name leads to, so that a link stays one.
func real(file string) (string, error) {
	r, err := filepath.EvalSymlinks(file)
	if err == nil {
		return r, nil
	}
	if to, lerr := os.Readlink(file); lerr == nil {
		return "", fmt.Errorf("%q is a link to %q, which cannot be followed (%w): make that file, or take the link away", file, to, err)
	}
	return file, nil
}

// writable refuses a file that its owner made read-only: to put another one in
// its place would be possible, and not what was meant.
func writable(file string) error {
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o200 == 0 {
		return fmt.Errorf("%q is read-only: chmod u+w it first", file)
	}
	return nil
}

// writeFile puts data in a file's place as a whole or not at all.
func writeFile(file string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the name is nobody's business
		}
		return fmt.Errorf("write into %q: %w", filepath.Dir(file), err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = keepOwner(f, file)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// keepOwner gives a file that will take another's place the other's owner and
// group, which matters to root alone and to shared directories.
func keepOwner(f *os.File, file string) error {
	was, err := os.Stat(file)
	if err != nil {
		return nil // none is replaced
	}
	is, err := f.Stat()
	if err != nil {
		return err
	}
	a, ok := was.Sys().(*syscall.Stat_t)
	b, okay := is.Sys().(*syscall.Stat_t)
	if !ok || !okay || a.Uid == b.Uid && a.Gid == b.Gid {
		return nil
	}
	if err := f.Chown(int(a.Uid), int(a.Gid)); err != nil {
		return fmt.Errorf("%q belongs to user %d and group %d, and would not any more: %w", file, a.Uid, a.Gid, errors.Unwrap(err))
	}
	return nil
}
