package command

import (
	"fmt"
	"strings"
)

// envCommand is env(1), with its own way to split text.
func envCommand(i *inspector, c setting, words []field) error {
	args := words[1:]
	for round := 0; round < maxNested; round++ {
		opts, rest := options(args, "uCSaP", "unset chdir split-string argv0", true)
		text, split := field{}, false
		for _, o := range opts {
			if o.name == "-S" || o.name == "--split-string" {
				text, split = o.arg, true
			}
		}
		if split {
			// Words behind the option belong to the command that the text starts.
			args = append(splitFields(text.text), rest...)
			continue
		}
		for len(rest) > 0 {
			name, value, ok := strings.Cut(rest[0].text, "=")
			if !ok || rest[0].text[0] == '=' {
				break
			}
			c.scope = c.scope.with(name, field{text: value, sure: rest[0].sure})
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].text == "--" {
			rest = rest[1:]
		}
		return i.start(rest, c)
	}
	return i.undecided(c, "", fmt.Sprintf("env splits text in text more than %d deep: take layers off", maxNested))
}

// xargsCommand is xargs(1): the words from its input follow the command, or
// stand where it says.
func xargsCommand(i *inspector, c setting, words []field) error {
	opts, rest := options(words[1:], "ILnPsdaER", "arg-file delimiter eof max-args max-chars max-procs max-lines process-slot-var", true)
	replace := ""
	for _, o := range opts {
		switch o.name {
		case "-I":
			replace = o.arg.text
		case "-i", "--replace":
			replace = "{}"
			if o.arg.text != "" {
				replace = o.arg.text
			}
		}
	}
	c.in = input{given: true, known: true} // its own input is not the command's
	if replace != "" {
		return i.start(withHoles(rest, replace), c)
	}
	if len(rest) == 0 {
		return nil
	}
	return i.start(append(rest[:len(rest):len(rest)], unknown), c)
}

// withHoles replaces a placeholder by what it stands for: something unknown.
func withHoles(words []field, placeholder string) []field {
	out := make([]field, len(words))
	for n, w := range words {
		out[n] = w
		// What is a hole already stays one, whatever its name holds.
		parts := strings.Split(w.text, hole)
		found := 0
		for _, part := range parts {
			found += strings.Count(part, placeholder)
		}
		switch {
		case found == 0:
		case len(w.text)+found*len(hole) > maxText:
			out[n] = unknown
		default:
			for p := range parts {
				parts[p] = strings.ReplaceAll(parts[p], placeholder, hole)
			}
			out[n] = field{text: strings.Join(parts, hole)}
		}
	}
	return out
}

// findCommand is find(1) and fd(1): commands stand between their options.
func findCommand(i *inspector, c setting, words []field) error {
	for n := 1; n < len(words); n++ {
		switch words[n].text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		end := n + 1
		for end < len(words) && words[end].text != ";" && !(words[end].text == "+" && words[end-1].text == "{}") {
			end++
		}
		if err := i.start(withHoles(words[n+1:end], "{}"), c); err != nil {
			return err
		}
		n = end
	}
	return nil
}
