package record

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"passepartout/internal/sexp"
)

// TestAFileThatFoundNoRoomGoesOnAfterItsLastWholeRecord: the half of a record that
// did fit is cut off, and nothing that was accepted is lost.
func TestAFileThatFoundNoRoomGoesOnAfterItsLastWholeRecord(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		path := filepath.Join(t.TempDir(), "a.log")
		f, err := Create(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, two := sexp.P(sexp.Keyword("N"), 1), sexp.P(sexp.Keyword("N"), 2)
		if err := f.Append(false, one); err != nil {
			t.Fatal(err)
		}
		if _, err := f.file.WriteString("00000040 0000"); err != nil { // what fitted
			t.Fatal(err)
		}
		f.fault = &os.PathError{Op: "write", Path: path, Err: cause}
		err = f.Append(true, two)
		if mended := !errors.Is(cause, syscall.EIO); mended != (err == nil) || !mended && !errors.Is(err, cause) {
			t.Fatalf("after %v: %v", cause, err)
		}
		if err != nil {
			continue
		}
		var got []string
		if err := Read(path, func(p sexp.Plist) error { got = append(got, p.String()); return nil }); err != nil || len(got) != 2 || got[0] != one.String() || got[1] != two.String() {
			t.Errorf("after %v: %q, %v", cause, got, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
