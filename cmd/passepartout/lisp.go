package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// lispBudget is what one form typed by a person may use: seconds of time and
// some hundred megabytes.
var lispBudget = lisp.Budget{Steps: 500_000_000, Cells: 10_000_000, Depth: 20_000, Output: 4 << 20}

// lispCommand runs the skill language: from files, from -e, or in a REPL.
func (a *app) lispCommand() *cobra.Command {
	var forms []string
	var in string
	cmd := &cobra.Command{
		Use:   "lisp [-e FORM]… [FILE…]",
		Short: "Run the skill language, from files, forms or a prompt",
		Long: `Run the jailed Common Lisp that skills are written in.

Files are loaded first, then the forms given with -e are evaluated and their values
printed. With neither, forms are read from standard input, at a prompt when it is a
terminal. At the prompt, Tab completes a name, a form may take several lines, :doc NAME
and :apropos PART look things up, :history shows what was typed, :quit leaves. With
--skill the forms see what a skill defines. The program has no files, network or
clock.`,
		Example: `  passepartout lisp -e '(mapcar #'"'"'1+ (list 1 2 3))'
  passepartout lisp helpers.lisp -e '(main)'
  passepartout lisp --skill lisp-tools -e '(lisp-tools-definitions "(defun f ())")'`,
		RunE: func(_ *cobra.Command, files []string) error {
			r, err := newLispRunner(a, in)
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := r.load(f); err != nil {
					return err
				}
			}
			for _, f := range forms {
				if err := r.eval("-e", f); err != nil {
					return err
				}
			}
			if len(files)+len(forms) > 0 {
				return nil
			}
			return r.repl()
		},
	}
	cmd.Flags().StringArrayVarP(&forms, "eval", "e", nil, "evaluate a form and print its values")
	cmd.Flags().StringVar(&in, "skill", "", "run in the package of this skill, as it is loaded")
	return cmd
}

// A lispRunner is one session of the language.
type lispRunner struct {
	a       *app
	th      *lisp.Thread
	history []string
}

func newLispRunner(a *app, skill string) (*lispRunner, error) {
	if skill != "" {
		l, _, _, err := a.skills()
		if err != nil {
			return nil, err
		}
		if _, err := findSkill(l.Set(), skill); err != nil {
			return nil, err
		}
		th, err := l.Set().Rehearse(skill, lispBudget)
		return &lispRunner{a: a, th: th}, err
	}
	img, err := lisp.New(nil)
	if err != nil {
		return nil, fmt.Errorf("lisp: %w", err)
	}
	return &lispRunner{a: a, th: img.Thread(lispBudget)}, nil
}

func (r *lispRunner) load(name string) error {
	src, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "(") {
		return usageError("there is no file %s: want -e before a form", name)
	}
	if err != nil {
		return err
	}
	r.th.Renew(lispBudget)
	_, err = r.th.Load(name, src)
	if _, werr := io.WriteString(r.a.out, r.th.Output()); werr != nil {
		return werr
	}
	return err
}

// lispResult is what --json prints for a form.
type lispResult struct {
	Values []string `json:"values"`
	Output string   `json:"output,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// eval evaluates the forms of src and prints the values of the last.
func (r *lispRunner) eval(file, src string) error {
	r.th.Renew(lispBudget)
	vals, err := r.th.EvalString(file, src)
	res := lispResult{Values: []string{}, Output: r.th.Output()}
	for _, v := range vals {
		s, perr := r.th.Print(v)
		if err == nil {
			err = perr
		}
		res.Values = append(res.Values, s)
	}
	if r.a.json {
		if err != nil {
			res.Error = err.Error()
		}
		if jerr := json.NewEncoder(r.a.out).Encode(res); jerr != nil {
			return jerr
		}
		return err
	}
	out := res.Output
	if err == nil {
		if out != "" && !strings.HasSuffix(out, "\n") {
			out += "\n"
		}
		for _, s := range res.Values {
			out += s + "\n"
		}
	}
	if _, werr := io.WriteString(r.a.out, out); werr != nil {
		return werr
	}
	return err
}

// repl reads forms line by line; a form may take several. Errors are told and
// do not end it, unless the input is no terminal.
func (r *lispRunner) repl() error {
	in, tty := r.lines()
	pending := ""
	for {
		prompt := "* "
		if pending != "" {
			prompt = "  "
		}
		line, err := in(prompt)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if pending == "" && strings.HasPrefix(strings.TrimSpace(line), ":") {
			if done := r.command(strings.Fields(line)); done {
				return nil
			}
			continue
		}
		src := pending + line + "\n"
		err = r.eval("", src)
		var syntax *sexp.SyntaxError
		if errors.As(err, &syntax) && syntax.Incomplete {
			pending = src
			continue
		}
		pending = ""
		if s := strings.TrimSpace(src); s != "" {
			r.history = append(r.history, s)
		}
		if err != nil {
			if !tty {
				return err
			}
			fmt.Fprintln(r.a.errw, err)
		}
	}
	if pending != "" {
		return fmt.Errorf("lisp: the input ends inside a form")
	}
	return nil
}

// command carries out a colon command; true means leave.
func (r *lispRunner) command(words []string) bool {
	arg := strings.Join(words[1:], " ")
	switch words[0] {
	case ":quit", ":q":
		return true
	case ":doc":
		text := r.th.Doc(arg)
		if text == "" {
			text = "nothing is known about " + arg
		}
		fmt.Fprintln(r.a.out, text)
	case ":apropos":
		for _, s := range r.th.Apropos(arg) {
			fmt.Fprintln(r.a.out, s)
		}
	case ":history":
		for i, h := range r.history {
			fmt.Fprintf(r.a.out, "%d: %s\n", i+1, h)
		}
	default:
		if err := r.eval("", strings.Join(words, " ")); err != nil {
			fmt.Fprintln(r.a.errw, err)
		}
	}
	return false
}
