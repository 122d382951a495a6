package sexp_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// FuzzReadPrint reads whatever it is given. What is accepted must print to
// something that reads back to an equal value of the same digest.
func FuzzReadPrint(f *testing.F) {
	for _, src := range []string{
		frame, "", "(", "'(a . b)", "`(a ,@b ,c , .d)", `"a\"\\b"`, "#(1 2.5e10 -3/4)", `#\Space`, "|a b|:|c|", ":|x|", "#:g",
		"#+(or go x) a b", "#|x|# #xFF", "; c\nx", "1e400", "\xff", "\x00", "((((((", "a\\\nb", "ſ İ ǅ ß", "#.(a)", "#1=(#1#)",
	} {
		f.Add([]byte(src), false)
		f.Add([]byte(src), true)
	}
	f.Fuzz(func(t *testing.T, src []byte, lisp bool) {
		r := sexp.NewReader(src, sexp.Options{Lisp: lisp, Features: []string{"go"}})
		for {
			v, _, err := r.ReadPos()
			var syntax *sexp.SyntaxError
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.As(err, &syntax):
				if strings.Contains(syntax.Msg, "internal error") {
					t.Fatal(syntax)
				}
				if syntax.Offset < 0 || syntax.Offset > len(src) || syntax.Line < 1 || syntax.Col < 1 {
					t.Fatalf("error outside the input: %+v", syntax)
				}
				return
			case err != nil:
				t.Fatalf("error of another type: %v", err)
			}
			printed := sexp.Print(v)
			back, err := sexp.Read([]byte(printed), sexp.Limits{})
			if err != nil {
				t.Fatalf("%q does not read: %v", printed, err)
			}
			if !sexp.Equal(v, back) || sexp.Sum(v) != sexp.Sum(back) || sexp.Print(back) != printed {
				t.Fatalf("%q reads back as %q", printed, sexp.Print(back))
			}
		}
	})
}
