package integrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kgate-dev/kgate/launcher/policy"
)

func policyFile(h *Host) string { return filepath.Join(h.Home, ".kgate", "config.yaml") }

// policyPaths adds paths to the person's policy, where a harness needs them in
// the box.
func policyPaths(h *Host, f *files, items []string) error {
	return f.edit(policyFile(h), func(text []byte) (Splice, error) {
		if text == nil {
			return Splice{}, errors.New("is not there (run kgate init first)")
		}
		s, err := addYAML(text, []string{"allow", "paths"}, items)
		if err != nil {
			return Splice{}, err
		}
		return s, accepted(s.apply(text))
	})
}

// accepted has the policy's own reader look at a text.
func accepted(text []byte) error {
	home, err := os.MkdirTemp("", "kgate-policy-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	dir := filepath.Join(home, ".kgate")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	if _, err := policy.ReadNetwork(file); err != nil {
		return fmt.Errorf("would not be a policy any more: %w", err)
	}
	return nil
}

// yamlPath writes a path for the policy, short where it is below home.
func yamlPath(h *Host, path string) string {
	if rest, ok := strings.CutPrefix(path, h.Home+"/"); ok {
		path = "~/" + rest
	}
	if strings.IndexFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("~/._+-", r))
	}) >= 0 {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// directory plans a directory. It is kept by a file in it, which is also what
// brings it back to nothing.
func (f *files) directory(dir string) error {
	file, err := real(filepath.Join(dir, keep))
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err == nil && info.IsDir() && f.state.find(file) == nil {
		return nil // somebody's own
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.edit(file, func(text []byte) (Splice, error) { return Splice{0, string(text), keepText}, nil })
}

const (
	keep     = ".kgate"
	keepText = "made by kgate integrate, which also removes it\n"
)
