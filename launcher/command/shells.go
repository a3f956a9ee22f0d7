package command

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// shellCommand inspects a shell that is started as a program.
func shellCommand(i *inspector, c setting, words []field) error {
	base, _ := words[0].base()
	lang := shellLanguage(base)
	text, stdin := false, false
	n := 1
scan:
	for ; n < len(words); n++ {
		w := words[n]
		switch t := w.text; {
		case t == "--" || t == "-":
			n++
			break scan
		case strings.HasPrefix(t, "--"):
			name, value, has := strings.Cut(t[2:], "=")
			switch {
			case name == "rcfile" || name == "init-file" || name == "emulate":
				n++
			case name == "command" || name == "init-command" || name == "Command":
				if !has && n+1 < len(words) {
					n++
					value = words[n].text
				}
				if err := i.shellText(c, value, []field{words[0]}, lang); err != nil {
					return err
				}
			}
		case len(t) > 1 && (t[0] == '-' || t[0] == '+') && !strings.HasPrefix(t, hole):
			for at, letter := range t[1:] {
				switch {
				case letter == 'c' && t[0] == '-':
					text = true
				case letter == 's':
					stdin = true
				case letter == 'C' && base == "fish":
					if n+1 < len(words) && at+2 == len(t) {
						n++
						if err := i.shellText(c, words[n].text, []field{words[0]}, lang); err != nil {
							return err
						}
					}
				case letter == 'o' || letter == 'O':
					n++
				}
			}
		default:
			break scan
		}
	}
	rest := words[min(n, len(words)):]
	switch {
	case text:
		if len(rest) == 0 {
			return nil
		}
		params := rest[1:]
		if len(params) == 0 {
			params = []field{words[0]}
		}
		return i.shellText(c, rest[0].text, params, lang)
	case stdin || len(rest) == 0:
		return i.fed(c, c.in, append([]field{words[0]}, rest...), lang)
	}
	return i.read(c, rest[0], rest, lang)
}

// shellLanguage is what the text of a shell is read as first.
func shellLanguage(base string) syntax.LangVariant {
	if base == "zsh" {
		return syntax.LangZsh
	}
	return syntax.LangBash
}

// option is one option of a command line with its argument.
type option struct {
	name string // "-c" or "--command"
	arg  field
}

// options reads a command line in the way of getopt_long(3): short is the
// letters and long the names that take an argument. With stop the first
// operand ends the options, as for all commands that start another.
func options(words []field, short, long string, stop bool) (opts []option, rest []field) {
	for n := 0; n < len(words); n++ {
		w := words[n]
		t := w.text
		switch {
		case t == "--":
			if len(rest) == 0 {
				return opts, words[n+1:]
			}
			return opts, append(rest, words[n+1:]...)
		case strings.HasPrefix(t, "--"):
			name, value, has := strings.Cut(t, "=")
			o := option{name: name}
			if has {
				o.arg = field{text: value, sure: w.sure}
			} else if takes(long, name[2:]) && n+1 < len(words) {
				n++
				o.arg = words[n]
			}
			opts = append(opts, o)
		case len(t) > 1 && t[0] == '-':
			for at := 1; at < len(t); at++ {
				o := option{name: "-" + t[at:at+1]}
				if strings.IndexByte(short, t[at]) >= 0 {
					if at+1 < len(t) {
						o.arg = field{text: t[at+1:], sure: w.sure}
					} else if n+1 < len(words) {
						n++
						o.arg = words[n]
					}
					at = len(t)
				}
				opts = append(opts, o)
			}
		default:
			if stop {
				return opts, words[n:]
			}
			rest = append(rest, w)
		}
	}
	return opts, rest
}

// takes reports whether a long option, perhaps shortened, is in the list.
func takes(long, name string) bool {
	for long != "" {
		var one string
		one, long, _ = strings.Cut(long, " ")
		if one == name || len(name) > 2 && strings.HasPrefix(one, name) {
			return true
		}
	}
	return false
}
