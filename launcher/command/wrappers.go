package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type handlerFunc func(*inspector, setting, []field) error

// handler is what knows how a program starts others; nil for most. A switch
// and not a map: it costs nothing at the start of kgate.
func handler(base string) handlerFunc {
	if h := named(base); h != nil {
		return h
	}
	if strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld-musl") || strings.HasPrefix(base, "ld64.so") || strings.HasPrefix(base, "ld.so") {
		return loader
	}
	// python3.12, perl5.36.0, lua5.4
	if short := strings.TrimRight(base, "0123456789.-"); short != base && short != "" {
		return named(short)
	}
	return nil
}

func named(base string) handlerFunc {
	switch base {
	case "sh", "bash", "rbash", "dash", "ash", "ksh", "ksh93", "mksh", "lksh", "pdksh", "oksh", "zsh", "yash", "posh", "osh", "hush",
		"fish", "csh", "tcsh":
		return shellCommand
	case "env":
		return envCommand
	case "command": // some systems have it as a file, too
		return func(i *inspector, c setting, words []field) error {
			opts, rest := options(words[1:], "", "", true)
			if asks(opts) {
				return nil
			}
			return i.start(rest, c)
		}
	case "xargs":
		return xargsCommand
	case "find", "gfind", "bfs", "fd", "fdfind":
		return findCommand
	case "busybox", "toybox", "busybox.static", "busybox-static", "busybox.nosuid", "busybox.suid":
		return func(i *inspector, c setting, words []field) error {
			if len(words) > 1 && words[1].option() {
				return nil
			}
			return i.start(words[1:], c)
		}
	case "sudo", "doas":
		return sudoCommand
	case "su", "runuser", "sg", "newgrp":
		return suCommand
	case "flock":
		return flockCommand
	case "watch", "hyperfine", "concurrently", "entr", "tmux", "parallel", "script", "capsh", "at", "batch":
		return textCommand
	case "git":
		return gitCommand
	case "tar", "gtar", "bsdtar", "rsync", "ssh", "scp", "sftp", "split", "sort", "make", "gmake", "go", "zip", "start-stop-daemon", "nodemon":
		return optionCommand
	case "npx", "npm", "pnpm", "yarn", "bunx":
		return nodePackages
	case "nix-shell", "nix", "cmake":
		return toolCommand
	case "awk", "gawk", "mawk", "nawk", "original-awk":
		return awkCommand
	case "sed", "gsed":
		return sedCommand
	case "vi", "vim", "nvim", "ex", "view", "gvim", "vim.basic", "vim.tiny", "vim.nox", "gdb":
		return editorCommand
	}
	if _, ok := wrapperSpec(base); ok {
		return wrapperCommand
	}
	if _, ok := interpreter(base); ok {
		return interpreterCommand
	}
	return nil
}

// spec is how the options of a plain wrapper are read.
type spec struct {
	short string // options that take an argument
	long  string // the same, long, separated by spaces
	skip  int    // operands before the command
	words string // subcommands that stand before the command; one of them must
}

