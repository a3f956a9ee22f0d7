package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// text inspects text that a program gives to a shell.
func (i *inspector) text(c setting, f field) error {
	return i.shellText(c, f.text, []field{known("sh")}, syntax.LangBash)
}

// textCommand is the programs whose operands, or some option, are text for a shell.
func textCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	args := words[1:]
	switch base {
	case "watch":
		_, rest := options(args, "nqs", "interval equexit shotsdir", true)
		return i.text(c, field{text: texts(rest)})
	case "hyperfine":
		opts, rest := options(args, "wmMrspcnSuL", "warmup min-runs max-runs runs setup prepare conclude cleanup command-name shell time-unit export-json export-csv export-markdown parameter-list style", false)
		for _, o := range opts {
			switch o.name {
			case "-p", "--prepare", "-s", "--setup", "-c", "--cleanup", "--conclude", "-S", "--shell":
				rest = append(rest, o.arg)
			}
		}
		return i.all(c, rest)
	case "concurrently":
		_, rest := options(args, "nmplc", "names max-processes prefix prefix-colors", false)
		return i.all(mild(c), rest)
	case "entr":
		opts, rest := options(args, "", "", true)
		for _, o := range opts {
			if o.name == "-s" && len(rest) > 0 {
				return i.text(c, rest[0])
			}
		}
		return i.start(withHoles(rest, "/_"), c)
	case "tmux":
		_, rest := options(args, "cfLSTD", "", true)
		if len(rest) == 0 {
			return nil
		}
		_, rest = options(rest[1:], "censtxyF", "", false)
		return i.all(mild(c), append(rest, field{text: texts(rest)}))
	case "parallel":
		return parallelCommand(i, c, args)
	case "script":
		opts, rest := options(args, "cEBIOTmot", "command echo log-in log-out log-io log-timing logging-format output-limit timing", false)
		for _, o := range opts {
			if o.name == "-c" || o.name == "--command" {
				if err := i.text(c, o.arg); err != nil {
					return err
				}
			}
		}
		if len(rest) > 1 { // BSD: script file command…
			return i.start(rest[1:], c)
		}
		return nil
	case "capsh":
		for n, a := range args {
			if a.text == "--" || a.text == "==" {
				return shellCommand(i, c, args[n:])
			}
		}
		return nil
	}
	return i.fed(c, c.in, nil, syntax.LangBash) // at and batch read text
}

// all inspects each of the words as text for a shell.
func (i *inspector) all(c setting, list []field) error {
	for _, f := range list {
		if err := i.text(c, f); err != nil {
			return err
		}
	}
	return nil
}

// parallelCommand is parallel(1): a command with places for its arguments.
func parallelCommand(i *inspector, c setting, args []field) error {
	_, rest := options(args, "jINLnPSasdEC", "jobs replace max-args max-procs arg-file delay colsep joblog results retries timeout sshlogin delimiter tmpdir workdir env", true)
	end := 0
	for end < len(rest) && !strings.HasPrefix(rest[end].text, ":::") {
		end++
	}
	if end == 0 {
		if end < len(rest) { // parallel ::: 'a' 'b' runs them
			return i.all(c, rest[1:])
		}
		return i.fed(c, c.in, nil, syntax.LangBash)
	}
	c.in = input{given: true, known: true}
	text := texts(withHoles(rest[:end], "{}"))
	if text == hole && end < len(rest) {
		return i.all(c, rest[end+1:])
	}
	return i.text(c, field{text: text})
}

