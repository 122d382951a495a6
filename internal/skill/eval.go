package skill

import (
	"context"
	"errors"
	"fmt"

	"passepartout/internal/lisp"
)

// An Evaluation is what forms came to.
type Evaluation struct {
	Values []string // of the last form, printed
	Output string   // what was written on the way
}

// ErrForm means that the forms themselves failed, not the asking.
var ErrForm = errors.New("in the form")

// Eval evaluates forms in a throw-away thread without capabilities: in the package
// of a skill, or of the user when none is named.
func (s *Set) Eval(ctx context.Context, name, code string) (Evaluation, error) {
	var out Evaluation
	if err := ctx.Err(); err != nil {
		return out, err
	}
	th, err := s.Thread(name, workBudget)
	if err != nil {
		return out, err
	}
	values, err := th.EvalString("", code)
	out.Output = th.Output()
	for _, v := range values {
		text, perr := th.Print(v)
		if err == nil {
			err = perr
		}
		out.Values = append(out.Values, text)
	}
	if err != nil {
		return out, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return out, nil
}

// Rehearse is a run in which a skill is as in its own tests: the memex is empty, ids
// are counted, what it injects goes nowhere.
func (s *Set) Rehearse(name string, b lisp.Budget) (*lisp.Thread, error) {
	th, err := s.Thread(name, b)
	if err != nil {
		return nil, err
	}
	_, err = th.EvalString("", "(setq passepartout::*testing* t)")
	return th, err
}

// Thread is a run over the image of a skill, in its package, or over the one all
// jails start from when name is empty. It has no capabilities.
func (s *Set) Thread(name string, b lisp.Budget) (*lisp.Thread, error) {
	if s.jail == nil {
		return nil, errors.New("there is no jail here")
	}
	img, err := s.jail.image()
	if err != nil {
		return nil, err
	}
	pkg := "COMMON-LISP-USER"
	if name != "" {
		k, ok := s.Find(name)
		if !ok {
			return nil, fmt.Errorf("there is no skill %s", name)
		}
		img, pkg = k.image, packageOf(name)
	}
	th := img.Thread(b)
	th.Drop(allCaps)
	_, err = th.EvalString("", fmt.Sprintf("(in-package %q)", pkg))
	return th, err
}
