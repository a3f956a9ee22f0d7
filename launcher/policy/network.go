package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// SetNetwork sets the network mode in a person's policy file. Everything else
// in the file stays as it is, byte for byte; the file is replaced as a whole or
// not at all, and a symlink to it stays one. A file that is missing, or wrong
// before or after the edit, is left untouched.
func SetNetwork(file string, mode Network) error {
	if _, err := ParseNetwork(string(mode)); err != nil {
		return err
	}
	data, err := readFile(file, FromUser)
	if err != nil {
		return err
	}
	if data == nil {
		return fmt.Errorf("%s does not exist (run kgate init first)", file)
	}
	edited, err := setNetwork(data, file, mode)
	if err != nil {
		return err
	}
	if bytes.Equal(edited, data) {
		return nil
	}
	if err := replaceFile(file, edited); err != nil {
		return fmt.Errorf("write %s: %w (it is unchanged)", file, err)
	}
	return nil
}

// ReadNetwork returns the network mode of a person's policy file, the default
// when the file does not exist or does not say.
func ReadNetwork(file string) (Mode, error) {
	m := defaults("/").Network
	data, err := readFile(file, FromUser)
	if err != nil {
		return m, err
	}
	home := homeOf(file)
	doc, err := parse(data, file, FromUser, home, home)
	if err == nil && doc.network != nil {
		m = *doc.network
	}
	return m, err
}

// homeOf is the home that HOME/.kgate/config.yaml belongs to.
func homeOf(file string) string { return filepath.Dir(filepath.Dir(file)) }

// setNetwork edits the text and checks that the edit did what it should and
// nothing else.
func setNetwork(data []byte, file string, mode Network) ([]byte, error) {
	home := homeOf(file)
	before, err := parse(data, file, FromUser, home, home)
	if err != nil {
		return nil, err
	}
	if before.network != nil && before.network.Value == mode {
		return data, nil
	}
	root, err := parseNode(data, file)
	if err != nil {
		return nil, err
	}
	var edited []byte
	switch value := child(root, "network"); {
	case value != nil:
		edited = replaceScalar(data, value, string(mode))
	case root == nil || root.Style&yaml.FlowStyle == 0:
		edited = addLine(data, root, "network: "+string(mode))
	default:
		edited = addToFlow(data, root, "network: "+string(mode))
	}
	byHand := &FileError{File: file, Key: "network", What: "cannot be edited without changing something else", Mend: "edit the file by hand"}
	if root != nil {
		byHand.Line = root.Line
	}
	if edited == nil {
		return nil, byHand
	}
	after, err := parse(edited, file, FromUser, home, home)
	if err != nil || after.network == nil || after.network.Value != mode || !sameBut(before, after) {
		return nil, byHand
	}
	return edited, nil
}

// child returns the value of a key, nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// offset is where a node starts in the text. A column counts characters.
func offset(data []byte, n *yaml.Node) int {
	at := 0
	for line := 1; line < n.Line; line++ {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
	for col := 1; col < n.Column && at < len(data); col++ {
		_, size := utf8.DecodeRune(data[at:])
		at += size
	}
	return at
}

// replaceScalar puts text in the place of a one-line scalar, in the same
// quotes; nil when the scalar is written in another way.
func replaceScalar(data []byte, n *yaml.Node, text string) []byte {
	quote := ""
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	case n.Style&yaml.SingleQuotedStyle != 0:
		quote = `'`
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return nil
	}
	old := []byte(quote + n.Value + quote)
	i := offset(data, n)
	if i < 0 || !bytes.HasPrefix(data[i:], old) {
		return nil
	}
	return splice(data, i, i+len(old), quote+text+quote)
}

// addLine adds a line for a new key: after version's line when there is one,
// else before the first key, else at the end of a file that says nothing.
func addLine(data []byte, root *yaml.Node, line string) []byte {
	end := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		end = "\r\n"
	}
	if root == nil {
		if n := len(data); n > 0 && data[n-1] != '\n' {
			line = end + line
		}
		return splice(data, len(data), len(data), line+end)
	}
	first := root.Content[0]
	indent := strings.Repeat(" ", first.Column-1)
	if v := child(root, "version"); v != nil {
		i := offset(data, v)
		if i < 0 {
			return nil
		}
		if j := bytes.IndexByte(data[i:], '\n'); j >= 0 {
			return splice(data, i+j+1, i+j+1, indent+line+end)
		}
		return splice(data, len(data), len(data), end+indent+line+end)
	}
	i := offset(data, first) - (first.Column - 1)
	if i < 0 {
		return nil
	}
	return splice(data, i, i, indent+line+end)
}

func addToFlow(data []byte, root *yaml.Node, pair string) []byte {
	i := offset(data, root)
	if i < 0 || i >= len(data) || data[i] != '{' {
		return nil
	}
	if len(root.Content) > 0 {
		pair += ", "
	}
	return splice(data, i+1, i+1, pair)
}

func splice(data []byte, from, to int, text string) []byte {
	out := make([]byte, 0, len(data)+len(text))
	out = append(out, data[:from]...)
	out = append(out, text...)
	return append(out, data[to:]...)
}

// sameBut reports whether two documents say the same but for the network mode.
func sameBut(a, b *document) bool {
	x, y := *a, *b
	x.network, y.network = nil, nil
	x.forgetLines()
	y.forgetLines()
	return reflect.DeepEqual(x, y)
}

// forgetLines takes line numbers out of a document, which an added line moves.
func (d *document) forgetLines() {
	for _, f := range []**Flag{&d.ipv6, &d.nested} {
		if *f != nil {
			flag := **f
			flag.From.Line = 0
			*f = &flag
		}
	}
	if d.mtu != nil {
		mtu := *d.mtu
		mtu.From.Line = 0
		d.mtu = &mtu
	}
	for _, list := range []*[]Host{&d.hosts, &d.dropHosts} {
		*list = append([]Host(nil), *list...)
		for i := range *list {
			(*list)[i].From.Line = 0
		}
	}
	for _, list := range []*[]Path{&d.paths, &d.denyRead, &d.dropPaths, &d.dropRead} {
		*list = append([]Path(nil), *list...)
		for i := range *list {
			(*list)[i].From.Line = 0
		}
	}
	for _, list := range []*[]Word{&d.denyExec, &d.dropExec, &d.maskPrefixes, &d.maskEnv, &d.envPass, &d.envDrop} {
		*list = append([]Word(nil), *list...)
		for i := range *list {
			(*list)[i].From.Line = 0
		}
	}
}

// replaceFile puts data in the place of the file that name leads to: written
// beside it, synced, renamed, so that a reader sees the old or the new.
func replaceFile(name string, data []byte) (err error) {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	tmp, err := writeBeside(real, data, info.Mode().Perm())
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && (int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid()) {
		if err := os.Lchown(tmp, int(st.Uid), int(st.Gid)); err != nil && os.Geteuid() == 0 {
			return errors.Join(err, os.Remove(tmp))
		}
	}
	if err := os.Rename(tmp, real); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(real))
}

// writeBeside writes a synced temporary file into the directory of name and
// returns its name. Nothing is left when it fails.
func writeBeside(name string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".config-*.tmp") // 0600
	if err != nil {
		return "", err
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
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
