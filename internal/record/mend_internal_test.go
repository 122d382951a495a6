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

// TestAFileThatWasReplacedByHalfTakesNothingMore: what is appended to the old file,
// which has no name any more, would be lost.
func TestAFileThatWasReplacedByHalfTakesNothingMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f.syncDir = func(string) error { return syscall.ENOSPC }
	if err := f.Replace([]sexp.Plist{sexp.P(sexp.Keyword("N"), 1)}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("Replace: %v", err)
	}
	if err := f.Append(true, sexp.P(sexp.Keyword("N"), 2)); err == nil {
		n := 0
		if err := Read(path, func(sexp.Plist) error { n++; return nil }); err != nil || n != 2 {
			t.Errorf("two records were accepted, and %d are there, %v", n, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
