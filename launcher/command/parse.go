package command

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"mvdan.cc/sh/v3/syntax"
)

// parse reads shell text. Bash is tried first because most text is written for
// it; what it refuses may still be another shell's.
func (i *inspector) parse(text string, lang syntax.LangVariant) (*syntax.File, error) {
	if i.bytes += len(text); i.bytes > maxText {
		return nil, fmt.Errorf("with what is around it, it is longer than %d KiB: put it into a script file", maxText>>10)
	}
	if i.texts++; i.texts > maxTexts {
		return nil, fmt.Errorf("it is one of more than %d: put them into a script file", maxTexts)
	}
	if err := bounded(text); err != nil {
		return nil, err
	}
	f, err := i.parseAs(text, lang)
	if err == nil || errors.Is(err, errDeep) {
		return f, err
	}
	for _, other := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX, syntax.LangMirBSDKorn} {
		if other == lang {
			continue
		}
		if f, again := i.parseAs(text, other); again == nil {
			return f, nil
		}
	}
	return nil, err
}

func (i *inspector) parseAs(text string, lang syntax.LangVariant) (*syntax.File, error) {
	p := i.parsers[lang]
	if p == nil {
		if i.parsers == nil {
			i.parsers = map[syntax.LangVariant]*syntax.Parser{}
		}
		p = syntax.NewParser(syntax.Variant(lang))
		i.parsers[lang] = p
	}
	return p.Parse(&watched{text: text}, "")
}

// bounded refuses text that would take long to look through.
func bounded(text string) error {
	if len(text) < maxMarks {
		return nil
	}
	marks := 0
	for n := 0; n < len(text); n++ {
		switch text[n] {
		case '|', '&', ';', '\n', '(':
			marks++
		}
	}
	if marks > maxMarks {
		return errors.New("it holds too many commands: put them into a script file")
	}
	return nil
}

var errDeep = errors.New("its parts are nested too deeply: take layers off")

// watched hands text to the parser in pieces and looks at each how deep
// the parser has gone: it recurses, and running out of stack ends a Go program
// without a chance to say why.
type watched struct {
	text string
	at   int
}

func (r *watched) Read(p []byte) (int, error) {
	if r.at >= len(r.text) {
		return 0, io.EOF
	}
	var pc [1]uintptr
	if runtime.Callers(maxFrames, pc[:]) > 0 {
		return 0, errDeep
	}
	n := copy(p[:min(len(p), 1024)], r.text[r.at:])
	r.at += n
	return n, nil
}
