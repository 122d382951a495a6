package journal_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"passepartout/internal/journal"
	"passepartout/internal/powercut"
)

// TestNothingAcknowledgedIsLostToAPowerCut: whatever the disk lost that was not
// synced, the journal opens, holds every entry it acknowledged, and verifies.
func TestNothingAcknowledgedIsLostToAPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("many disks: run by make test")
	}
	o := journal.Options{Now: clock(), SegmentBytes: 3000}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			j, _, err := journal.Open(filepath.Join(dir, "state", "journal"), o)
			if err != nil {
				return err
			}
			for i := range 8 {
				if _, err := j.AppendLazy(note(strings.Repeat("lazy ", 60*i))); err != nil {
					return err
				}
				seq, err := j.Append(note(strings.Repeat(strconv.Itoa(i), 200*i)))
				if err != nil {
					return err
				}
				mark(fmt.Sprint(seq))
			}
			return j.Close()
		},
		Check: func(dir string, marks []string) error {
			dir = filepath.Join(dir, "state", "journal")
			j, rec, err := journal.Open(dir, o)
			if err != nil {
				return err
			}
			if err := j.Close(); err != nil {
				return err
			}
			if len(marks) > 0 {
				last, err := strconv.ParseUint(marks[len(marks)-1], 10, 64)
				if err != nil {
					return err
				}
				if rec.Head < journal.Seq(last) {
					return fmt.Errorf("entry %d was acknowledged, the journal ends at %d", last, rec.Head)
				}
			}
			s, err := journal.Verify(dir)
			if err != nil || s.Torn != nil || s.Entries != rec.Head {
				return fmt.Errorf("opened with %d entries, verified as %+v: %w", rec.Head, s, err)
			}
			return nil
		},
		Again: 2,
	})
}
