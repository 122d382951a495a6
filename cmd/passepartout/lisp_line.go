package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// A lineReader returns the next line, io.EOF at the end.
type lineReader func(prompt string) (string, error)

// lines is where forms are read from: an editor with history and completion at a
// terminal, plain lines elsewhere.
func (r *lispRunner) lines() (in lineReader, tty bool) {
	if f, ok := r.a.in.(*os.File); ok && isTerminal(f) && isTerminal(r.a.out) {
		return r.edited(f), true
	}
	sc := bufio.NewScanner(r.a.in)
	sc.Buffer(nil, 16<<20)
	return func(string) (string, error) {
		if sc.Scan() {
			return sc.Text(), nil
		}
		if err := sc.Err(); err != nil {
			return "", err
		}
		return "", io.EOF
	}, isTerminal(r.a.in)
}

// edited reads lines from a terminal, which is raw only while a line is typed.
func (r *lispRunner) edited(f *os.File) lineReader {
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{f, r.a.out}, "")
	editor.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		done, at, choices := r.complete(line, pos)
		if len(choices) > 1 && at == pos {
			fmt.Fprintln(editor, strings.Join(choices[:min(len(choices), maxChoices)], "  "))
		}
		return done, at, true
	}
	fd := int(f.Fd())
	return func(prompt string) (line string, err error) {
		state, err := term.MakeRaw(fd)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, term.Restore(fd, state)) }()
		if w, h, err := term.GetSize(fd); err == nil && w > 0 {
			_ = editor.SetSize(w, h) // only a screen of no width is refused
		}
		editor.SetPrompt(prompt)
		line, err = editor.ReadLine()
		if errors.Is(err, term.ErrPasteIndicator) {
			err = nil
		}
		return line, err
	}
}

// maxChoices is how many completions are shown.
const maxChoices = 40

// complete extends the name before the cursor as far as all names that begin so
// agree, and lists those.
func (r *lispRunner) complete(line string, pos int) (done string, at int, choices []string) {
	start := strings.LastIndexAny(line[:pos], " \t()'`,\"#@") + 1
	word := strings.ToLower(line[start:pos])
	r.th.Renew(lispBudget)
	if word == "" {
		return line, pos, nil
	}
	for _, c := range []string{":doc", ":apropos", ":history", ":quit"} {
		if start == 0 && strings.HasPrefix(c, word) {
			choices = append(choices, c)
		}
	}
	for _, s := range r.th.Apropos(word[strings.LastIndexByte(word, ':')+1:]) {
		name, _, _ := strings.Cut(strings.ToLower(s), " (")
		if pkg, own, ok := strings.Cut(name, ":"); ok && !strings.Contains(word, ":") && (pkg == "common-lisp-user" || strings.HasPrefix(pkg, "passepartout")) {
			name = own // can be typed without its package
		}
		if strings.HasPrefix(name, word) {
			choices = append(choices, name)
		}
	}
	slices.Sort(choices)
	choices = slices.Compact(choices)
	if len(choices) == 0 {
		return line, pos, nil
	}
	common := choices[0]
	for _, c := range choices[1:] {
		for !strings.HasPrefix(c, common) {
			common = common[:len(common)-1]
		}
	}
	if len(choices) == 1 {
		common += " "
	}
	return line[:start] + common + line[pos:], start + len(common), choices
}
