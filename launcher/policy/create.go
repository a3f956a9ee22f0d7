package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Created is what Init made.
type Created struct {
	File   string
	Offers []Offer
	Active bool // the offers count already; else they are commented out
}

// Init writes the default policy of a person, with comments, to
// ~/.kgate/config.yaml, and offers read-only paths for the toolchains that
// pathEnv ($PATH) names below home: commented out, or in force when activate
// is set. Schema, when it is not "", is the file that editors check the policy
// against; it is named in the first line. Init never touches a file that exists, and leaves no half of one. The
// directory is made 0700, the file 0600.
func Init(home, pathEnv, schema string, activate bool) (*Created, error) {
	if home == "" {
		return nil, errNoHome
	}
	if !filepath.IsAbs(home) || filepath.Clean(home) == "/" {
		return nil, fmt.Errorf("home directory %q cannot hold a policy (set HOME to a directory of its own)", home)
	}
	home = filepath.Clean(home)
	dir := filepath.Join(home, ".kgate")
	c := &Created{File: filepath.Join(dir, "config.yaml"), Active: activate}
	if _, err := os.Lstat(c.File); err == nil {
		return nil, fmt.Errorf("%s exists already and is left as it is (edit it, or move it away first)", c.File)
	}
	if err := ownDir(home, dir); err != nil {
		return nil, err
	}
	c.Offers = Offers(pathEnv, home)
	if err := createFile(c.File, []byte(modeline(schema)+template(c.Offers, home, activate))); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("%s exists already and is left as it is (edit it, or move it away first)", c.File)
		}
		return nil, fmt.Errorf("write %s: %w", c.File, err)
	}
	return c, nil
}

// ownDir makes kgate's directory in home, or makes sure that the one that is
// there is a directory of this user's.
func ownDir(home, dir string) error {
	info, err := os.Stat(home)
	if err != nil {
		return fmt.Errorf("home directory %q: %s (set HOME to a directory that exists)", home, reason(err))
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != userID() {
		return fmt.Errorf("home directory %q belongs to user %d (run kgate init as that user, or set HOME to your own)", home, st.Uid)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %s", dir, reason(err))
	}
	info, err = os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("directory %q: %s", dir, reason(err))
	case !info.IsDir():
		return fmt.Errorf("%q is not a directory (move it away)", dir)
	}
	return trustFile(dir, info)
}

// createFile makes name with data and mode 0600, at once or not at all; an
// error that is fs.ErrExist when name exists.
func createFile(name string, data []byte) error {
	tmp, err := writeBeside(name, data, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)
	// A link is refused when the name is taken, and the name appears with all
	// its content.
	err = os.Link(tmp, name)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.EOPNOTSUPP) {
		err = createPlainly(name, data) // a file system without links
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(name))
}

func createPlainly(name string, data []byte) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

const templateHead = `# What a command started by kgate may touch. See: kgate explain -- CMD
version: 1

# off:         no network at all
# restricted:  the hosts in allow.hosts and no others; off while there are none
# open:        the whole network; kgate doctor calls that DEGRADED
# kgate network MODE changes this line and nothing else.
network: restricted

ipv6: false                 # IPv6 for a restricted network

allow:
  hosts:
    # - host.example        # any port
    # - host.example:443    # this port only
    # - "*.host.example"    # names below it, not itself
  paths:                    # shown beside the project; read-only unless they say otherwise
    # git's own settings (~/.gitconfig and ~/.config/git) are shown already
    # - ~/data
    # - {path: ~/.cache/go-build, write: true}
`

const templateTail = `  # nested: true            # the command may make user namespaces (rootless containers)

# Denials are added to the built-in ones, which kgate explain lists, and beat
# whatever is allowed.
deny:
  read:
    # - ~/private
  exec:
    # - npm

# Takes entries off the built-in lists.
drop:
  exec:
    # - ssh
  read:
    # - ~/.npmrc
  paths:
    # - ~/.gitconfig

mask:
  prefixes:                 # secrets that start so are replaced in the output
    # - corp_
  env:                      # the values of these variables are replaced in the output
    # - DEPLOY_CODE

env:
  pass:                     # given to the command although a drop pattern matches
    # - GH_TOKEN
  drop:                     # added to the built-in patterns for credentials and sockets
    # - CORP_*
`

// modeline is the comment by which editors' YAML language server finds a
// schema. A name that could end the comment is left out.
func modeline(schema string) string {
	if schema == "" || strings.IndexFunc(schema, func(r rune) bool { return r <= ' ' || r == 0x7f || r == utf8.RuneError }) >= 0 {
		return ""
	}
	return "# yaml-language-server: $schema=" + schema + "\n"
}

func template(offers []Offer, home string, activate bool) string {
	var b strings.Builder
	b.WriteString(templateHead)
	if len(offers) > 0 {
		b.WriteString("    # toolchains and caches in the home directory, which the box hides otherwise:\n")
	}
	for _, o := range offers {
		mark := "# "
		if activate {
			mark = ""
		}
		fmt.Fprintf(&b, "    %s- %s    # %s\n", mark, yamlPath(o.Short(home)), o.Why)
	}
	b.WriteString(templateTail)
	return b.String()
}

// yamlPath writes a path so that YAML reads it back: plain when it is an
// ordinary one, else in double quotes, whose escapes are the same as Go's for
// what a path that is UTF-8 can hold.
func yamlPath(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("~/._+-@", c) >= 0
		if !plain {
			return strconv.Quote(s)
		}
	}
	return s
}
