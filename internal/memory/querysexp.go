package memory

import (
	"errors"
	"strings"

	"passepartout/internal/sexp"
)

// maxQueryDepth bounds how deep a query may nest.
const maxQueryDepth = 64

// parseSexp compiles the s-expression form of a query:
// (and (tag "work") (not (todo "DONE")) (deadline < "2026-01-01")).
func (q *Query) parseSexp(text string) (pred, error) {
	r := sexp.NewReader([]byte(text), sexp.Options{Limits: sexp.Limits{Depth: maxQueryDepth}, File: "query"})
	v, err := r.Read()
	if err != nil {
		return nil, &QueryError{Query: q.text, Found: err.Error(), Want: "one s-expression"}
	}
	if rest := strings.TrimSpace(text[r.End().Offset:]); rest != "" {
		return nil, &QueryError{Query: q.text, Found: rest, Want: "nothing after the s-expression"}
	}
	return q.form(v)
}

// operators combine forms; everything else is a term.
var operators = []string{"and", "or", "not"}

func (q *Query) form(v sexp.Value) (pred, error) {
	if s, ok := v.(sexp.String); ok {
		return q.term("text", []string{string(s)})
	}
	l, ok := v.(sexp.List)
	if !ok || l.Len() == 0 || l.Tail() != nil {
		return nil, q.bad(sexp.Print(v), "a form like (tag \"work\")", nil)
	}
	name := strings.ToLower(nameOf(l.At(0)))
	args := l.Items()[1:]
	switch name {
	case "and", "or":
		ps := make([]pred, len(args))
		for i, a := range args {
			var err error
			if ps[i], err = q.form(a); err != nil {
				return nil, err
			}
		}
		if name == "and" {
			return and(ps), nil
		}
		return or(ps), nil
	case "not":
		if len(args) != 1 {
			return nil, q.bad(sexp.Print(v), "(not FORM)", nil)
		}
		p, err := q.form(args[0])
		if err != nil {
			return nil, err
		}
		return not(p), nil
	}
	return q.termForm(name, args)
}

// termForm compiles (key [operator] value).
func (q *Query) termForm(name string, args []sexp.Value) (pred, error) {
	var words []string
	for _, a := range args {
		switch a := a.(type) {
		case sexp.String:
			words = append(words, string(a))
		case sexp.Symbol, sexp.Keyword:
			words = append(words, strings.ToLower(nameOf(a)))
		default:
			words = append(words, sexp.Print(a))
		}
	}
	known := append(append([]string(nil), operators...), terms...)
	switch {
	case name == "prop" && len(args) == 3:
		if _, text := args[2].(sexp.String); text {
			words[2] = `"` + words[2] + `"`
		}
	case name == "prop" && len(args) == 2:
		words = []string{words[0] + "=" + words[1]}
	case len(words) == 2 && isOp(words[0]):
		words = []string{words[0] + words[1]}
	case len(words) == 0:
		return nil, q.bad(name, "a form with a value, one of "+strings.Join(known, " "), known)
	}
	p, err := q.term(name, words)
	if e := (*QueryError)(nil); errors.As(err, &e) && e.Found == name {
		return nil, q.bad(name, "one of "+strings.Join(known, " "), known)
	}
	return p, err
}

func isOp(s string) bool {
	op, rest := cutOp(s)
	return rest == "" && op == s
}

func nameOf(v sexp.Value) string {
	switch v := v.(type) {
	case sexp.Symbol:
		return v.Name
	case sexp.Keyword:
		return string(v)
	}
	return ""
}
