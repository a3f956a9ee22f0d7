package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/creack/pty"
)

// columns is how wide the terminal is.
const columns = 104

// typed is the session: what a person types in a fresh home, in a project.
var typed = []string{
	"kgate doctor",
	"kgate run -- git status --short",
	"kgate run -- sh -c 'echo alias ls=rm >> ~/.bashrc; cat ~/.ssh/id_ed25519'",
	"kgate run -- curl https://example.org",
	"tail -n 1 ~/.bashrc",
}

// line is a line of the terminal, in pieces of one colour.
type line []piece

type piece struct {
	text  string
	style string // a class of the picture, or ""
}

// session types each command into a terminal of its own and returns all lines.
func session(work string) ([]line, error) {
	home := filepath.Join(work, "home")
	project := filepath.Join(home, "project")
	for file, text := range map[string]string{
		filepath.Join(home, ".bashrc"):            "# my settings\n",
		filepath.Join(home, ".ssh", "id_ed25519"): "not a real key\n",
		filepath.Join(project, "main.go"):         "package main\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	env := append(os.Environ(), "HOME="+home, "PATH="+filepath.Join(work, "bin")+":"+os.Getenv("PATH"), "TERM=xterm-256color",
		"PWD="+project, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1", "SHELL=/bin/sh")
	for _, setup := range []string{"git init -q -b main", "kgate init", "kgate network off"} {
		cmd := exec.Command("sh", "-c", setup)
		cmd.Dir, cmd.Env = project, env
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", setup, err, out)
		}
	}
	var all []line
	for _, command := range typed {
		all = append(all, line{{"~/project $ ", "prompt"}, {command, "typed"}})
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = project, env
		out, err := inTerminal(cmd)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
		out = bytes.ReplaceAll(out, []byte(home), []byte("/home/you"))
		for _, text := range strings.Split(strings.TrimRight(string(out), "\r\n"), "\n") {
			all = append(all, wrap(pieces(text))...)
		}
	}
	return all, nil
}

// inTerminal runs a command in a terminal and returns all that it shows. Its
// status does not matter: the session has a refusal.
func inTerminal(cmd *exec.Cmd) ([]byte, error) {
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 400})
	if err != nil {
		return nil, err
	}
	defer terminal.Close()
	stop := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer stop.Stop()
	var out bytes.Buffer
	io.Copy(&out, terminal) // ends with EIO when the last program has let go of the terminal
	cmd.Wait()
	return out.Bytes(), nil
}

var sgr = regexp.MustCompile("\x1b\\[([0-9;]*)m|\x1b\\[[0-9;?]*[A-Za-z]|\r")

// pieces cuts a line at its changes of colour (ECMA-48, SGR). Everything else
// that drives a terminal is dropped.
func pieces(text string) line {
	var out line
	style := ""
	add := func(s string) {
		if s != "" {
			out = append(out, piece{s, style})
		}
	}
	at := 0
	for _, m := range sgr.FindAllStringSubmatchIndex(text, -1) {
		add(text[at:m[0]])
		at = m[1]
		if m[2] < 0 {
			continue
		}
		for _, n := range strings.Split(text[m[2]:m[3]], ";") {
			switch code, _ := strconv.Atoi(n); code {
			case 0, 39:
				style = ""
			case 31, 91:
				style = "red"
			case 32, 92:
				style = "green"
			case 33, 93:
				style = "yellow"
			case 34, 94, 36, 96:
				style = "blue"
			}
		}
	}
	add(text[at:])
	return out
}

// wrap breaks a line where the terminal would.
func wrap(l line) []line {
	out := []line{nil}
	width := 0
	for _, p := range l {
		runes := []rune(p.text)
		for len(runes) > 0 {
			n := min(len(runes), columns-width)
			out[len(out)-1] = append(out[len(out)-1], piece{string(runes[:n]), p.style})
			runes, width = runes[n:], width+n
			if width == columns && len(runes) > 0 {
				out, width = append(out, nil), 0
			}
		}
	}
	return out
}

// draw makes the picture. It has no script and asks for nothing, and carries the
// session as text, for whoever cannot see it.
func draw(lines []line) []byte {
	const advance, height, margin, bar = 8.4, 19, 16, 34
	w, h := int(math.Ceil(columns*advance))+2*margin, len(lines)*height+bar+margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t">
<title id="t">A terminal: kgate doctor says READY, git status runs in the box, a write to .bashrc and a look at a key do not reach the home, curl is refused.</title>
<style>
text { font: 14px ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dde4; white-space: pre; }
.prompt { fill: #7d8894; } .typed { fill: #ffffff; font-weight: 600; }
.green { fill: #7ee2a0; } .red { fill: #ff9c9c; } .yellow { fill: #f5cb70; } .blue { fill: #8cc2ff; }
</style>
<rect width="100%%" height="100%%" rx="10" fill="#14181d"/>
<circle cx="20" cy="17" r="5.5" fill="#59626c"/><circle cx="38" cy="17" r="5.5" fill="#59626c"/><circle cx="56" cy="17" r="5.5" fill="#59626c"/>
`, w, h, w, h)
	for i, l := range lines {
		fmt.Fprintf(&b, `<text x="%d" y="%d" xml:space="preserve">`, margin, bar+14+i*height)
		column := 0
		for _, p := range l {
			n := len([]rune(p.text))
			fmt.Fprintf(&b, `<tspan x="%.1f"`, margin+float64(column)*advance)
			if p.style != "" {
				fmt.Fprintf(&b, ` class="%s"`, p.style)
			}
			fmt.Fprintf(&b, ` textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</tspan>`, float64(n)*advance, escape(p.text))
			column += n
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
