package seatbelt

import (
	"fmt"
	"path"
	"strings"

	"github.com/kgate-dev/kgate/backends"
)

// configured are the paths that a repository's configuration makes git run or read as
// more configuration, absolute. dir is the repository, work its working tree. It
// reads what git itself writes and what is usual by hand, not all that git takes.
func configured(config, dir, work string) []string {
	var all []string
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if head, rest, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(line, "[") {
			section, _, _ = strings.Cut(strings.ToLower(head[1:]), " ")
			line = strings.TrimSpace(rest)
		}
		key, value, _ := strings.Cut(line, "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		from := work
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "core.hookspath":
		case "core.fsmonitor":
			if !strings.Contains(value, "/") {
				continue // true, false, or a program on PATH
			}
		case "include.path", "includeif.path":
			from = dir
		default:
			continue
		}
		if value == "" || strings.HasPrefix(value, "~") || strings.ContainsAny(value, " \t") {
			continue
		}
		if !path.IsAbs(value) {
			value = path.Join(from, value)
		}
		all = append(all, path.Clean(value))
	}
	return all
}

// repository protects what the project's repository names, and says which path
// to allow when the repository lies elsewhere.
func (w *writer) repository() {
	work := w.real(w.p.Project)
	dir := w.real(path.Join(work, ".git"))
	if text, ok := w.text(dir); ok {
		link, ok := strings.CutPrefix(text, "gitdir:")
		if !ok {
			return
		}
		dir = w.follow(strings.TrimSpace(link), work)
		if common, ok := w.text(path.Join(dir, "commondir")); ok {
			dir = w.follow(strings.TrimSpace(common), dir)
		}
		if !w.inTree(dir) {
			w.finding("repository", backends.Degraded,
				fmt.Sprintf("%q is a linked worktree or a submodule; its repository %q is not in the box, so git does not work there", work, dir),
				fmt.Sprintf("kgate run --allow-path %q -- ...", dir+":rw"))
			return
		}
	}
	if config, ok := w.text(path.Join(dir, "config")); ok {
		for _, p := range configured(config, dir, work) {
			if unspeakable(p) == "" {
				w.protect(w.real(p), "the repository's configuration names it", built("ways out of the project"))
			}
		}
	}
}

func (w *writer) follow(p, from string) string {
	if !path.IsAbs(p) {
		p = path.Join(from, p)
	}
	return w.real(p)
}

// text is a small file's content; false when there is no such file.
func (w *writer) text(file string) (string, bool) {
	if w.f.ReadFile == nil {
		return "", false
	}
	data, err := w.f.ReadFile(file)
	return string(data), err == nil
}
