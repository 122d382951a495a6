package flight_test

import (
	"os"
	"path/filepath"
	"testing"

	"passepartout/internal/flight"
)

// FuzzOpen opens whatever the file holds. What opens must open again to the same
// plans, and what does not must be refused with an error, never with half of it.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	c := newClock()
	l := openLog(f, dir, c.now)
	ask(f, l, "a-1")
	if _, err := l.Answer("a-1", yes(owner)); err != nil {
		f.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "plans.log"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "plans.log"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := flight.Open(flight.Options{Dir: dir, Now: c.now})
		if err != nil {
			return
		}
		want := texts(t, l)
		l.Close()
		again, err := flight.Open(flight.Options{Dir: dir, Now: c.now})
		if err != nil {
			t.Fatalf("what was opened does not open again: %v", err)
		}
		defer again.Close()
		if got := texts(t, again); got != want {
			t.Errorf("opened again it holds\n%s\nwant\n%s", got, want)
		}
	})
}

// texts is everything a log holds.
func texts(t *testing.T, l *flight.Log) (out string) {
	t.Helper()
	open, err := l.Pending()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(open, l.Ended(1000)...) {
		out += p.Plist().String() + "\n"
	}
	return out
}
