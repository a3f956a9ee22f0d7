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
	"sort"
	"strconv"
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
// are on disk.
func (p *Plan) Apply() error {
	for _, e := range p.Edits {
		if err := p.state.apply(e); err != nil {
			return fmt.Errorf("change %q: %w", e.File, err)
		}
	}
	return nil
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
	if old := s.find(e.File); old != nil && old.Wrote == sum(now) {
		// A second change of kgate's own: the way back still leads to before the first.
		f = *old
		f.Splice = e.Splice
	} else {
		f = saved{File: e.File, Mode: 0o600, Splice: e.Splice}
		if now != nil {
			info, err := os.Stat(e.File)
			if err != nil {
				return err
			}
			f.Existed, f.Mode, f.Backup = true, info.Mode().Perm(), s.free(e.File)
			if err := writeFile(filepath.Join(s.dir, f.Backup), now, 0o600); err != nil {
				return err
			}
		}
		f.Dirs = missing(filepath.Dir(e.File))
	}
	f.Wrote = sum(e.After)
	if old := s.find(e.File); old != nil {
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
		var was []byte
		if f.Existed {
			if was, err = os.ReadFile(filepath.Join(p.state.dir, f.Backup)); err != nil {
				return nil, fmt.Errorf("read the copy of %q: %w", f.File, err)
			}
		}
		e := Edit{File: f.File, Before: now}
		switch {
		case now == nil || f.Existed && bytes.Equal(now, was):
			continue // somebody has undone it
		case sum(now) == f.Wrote:
			e.After = was
		default:
			if e.After, err = f.Splice.undo(now); err != nil {
				return nil, fmt.Errorf("%q changed since kgate wrote it: %w; the copy from before is %q", f.File, err, filepath.Join(p.state.dir, f.Backup))
			}
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
	sort.Slice(dirs, func(i, j int) bool { return len(dirs[i]) > len(dirs[j]) }) // deepest first
	for _, dir := range dirs {
		os.Remove(dir) // stays when there is something in it
	}
	p.state.Files = nil
	return p.state.write()
}

// base is what a change of a file starts from: the file as it is, or as it was
// before an earlier change of kgate's that nobody has touched since.
func (s *state) base(file string) (base, now []byte, err error) {
	if now, err = read(file); err != nil || now == nil {
		return nil, now, err
	}
	f := s.find(file)
	if f == nil || f.Wrote != sum(now) {
		return now, now, nil
	}
	if !f.Existed {
		return nil, now, nil
	}
	base, err = os.ReadFile(filepath.Join(s.dir, f.Backup))
	return base, now, err
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
func real(file string) string {
	if r, err := filepath.EvalSymlinks(file); err == nil {
		return r
	}
	return file
}

// writeFile puts data in a file's place as a whole or not at all.
func writeFile(file string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
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
