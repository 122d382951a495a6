package pulse_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"passepartout/internal/pulse"
)

func TestATornRecordIsCutOffAndADamagedOneRefused(t *testing.T) {
	dir := t.TempDir()
	l, err := pulse.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r := pulse.Run{ID: string(rune('a' + i)), Job: "j", State: pulse.Done, Due: start.Add(time.Duration(i) * time.Hour), At: start, Ended: start, Text: "text"}
		if err := l.Put(true, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "runs.log")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last; cut < len(whole); cut++ {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := pulse.OpenLog(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if n := len(l.History("", 10)); n != 2 {
			t.Fatalf("cut at %d: want 2 runs, found %d", cut, n)
		}
		_ = l.Close()
	}
	damaged := bytes.Clone(whole)
	damaged[last/2] ^= 1
	if err := os.WriteFile(path, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pulse.OpenLog(dir); err == nil {
		t.Error("a damaged record was taken for none")
	}
}

func TestTheRecordStaysSmall(t *testing.T) {
	dir := t.TempDir()
	l, err := pulse.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		due := start.Add(time.Duration(i) * time.Minute)
		if err := l.Put(false, pulse.Run{ID: due.String(), Job: "j", State: pulse.Skipped, Due: due, At: due, Ended: due}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = pulse.OpenLog(dir); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n := len(l.History("j", 1000)); n != 20 {
		t.Errorf("want 20 runs, found %d", n)
	}
	if st, err := os.Stat(filepath.Join(dir, "runs.log")); err != nil || st.Size() > 10_000 {
		t.Errorf("%d bytes, %v", st.Size(), err)
	}
}

func FuzzOpenLog(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("00000010 00000000 (:RUN \"a\" :JOB \"b\")\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "runs.log"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := pulse.OpenLog(dir); err == nil {
			_ = l.Close()
		}
	})
}
