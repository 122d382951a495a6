package label_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"passepartout/internal/label"
	"passepartout/internal/powercut"
	"passepartout/internal/proto"
)

// TestALabelSurvivesAPowerCut: what was marked stays marked, what was cleared by hand
// may be marked or not until that was acknowledged, and the store always opens.
func TestALabelSurvivesAPowerCut(t *testing.T) {
	open := func(dir string) (s *label.Store, paths []string, err error) {
		paths = touch(t, dir, "a", "b", "c") // marks of what is gone are forgotten
		s, err = label.Open(filepath.Join(dir, "state", "labels"))
		return s, paths, err
	}
	steps := []func(s *label.Store, paths []string) error{
		func(s *label.Store, paths []string) error { return s.Mark(paths[:1], private) },
		func(s *label.Store, paths []string) error { return s.Mark(paths, foreign) },
		func(s *label.Store, paths []string) error { return s.Mark(paths[1:2], private) },
		func(s *label.Store, paths []string) error { _, err := s.Clear(paths[0]); return err },
	}
	after := [][3]proto.Taint{
		{},
		{private},
		{private.Join(foreign), foreign, foreign},
		{private.Join(foreign), private.Join(foreign), foreign},
		{{}, private.Join(foreign), foreign},
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			s, paths, err := open(dir)
			if err != nil {
				return err
			}
			for i, do := range steps {
				if err := do(s, paths); err != nil {
					return err
				}
				mark(fmt.Sprint(i))
			}
			return s.Close()
		},
		Check: func(dir string, marks []string) error {
			s, paths, err := open(dir)
			if err != nil {
				return err
			}
			defer s.Close()
			n := len(marks)
			for i, p := range paths {
				if got := s.Of(p); got != after[n][i] && got != after[min(n+1, len(steps))][i] {
					return fmt.Errorf("after %d steps %s is %v", n, filepath.Base(p), got)
				}
			}
			return nil
		},
		Again: 2,
	})
}