// wrapperSpec is the programs that start the command that their operands are;
// see the manual page of each.
func wrapperSpec(base string) (spec, bool) {
	switch base {
	case "timeout", "gtimeout":
		return spec{"ks", "kill-after signal", 1, ""}, true
	case "nice", "gnice":
		return spec{"n", "adjustment", 0, ""}, true
	case "ionice":
		return spec{"cnpPu", "class classdata pid pgid uid", 0, ""}, true
	case "stdbuf", "gstdbuf":
		return spec{"ioe", "input output error", 0, ""}, true
	case "time", "gtime":
		return spec{"fo", "format output", 0, ""}, true
	case "nohup", "setsid", "eatmydata", "catchsegv", "torsocks", "tsocks", "ccache", "sccache", "distcc", "nocache", "unbuffer", "firejail",
		"setarch", "linux32", "linux64", "i386", "x86_64", "valgrind", "catatonit", "pkexec":
		return spec{"", "user", 0, ""}, true
	case "caffeinate", "tini", "dumb-init":
		return spec{"twper", "rewrite", 0, ""}, true
	case "fakeroot":
		return spec{"lsib", "lib faked", 0, ""}, true
	case "dbus-run-session":
		return spec{"", "config-file dbus-daemon", 0, ""}, true
	case "xvfb-run":
		return spec{"nfsepw", "server-num auth-file server-args error-file xauth-protocol wait", 0, ""}, true
	case "rlwrap":
		return spec{"bCDfFgHlmMopqsSwzP", "", 0, ""}, true
	case "ssh-agent":
		return spec{"atPEO", "", 0, ""}, true
	case "daemonize":
		return spec{"aceoplEu", "", 0, ""}, true
	case "proxychains", "proxychains4":
		return spec{"f", "", 0, ""}, true
	case "chpst", "softlimit":
		return spec{"uUe/nlLmdopfcrtbas", "", 0, ""}, true
	case "setlock":
		return spec{"", "", 1, ""}, true
	case "chroot":
		return spec{"ug", "", 1, ""}, true
	case "unshare":
		return spec{"SGRw", "setuid setgid root wd map-user map-group map-users map-groups propagation setgroups", 0, ""}, true
	case "nsenter":
		return spec{"tSG", "target setuid setgid", 0, ""}, true
	case "taskset", "faketime", "envdir", "setuidgid", "gosu", "su-exec":
		return spec{"f", "", 1, ""}, true
	case "chrt":
		return spec{"TPD", "sched-runtime sched-period sched-deadline", 1, ""}, true
	case "numactl":
		return spec{"mNClpPiw", "membind cpunodebind physcpubind preferred interleave", 0, ""}, true
	case "setpriv":
		return spec{"", "ruid euid rgid egid reuid regid groups inh-caps ambient-caps bounding-set securebits pdeathsig selinux-label apparmor-profile", 0, ""}, true
	case "runcon":
		return spec{"urtl", "user role type range", 0, ""}, true
	case "prlimit", "cpulimit":
		return spec{"plci", "pid limit", 0, ""}, true
	case "strace":
		return spec{"aeEIoOpPsSuUbX", "attach user output trace env", 0, ""}, true
	case "ltrace":
		return spec{"aADeFlnopsuwx", "output library", 0, ""}, true
	case "systemd-run":
		return spec{"pHMuEtPd", "unit property description slice uid gid nice working-directory setenv host machine service-type on-active on-boot on-calendar", 0, ""}, true
	case "systemd-inhibit":
		return spec{"", "what who why mode", 0, ""}, true
	case "perf":
		return spec{"eopCFrIgcGt", "event output cpu freq count", 0, "stat record trace"}, true
	case "poetry", "pipenv", "pdm", "hatch", "rye", "dotenv", "doppler", "op", "foreman", "uv", "conda", "mamba", "micromamba", "pixi":
		return spec{"neCpfE", "name env-file prefix with python project directory extra group", 0, "run"}, true
	case "bundle", "bundler", "asdf", "pyenv", "rbenv", "nodenv", "goenv", "volta":
		return spec{"", "", 0, "exec"}, true
	case "mise", "rtx":
		return spec{"cC", "command", 0, "exec x"}, true
	case "direnv":
		return spec{"", "", 1, "exec"}, true
	case "aws-vault":
		return spec{"d", "duration", 1, "exec"}, true
	case "bwrap":
		return spec{"", bwrapOne, 0, ""}, true
	case "screen":
		return spec{"cehpsStT", "", 0, ""}, true
	case "watchexec":
		return spec{"ewifdsE", "exts watch ignore filter debounce signal env", 0, ""}, true
	}
	return spec{}, false
}

const bwrapOne = "args chdir unsetenv proc dev tmpfs mqueue dir remount-ro lock-file sync-fd uid gid hostname seccomp add-seccomp-fd block-fd userns-block-fd info-fd json-status-fd exec-label file-label cap-add cap-drop perms size userns userns2 pidns argv0"

func wrapperCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	s, ok := wrapperSpec(base)
	if !ok {
		s, _ = wrapperSpec(strings.TrimRight(base, "0123456789.-"))
	}
	args := words[1:]
	if base == "bwrap" {
		return i.start(bwrapOperands(args), c)
	}
	if s.words != "" {
		_, args = options(args, s.short, s.long, true)
		if len(args) == 0 || !takes(s.words, args[0].text) {
			return nil
		}
		args = args[1:]
	}
	_, rest := options(args, s.short, s.long, true)
	if s.skip > len(rest) {
		return nil
	}
	rest = rest[s.skip:]
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	switch base {
	case "setarch": // an architecture may stand first
		if len(rest) > 0 && rest[0].sure && strings.IndexByte(rest[0].text, '/') < 0 {
			if f := i.find(rest[0].text); f == nil || len(rest) > 1 && rest[1].option() {
				_, rest = options(rest[1:], "", "", true)
			}
		}
	case "mise", "rtx": // tools@version stand before --
		for n, w := range rest {
			if w.text == "--" {
				rest = rest[n+1:]
				break
			}
		}
	}
	return i.start(rest, c)
}

// bwrapOperands are the words behind bubblewrap's own options, of which some
// take two arguments.
func bwrapOperands(words []field) []field {
	for n := 0; n < len(words); n++ {
		t := words[n].text
		name, ok := strings.CutPrefix(t, "--")
		switch {
		case t == "--":
			return words[n+1:]
		case !ok:
			return words[n:]
		case takes(bwrapOne, name) && strings.Contains(" "+bwrapOne+" ", " "+name+" "):
			n++
		case strings.Contains(name, "bind"), name == "setenv", name == "symlink", name == "file", name == "chmod", name == "overlay":
			n += 2
		}
	}
	return nil
}

// sudoCommand is sudo(8) and doas(1).
func sudoCommand(i *inspector, c setting, words []field) error {
	_, rest := options(words[1:], "ugpCchrRtTUDa", "user group prompt close-from host role type chroot chdir command-timeout other-user login-class", true)
	for len(rest) > 0 {
		name, value, ok := strings.Cut(rest[0].text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		c.scope = c.scope.with(name, field{text: value, sure: rest[0].sure})
		rest = rest[1:]
	}
	return i.start(rest, c)
}

// suCommand is su(1), runuser(1) and sg(1): text for a shell, or a command.
func suCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	opts, rest := options(words[1:], "cgGsuTw", "command session-command group supp-group shell user whitelist-environment", false)
	user := false
	for _, o := range opts {
		switch o.name {
		case "-c", "--command", "--session-command":
			if err := i.shellText(c, o.arg.text, []field{known("sh")}, syntax.LangBash); err != nil {
				return err
			}
		case "-u", "--user":
			user = true
		case "-s", "--shell":
			if err := i.start([]field{o.arg}, c); err != nil {
				return err
			}
		}
	}
	switch {
	case user && base == "runuser":
		_, rest = options(words[1:], "cgGsuTw", "command session-command group supp-group shell user whitelist-environment", true)
		return i.start(rest, c)
	case base == "sg" && len(rest) > 1:
		return i.shellText(c, texts(rest[1:]), []field{known("sh")}, syntax.LangBash)
	}
	return nil
}

// flockCommand is flock(1): a file, then a command or text for a shell.
func flockCommand(i *inspector, c setting, words []field) error {
	_, rest := options(words[1:], "wEt", "timeout conflict-exit-code wait", true)
	if len(rest) < 2 {
		return nil
	}
	if rest = rest[1:]; (rest[0].text == "-c" || rest[0].text == "--command") && len(rest) > 1 {
		return i.shellText(c, rest[1].text, []field{known("sh")}, syntax.LangBash)
	}
	if rest[0].text == "--" {
		rest = rest[1:]
	}
	return i.start(rest, c)
}

// loader is the dynamic loader called by hand; see ld.so(8).
func loader(i *inspector, c setting, words []field) error {
	_, rest := options(words[1:], "", "library-path inhibit-rpath audit preload argv0 glibc-hwcaps-prepend glibc-hwcaps-mask", true)
	if len(rest) > 0 && rest[0].sure && !strings.Contains(rest[0].text, "/") {
		rest = append([]field{known("./" + rest[0].text)}, rest[1:]...) // the loader does not search PATH
	}
	return i.start(rest, c)
}
