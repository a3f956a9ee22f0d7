package command

import "strings"

// language is what a one-liner is written in, as far as reading it needs.
type language struct {
	code  string // options whose argument is code, letters
	long  string // the same, long
	short string // other options that take an argument
	quote string // characters that start a string
	ticks bool   // `…` runs its text
	hash  bool   // # starts a comment; else //
	needs string // what code must hold before exec and run mean processes; "" nothing
}

func interpreter(base string) (language, bool) {
	switch base {
	case "python", "pypy", "ipython", "micropython":
		return language{code: "c", short: "WXm", quote: `'"`, hash: true}, true
	case "perl":
		return language{code: "eE", short: "IMmxCDFl0", quote: "'\"`", ticks: true, hash: true}, true
	case "ruby", "jruby", "irb":
		return language{code: "e", short: "IrFEKCT", quote: "'\"`", ticks: true, hash: true}, true
	case "node", "nodejs", "bun", "deno", "tsx", "ts-node":
		return language{code: "ep", long: "eval print", short: "rC", quote: "'\"`", needs: "child_process Bun. Deno."}, true
	case "php":
		return language{code: "rBRE", short: "dcfz", quote: "'\"`", ticks: true, hash: true}, true
	case "lua", "luajit":
		return language{code: "e", short: "l", quote: `'"`}, true
	case "R", "Rscript", "julia", "guile", "racket", "osascript", "groovy", "elixir", "raku", "pwsh", "crystal":
		return language{code: "eEc", long: "eval Command", quote: `'"`, hash: true}, true
	case "erl", "emacs":
		return language{long: "eval execute", quote: `"`}, true
	case "expect", "tclsh":
		return language{code: "c", quote: `"`, hash: true}, true
	}
	return language{}, false
}

// interpreterCommand inspects the one-liners of an interpreter, and code that
// it reads from the command line's own here-document. Script files of other
// languages are left to the kernel.
func interpreterCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	l, ok := interpreter(base)
	if !ok {
		l, _ = interpreter(strings.TrimRight(base, "0123456789.-"))
	}
	args := words[1:]
	if len(args) > 1 && args[0].text == "eval" && base == "deno" {
		return i.code(c, l, args[1].text, nil)
	}
	opts, rest := options(args, l.code+l.short, l.long, true)
	coded := false
	for _, o := range opts {
		name := strings.TrimLeft(o.name, "-")
		if strings.HasPrefix(o.name, "--") && takes(l.long, name) || !strings.HasPrefix(o.name, "--") && strings.Contains(l.code, name) {
			coded = true
			if err := i.code(c, l, o.arg.text, rest); err != nil {
				return err
			}
		}
	}
	// erl -eval, emacs -eval: one dash and a word
	for n, a := range args {
		if a.text == "-eval" && !coded && n+1 < len(args) {
			if err := i.code(c, l, args[n+1].text, nil); err != nil {
				return err
			}
		}
	}
	if !coded && (len(rest) == 0 || rest[0].text == "-" || rest[0].text == "/dev/stdin") && c.in.given && c.in.known {
		return i.code(c, l, c.in.text, nil)
	}
	if !coded && len(rest) > 0 && rest[0].proc != nil && rest[0].proc.known {
		return i.code(c, l, rest[0].proc.text, nil)
	}
	return nil
}

