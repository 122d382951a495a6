package daemon

import (
	"context"
	"errors"

	"passepartout/internal/sexp"
	"passepartout/internal/skill"
)

// answerSkills is what each skill has done since it was loaded, and what is wrong.
func answerSkills(_ context.Context, d *Daemon, _ asking) (sexp.Plist, error) {
	if d.skills == nil {
		return sexp.Plist{}, errNoSkills
	}
	set := d.skills.Set()
	var rows, problems []sexp.Value
	for _, k := range set.Skills {
		u := k.Usage()
		rows = append(rows, sexp.P(
			sexp.Keyword("NAME"), k.Name, sexp.Keyword("DIGEST"), k.Digest.String(), sexp.Keyword("CALLS"), int(u.Calls), sexp.Keyword("FAILURES"), int(u.Failures),
			sexp.Keyword("STEPS"), int(u.Steps), sexp.Keyword("QUARANTINED"), u.Quarantined, sexp.Keyword("LAST-FAILURE"), u.LastFailure).List())
	}
	for _, p := range set.Problems {
		problems = append(problems, sexp.String(p.Error()))
	}
	return sexp.P(sexp.Keyword("SKILLS"), sexp.NewList(rows...), sexp.Keyword("PROBLEMS"), sexp.NewList(problems...)), nil
}

var errNoSkills = errors.New("this daemon loads no skills")

// answerEval evaluates forms in a jail, without any capability: those of a skill's
// own package when it is named. Nothing the forms define outlives the answer.
func answerEval(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	if d.skills == nil {
		return sexp.Plist{}, errNoSkills
	}
	p := a.message.Payload
	code := p.Text("CODE")
	if code == "" {
		code = p.Text("TEXT")
	}
	got, err := d.skills.Set().Eval(ctx, p.Text("SKILL"), code)
	if err != nil && !errors.Is(err, skill.ErrForm) {
		return sexp.Plist{}, err
	}
	out := sexp.P(sexp.Keyword("VALUES"), sexp.Strings(got.Values), sexp.Keyword("OUTPUT"), got.Output)
	if err != nil {
		out = out.With("ERROR", sexp.String(err.Error()))
	}
	return out, nil
}
