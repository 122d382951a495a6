package record_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

func numbered(n int) sexp.Plist {
	return sexp.P(sexp.Keyword("N"), n, sexp.Keyword("TEXT"), "zwei\nZeilen, und تحية")
}

// all reads a file's records.
func all(path string) (out []string, err error) {
	err = record.Read(path, func(p sexp.Plist) error {
		out = append(out, p.String())
		return nil
	})
	return out, err
}

func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := record.Create(path, []sexp.Plist{numbered(0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		if err := f.Append(true, numbered(i)); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Size() != f.Size() {
		t.Errorf("the file says it has %d bytes: %v, %v", f.Size(), st.Size(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Append(true, numbered(n)); err == nil {
		t.Error("a closed file took a record")
	}
	return path
}

func TestWhatWasAppendedIsReadInOrder(t *testing.T) {
	got, err := all(filled(t, 3))
	if err != nil || len(got) != 3 || got[2] != numbered(2).String() {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := all(filepath.Join(t.TempDir(), "none")); err != nil || got != nil {
		t.Errorf("a file that is not there: %q, %v", got, err)
	}
}

// TestAFileCutAnywhereGivesWhatWasWholeBeforeTheCut: what a crash leaves.
func TestAFileCutAnywhereGivesWhatWasWholeBeforeTheCut(t *testing.T) {
	path := filled(t, 4)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{0} // after 0, 1, 2 … records
	for i := range 4 {
		text := numbered(i).String()
		ends = append(ends, ends[i]+len("00000000 00000000 \n")+len(text))
	}
	for n := range raw {
		if err := os.WriteFile(path, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 0
		for want < 4 && ends[want+1] <= n {
			want++
		}
		if got, err := all(path); err != nil || len(got) != want {
			t.Errorf("cut after %d bytes: %d records, %v; want %d", n, len(got), err, want)
		}
	}
}

// TestAFlippedBitIsDamageAndNeverAnotherRecord: a flip in the last record can look
// like a torn end; before it, it must not.
func TestAFlippedBitIsDamageAndNeverAnotherRecord(t *testing.T) {
	path := filled(t, 3)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lastBegins := bytes.LastIndex(raw[:len(raw)-1], []byte(")\n")) + 2
	want := []string{numbered(0).String(), numbered(1).String(), numbered(2).String()}
	for at := range raw {
		bad := bytes.Clone(raw)
		bad[at] ^= 0x01
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := all(path)
		for i, g := range got {
			if g != want[i] {
				t.Fatalf("byte %d: record %d reads %s", at, i, g)
			}
		}
		if at < lastBegins && !errors.Is(err, record.ErrDamaged) && !strings.EqualFold(string(bad), string(raw)) && len(got) < 3 {
			t.Errorf("byte %d: damage passes for a torn end: %v", at, err)
		}
	}
}

func TestAReplacedFileHoldsOnlyWhatItWasGiven(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := record.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Append(false, numbered(1), numbered(2)), f.Replace([]sexp.Plist{numbered(9)}), f.Append(true, numbered(10))); err != nil {
		t.Fatal(err)
	}
	got, err := all(path)
	if err != nil || len(got) != 2 || got[0] != numbered(9).String() || got[1] != numbered(10).String() {
		t.Errorf("%q, %v", got, err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("00000005 3b9aca00 (:A 1)\n"))
	f.Add([]byte("ffffffff 00000000 x"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "a.log")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := all(path)
		if err != nil || len(got) == 0 {
			return
		}
		var ps []sexp.Plist
		if err := record.Read(path, func(p sexp.Plist) error { ps = append(ps, p); return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := record.Create(path, ps); err != nil {
			t.Fatal(err)
		}
		if again, err := all(path); err != nil || len(again) != len(got) {
			t.Errorf("%q written and read again is %q, %v", got, again, err)
		}
	})
}

func TestRecordsAppendedTogetherAreAllThereOrNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := record.Create(path, []sexp.Plist{numbered(0)})
	if err != nil {
		t.Fatal(err)
	}
	before := f.Size()
	if err := errors.Join(f.Append(true, numbered(1), numbered(2), numbered(3)), f.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := int(before); n <= len(raw); n++ {
		if err := os.WriteFile(path, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		want := 1
		if n == len(raw) {
			want = 4
		}
		if got, err := all(path); err != nil || len(got) != want {
			t.Errorf("cut after %d of %d bytes: %d records, %v; want %d", n, len(raw), len(got), err, want)
		}
	}
}