// awkCommand is awk(1): its first operand is a program.
func awkCommand(i *inspector, c setting, words []field) error {
	opts, rest := options(words[1:], "fFveEiW", "file field-separator assign source include exec", true)
	l := language{quote: `"`, hash: true}
	var programs []field
	for _, o := range opts {
		switch o.name {
		case "-f", "--file", "-E", "--exec":
			rest = nil
		case "-e", "--source":
			programs, rest = append(programs, o.arg), nil
		}
	}
	if len(rest) > 0 {
		programs = append(programs, rest[0])
	}
	for _, p := range programs {
		if err := i.code(c, l, p.text, nil); err != nil {
			return err
		}
		// "command" | getline, print | "command"
		tokens := lex(p.text, l)
		for n, t := range tokens {
			if t.kind != stringToken {
				continue
			}
			piped := n > 0 && (tokens[n-1].text == "|" || tokens[n-1].text == "&") || n+1 < len(tokens) && tokens[n+1].text == "|"
			if piped {
				if err := i.text(mild(c), field{text: t.text}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sedCommand is sed(1), whose e command runs its argument and whose e flag
// runs what the substitution made.
func sedCommand(i *inspector, c setting, words []field) error {
	opts, rest := options(words[1:], "efl", "expression file line-length", false)
	var scripts []field
	file := false
	for _, o := range opts {
		switch o.name {
		case "-e", "--expression":
			scripts = append(scripts, o.arg)
		case "-f", "--file":
			file = true
		}
	}
	if len(scripts) == 0 && !file && len(rest) > 0 {
		scripts = rest[:1]
	}
	for _, s := range scripts {
		for _, line := range strings.FieldsFunc(s.text, func(r rune) bool { return r == '\n' || r == ';' }) {
			line = strings.TrimLeft(line, "0123456789$,!{ \t")
			text := ""
			switch {
			case strings.HasPrefix(line, "e "):
				text = line[2:]
			case len(line) > 3 && line[0] == 's':
				parts := strings.Split(line[2:], line[1:2])
				if len(parts) == 3 && strings.Contains(parts[2], "e") {
					text = parts[1]
				}
			}
			if text != "" {
				if err := i.text(mild(c), field{text: text}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// editorCommand is vi and gdb, whose commands may call a shell, and gdb
// --args, which starts the program that it is given.
func editorCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	for n := 1; n < len(words); n++ {
		t := words[n].text
		text := ""
		switch {
		case base == "gdb" && (t == "--args" || t == "-args"):
			_, rest := options(words[n+1:], "xps", "command pid symbols", true)
			return i.start(rest, c)
		case (t == "-c" || t == "--cmd" || t == "-ex" || t == "-iex" || t == "--eval-command") && n+1 < len(words):
			n++
			text = words[n].text
		case strings.HasPrefix(t, "+") && base != "gdb":
			text = t[1:]
		default:
			continue
		}
		text = strings.TrimLeft(text, ": ")
		run, ok := strings.CutPrefix(text, "!")
		for _, head := range []string{"silent !", "sil !", "r !", "r!", "read !", "w !", "shell ", "%!", "term ", "terminal "} {
			if !ok {
				run, ok = strings.CutPrefix(text, head)
			}
		}
		if ok {
			if err := i.text(mild(c), field{text: run}); err != nil {
				return err
			}
		} else if strings.Contains(text, "system(") {
			if err := i.code(c, language{quote: `'"`}, text, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// code inspects a one-liner. It is no parser of six languages: it finds the
// calls that start processes and reads the strings in them. What they compute
// is left to the kernel.
func (i *inspector) code(c setting, l language, text string, args []field) error {
	if err := i.step(c); err != nil {
		return passed(err)
	}
	if len(text) > maxCode || !i.mentions(text, args) {
		return nil
	}
	c.plain, c.lenient = true, true
	tokens := lex(text, l)
	processes := l.needs == ""
	for need := range strings.FieldsSeq(l.needs) {
		processes = processes || strings.Contains(text, need)
	}
	if !processes {
		return nil
	}
	dynamic := false
	for n, t := range tokens {
		switch {
		case t.kind == tickToken && l.ticks:
			if err := i.text(c, field{text: t.text}); err != nil {
				return err
			}
		case t.kind == wordToken && starts(t.text, text, l):
			call := arguments(tokens[n+1:])
			dynamic = dynamic || len(call) == 0 || !call[0].sure
			if err := i.called(c, l, t.text, call); err != nil {
				return err
			}
		}
	}
	if !dynamic {
		return nil
	}
	// What is started comes from a variable or an argument: any string or
	// argument that is a denied program's name may be it.
	for _, t := range tokens {
		if t.kind == stringToken {
			name, _, _ := strings.Cut(strings.TrimSpace(t.text), " ")
			if w, ok := i.denied(name); ok && name != "" {
				return i.deny(w.Text, w.From, "as the string "+excerpt(t.text)+" in code that starts programs")
			}
		}
	}
	return i.start(args, c)
}

// mentions is the quick answer for code without any denied name in it.
func (i *inspector) mentions(text string, args []field) bool {
	for _, w := range i.o.Denied {
		name := baseName(w.Text)
		// Parts of the name may be written apart or escaped.
		if strings.Contains(text, name) {
			return true
		}
		for _, a := range args {
			if strings.Contains(a.text, name) {
				return true
			}
		}
	}
	return strings.ContainsAny(text, "+.\\") || len(i.o.Programs) > 0
}

// called inspects one call that starts a process.
func (i *inspector) called(c setting, l language, name string, call []field) error {
	if len(call) == 0 {
		return nil
	}
	if name == "exec" && l.code == "c" { // Python's own: its argument is code
		return i.code(c, l, call[0].text, nil)
	}
	if name == "open" {
		for n, f := range call {
			t := strings.TrimSpace(f.text)
			switch {
			case (t == "-|" || t == "|-") && n+1 < len(call):
				return i.start(call[n+1:], c)
			case strings.HasPrefix(t, "|") || strings.HasSuffix(t, "|"):
				return i.text(c, field{text: strings.Trim(t, "|")})
			}
		}
		return nil
	}
	if call[0].sure {
		if err := i.text(c, field{text: call[0].text}); err != nil {
			return err
		}
	}
	for n := 0; n < min(3, len(call)); n++ {
		if call[n].sure && (n == 0 || again(name)) {
			if err := i.start(call[n:], c); err != nil {
				return err
			}
		}
	}
	return nil
}

// again reports whether a call names the program a second time, as its first
// argument, or has something before it.
func again(name string) bool {
	return strings.HasPrefix(name, "exec") || strings.HasPrefix(name, "spawn") || strings.HasPrefix(name, "posix_spawn")
}

// starts reports whether a word in code starts a process.
func starts(word, text string, l language) bool {
	switch word {
	case "system", "popen", "Popen", "popen2", "popen3", "popen4", "shell_exec", "passthru", "proc_open", "pcntl_exec", "qx",
		"execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe",
		"spawn", "spawnv", "spawnve", "spawnvp", "spawnvpe", "spawnl", "spawnle", "spawnlp", "spawnlpe", "posix_spawn", "posix_spawnp",
		"check_call", "check_output", "getoutput", "getstatusoutput", "create_subprocess_exec", "create_subprocess_shell",
		"execSync", "execFile", "execFileSync", "spawnSync", "capture2", "capture2e", "capture3", "popen2e", "pipeline", "open3",
		"exec", "open":
		return true
	case "run", "call":
		return strings.Contains(text, "subprocess") || strings.Contains(text, "pty") || l.needs == "" && l.code == "eEc"
	case "execute": // Lua
		return strings.Contains(text, "os.execute")
	case "cmd": // Erlang
		return strings.Contains(text, "os:cmd")
	case "Command": // Deno
		return l.needs != ""
	case "script": // AppleScript: do shell script "…"
		return strings.Contains(text, "do shell script")
	case "command", "process":
		return l.needs == "" && l.long != ""
	}
	return strings.HasPrefix(word, "shell-command") || strings.HasPrefix(word, "call-process") || strings.HasPrefix(word, "start-process")
}
