package record_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/powercut"
	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// TestWhatWasAppendedDurablySurvivesAPowerCut mixes records somebody waits for with
// lazy ones and replacements, all larger and smaller than a sector.
func TestWhatWasAppendedDurablySurvivesAPowerCut(t *testing.T) {
	numbered := func(n int) sexp.Plist {
		return sexp.P(sexp.Keyword("N"), n, sexp.Keyword("TEXT"), strings.Repeat("two\nlines ", n*n*n%97))
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			f, err := record.Create(filepath.Join(dir, "state", "a.log"), []sexp.Plist{numbered(0)})
			if err != nil {
				return err
			}
			all := []sexp.Plist{numbered(0)}
			for i := 1; i < 12; i += 3 {
				more := []sexp.Plist{numbered(i), numbered(i + 1), numbered(i + 2)}
				if err := f.Append(false, more[0], more[1]); err != nil {
					return err
				}
				if err := f.Append(true, more[2]); err != nil {
					return err
				}
				mark(fmt.Sprint(i + 2))
				if all = append(all, more...); i == 4 {
					if err := f.Replace(all); err != nil {
						return err
					}
				}
			}
			return f.Close()
		},
		Check: func(dir string, marks []string) error {
			path := filepath.Join(dir, "state", "a.log")
			n := 0
			var got []sexp.Plist
			err := record.Read(path, func(p sexp.Plist) error {
				if p.String() != numbered(n).String() {
					return fmt.Errorf("record %d reads %.80s", n, p)
				}
				got = append(got, p)
				n++
				return nil
			})
			if err != nil {
				return err
			}
			if len(marks) > 0 && fmt.Sprint(n-1) < marks[len(marks)-1] && len(fmt.Sprint(n-1)) <= len(marks[len(marks)-1]) {
				return fmt.Errorf("record %s was acknowledged, found %d records", marks[len(marks)-1], n)
			}
			f, err := record.Create(path, got) // as its users do when they open it
			if err != nil {
				return err
			}
			return f.Close()
		},
		Again: 2,
	})
}