// gitCommand is git(1): settings, aliases and subcommands that run others.
func gitCommand(i *inspector, c setting, words []field) error {
	opts, rest := options(words[1:], "cC", "git-dir work-tree namespace exec-path super-prefix config-env attr-source", true)
	for _, o := range opts {
		if o.name != "-c" {
			continue
		}
		key, value, ok := strings.Cut(o.arg.text, "=")
		if ok && runsSetting(strings.ToLower(key)) {
			value = strings.TrimPrefix(value, "!")
			if err := i.text(mild(c), field{text: value}); err != nil {
				return err
			}
		}
	}
	if len(rest) == 0 {
		return nil
	}
	args := rest[1:]
	switch rest[0].text {
	case "bisect":
		if len(args) > 1 && args[0].text == "run" {
			return i.start(args[1:], c)
		}
	case "submodule":
		_, args = options(args, "", "", true)
		if len(args) > 1 && args[0].text == "foreach" {
			_, args = options(args[1:], "", "", true)
			return i.text(c, field{text: texts(args)})
		}
	case "rebase", "difftool", "filter-branch":
		opts, _ := options(args, "x", "exec extcmd tree-filter index-filter msg-filter commit-filter env-filter parent-filter tag-name-filter setup", false)
		for _, o := range opts {
			if o.arg.text != "" && (o.name == "-x" || o.name == "--exec" || o.name == "--extcmd" || strings.HasSuffix(o.name, "-filter") || o.name == "--setup") {
				if err := i.text(c, o.arg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// runsSetting reports whether git runs the value of a setting; see git-config(1).
func runsSetting(key string) bool {
	switch key {
	case "core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass", "core.gitproxy", "sequence.editor", "diff.external",
		"credential.helper", "gpg.program", "sendemail.smtpserver", "uploadpack.packobjectshook", "interactive.difffilter":
		return true
	}
	for _, head := range []string{"alias.", "pager."} {
		if strings.HasPrefix(key, head) {
			return true
		}
	}
	for _, tail := range []string{".textconv", ".clean", ".smudge", ".process", ".cmd", ".helper", ".program", ".command", ".driver", ".editor"} {
		if strings.HasSuffix(key, tail) {
			return true
		}
	}
	return false
}

// optionCommand is the programs that an option, or one word, makes start another.
func optionCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	args := words[1:]
	run := func(f field) error { return i.text(mild(c), f) }
	var short, long, names string
	switch base {
	case "tar", "gtar", "bsdtar":
		short, long, names = "IFfCTXgHbVKN", "use-compress-program to-command checkpoint-action rsh-command info-script new-volume-script file directory",
			" -I --use-compress-program --to-command --rsh-command --info-script --new-volume-script -F "
	case "rsync":
		short, long, names = "eBTfM", "rsh rsync-path", " -e --rsh --rsync-path "
	case "ssh", "scp", "sftp":
		short, long, names = "oBbcDEeFIiJLlmOpQRSWw", "", " -S "
	case "split":
		short, long, names = "abClntn", "filter", " --filter "
	case "sort":
		short, long, names = "kotST", "compress-program", " --compress-program "
	case "zip":
		short, long, names = "TTtbnixP", "unzip-command", " -TT --unzip-command "
	case "start-stop-daemon":
		short, long, names = "axpnucgdsPIkR", "exec pidfile name user chuid group chdir", " -a -x --startas --exec "
	case "nodemon":
		short, long, names = "xewid", "exec ext watch ignore", " -x --exec "
	case "make", "gmake":
		for _, a := range args {
			name, value, ok := strings.Cut(a.text, "=")
			switch {
			case ok && strings.TrimSuffix(name, ":") == "SHELL":
				if err := run(field{text: value}); err != nil {
					return err
				}
			case ok && name == "--eval":
				for _, part := range strings.Split(value, "$(shell ")[1:] {
					text, _, _ := strings.Cut(part, ")")
					if err := run(field{text: text}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	case "go":
		for n, a := range args {
			name, value, ok := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
			if !ok && n+1 < len(args) {
				value = args[n+1].text
			}
			if a.option() && (name == "exec" || name == "toolexec" || name == "vettool") {
				if err := run(field{text: value}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	opts, _ := options(args, short, long, false)
	for _, o := range opts {
		switch {
		case strings.Contains(names, " "+o.name+" "):
			if err := run(o.arg); err != nil {
				return err
			}
		case o.name == "--checkpoint-action":
			if text, ok := strings.CutPrefix(o.arg.text, "exec="); ok {
				if err := run(field{text: text}); err != nil {
					return err
				}
			}
		case o.name == "-o" && (base == "ssh" || base == "scp" || base == "sftp"):
			// Blanks, or one "=" with or without them; see ssh_config(5).
			key := o.arg.text[:max(0, strings.IndexAny(o.arg.text, " \t="))]
			switch strings.ToLower(key) {
			case "proxycommand", "localcommand", "knownhostscommand":
				if err := run(field{text: strings.TrimLeft(o.arg.text[len(key):], " \t=")}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nodePackages is npx(1) and its like.
func nodePackages(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	args := words[1:]
	if base != "npx" && base != "bunx" {
		_, args = options(args, "Cw", "prefix dir workspace filter", true)
		if len(args) == 0 {
			return nil
		}
		switch args[0].text {
		case "exec", "x", "dlx":
			args = args[1:]
		default:
			return nil // run: a script of the project, whatever its name
		}
	}
	opts, rest := options(args, "cpw", "call package workspace", true)
	for _, o := range opts {
		if o.name == "-c" || o.name == "--call" {
			return i.text(c, o.arg)
		}
	}
	return i.start(rest, c)
}

// toolCommand is nix and cmake: a command stands behind one of their options.
func toolCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	for n := 1; n+1 < len(words); n++ {
		behind := words[n+1:]
		switch words[n].text {
		case "--run", "--command", "-c":
			if base == "nix-shell" {
				return i.text(c, behind[0])
			}
			if base == "nix" {
				return i.start(behind, c)
			}
		case "-E":
			switch {
			case base != "cmake":
			case behind[0].text == "env":
				return envCommand(i, c, behind)
			case behind[0].text == "time":
				return i.start(behind[1:], c)
			}
		}
	}
	return nil
}
