package gate

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// judgeLisp is check 2 of the dispatcher: Lisp that is to be stored or evaluated
// must read to its end, with nothing evaluated while reading.
func judgeLisp(v *view) Verdict {
	for _, a := range v.args {
		if a.means != proto.Code {
			continue
		}
		if err := readsAsLisp("", a.text, 1); err != nil {
			return unreadable(string(a.name), err)
		}
	}
	name := v.writtenName()
	for _, a := range v.texts(proto.Content) {
		switch strings.ToLower(path.Ext(name)) {
		case ".lisp", ".lsp", ".cl", ".asd":
			if err := readsAsLisp(name, a.text, 1); err != nil {
				return unreadable(string(a.name), err)
			}
		case ".org":
			for _, b := range lispBlocks(a.text) {
				if err := readsAsLisp(name, b.text, b.line); err != nil {
					return unreadable(string(a.name), err)
				}
			}
		}
	}
	return Pass()
}

func unreadable(arg string, err error) Verdict {
	return Verdict{Code: "lisp.unreadable", Reason: fmt.Sprintf("argument :%s: the Lisp does not read: %v", arg, err)}
}

// writtenName is the base name of the file the action writes, "" for none.
func (v *view) writtenName() string {
	for _, p := range v.paths {
		if p.means == proto.WritePath {
			return path.Base(p.abs)
		}
	}
	return ""
}

// readsAsLisp reads src, which begins at a line of the file, to its end.
func readsAsLisp(file, src string, line int) error {
	r := sexp.NewReader([]byte(src), sexp.Options{File: file, Lisp: true})
	for {
		_, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if syntax := (*sexp.SyntaxError)(nil); errors.As(err, &syntax) {
			moved := *syntax
			moved.Line += line - 1
			return &moved
		}
		if err != nil {
			return err
		}
	}
}

// A lispBlock is the text of a source block and the line it begins at.
type lispBlock struct {
	text string
	line int
}

// lispBlocks returns every Lisp source block of an Org text.
func lispBlocks(text string) []lispBlock {
	if !strings.Contains(strings.ToLower(text), "#+begin_src") {
		return nil
	}
	f := org.Parse([]byte(text))
	lines := f.Lines()
	var out []lispBlock
	for _, b := range f.Contents().Blocks {
		lang := strings.ToLower(b.Language)
		if b.Name == "SRC" && (lang == "lisp" || lang == "common-lisp") {
			out = append(out, lispBlock{f.Text(b.Inner), lines.At(b.Inner.Start)})
		}
	}
	return out
}

// judgeReplLint is check 1 of the dispatcher. It only warns: definitions put
// into a note were not tried in the REPL by anybody the gates know of.
func judgeReplLint(v *view) Verdict {
	if strings.ToLower(path.Ext(v.writtenName())) != ".org" {
		return Pass()
	}
	for _, a := range v.texts(proto.Content) {
		if strings.Contains(strings.ToLower(a.text), "(defun ") {
			return Verdict{Decision: Allow, Code: "repl-lint.untried", Reason: "the note defines functions: try them in the REPL first"}
		}
	}
	return Pass()
}
