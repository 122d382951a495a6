package label_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/label"
	"passepartout/internal/proto"
)

func open(t *testing.T, path string) *label.Store {
	t.Helper()
	s, err := label.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func touch(t *testing.T, dir string, names ...string) (paths []string) {
	t.Helper()
	for _, n := range names {
		paths = append(paths, filepath.Join(dir, n))
		if err := os.WriteFile(paths[len(paths)-1], nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

var private, foreign = proto.Taint{Private: true}, proto.Taint{Untrusted: true}

func TestLabelsAddUpAndOutliveTheProgram(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "state", "labels")
	p := touch(t, dir, "a", "b", "c")
	s := open(t, at)
	for _, err := range []error{s.Mark(p[:2], private), s.Mark(p[:1], foreign), s.Mark([]string{dir + "/x/../b"}, private), s.Mark(p, proto.Taint{})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		again := open(t, at)
		if got := again.Of(p[0]); got != private.Join(foreign) {
			t.Errorf("a is %v", got)
		}
		if got := again.Of(p[1]); got != private {
			t.Errorf("b is %v", got)
		}
		if got := again.Of(p[2]); got != (proto.Taint{}) {
			t.Errorf("c is %v", got)
		}
		if got := again.Private(); !slices.Equal(got, p[:2]) {
			t.Errorf("private: %v", got)
		}
	}
}

func TestALabelIsTakenOffByNameAndStaysOff(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "labels")
	p := touch(t, dir, "a")
	s := open(t, at)
	if err := s.Mark(p, private); err != nil {
		t.Fatal(err)
	}
	if was, err := s.Clear(p[0]); err != nil || was != private {
		t.Fatalf("took off %v, %v", was, err)
	}
	if _, err := s.Clear(p[0]); err == nil {
		t.Error("taken off twice")
	}
	if got := open(t, at).Of(p[0]); got != (proto.Taint{}) {
		t.Errorf("came back as %v", got)
	}
}

func TestLabelsOfFilesThatAreGoneAreForgotten(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "labels")
	p := touch(t, dir, "a", "b")
	s := open(t, at)
	if err := s.Mark(p, private); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(p[0]); err != nil {
		t.Fatal(err)
	}
	if got := s.Of(p[0]); got != private {
		t.Errorf("while the program runs it is %v: it may come back", got)
	}
	if got := open(t, at).All(); len(got) != 1 || got[0].Path != p[1] {
		t.Errorf("kept %v", got)
	}
}

func TestDamagedLabelsAreNotReadAsNone(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "labels")
	s := open(t, at)
	for _, p := range touch(t, dir, "a", "b", "c") {
		if err := s.Mark([]string{p}, private); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	raw[30] ^= 4
	if err := os.WriteFile(at, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := label.Open(at); err == nil {
		t.Error("opened")
	}
}

func TestTheStoreAgreesWithAMap(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run by make test")
	}
	dir := t.TempDir()
	files := touch(t, dir, "a", "b", "c", "d")
	rapid.Check(t, func(rt *rapid.T) {
		at := filepath.Join(t.TempDir(), "labels")
		s := open(t, at)
		want := map[string]proto.Taint{}
		rt.Repeat(map[string]func(*rapid.T){
			"mark": func(rt *rapid.T) {
				ps := rapid.SliceOf(rapid.SampledFrom(files)).Draw(rt, "files")
				l := rapid.SampledFrom([]proto.Taint{{}, private, foreign, private.Join(foreign)}).Draw(rt, "labels")
				if err := s.Mark(ps, l); err != nil {
					rt.Fatal(err)
				}
				for _, p := range ps {
					want[p] = want[p].Join(l)
				}
			},
			"clear": func(rt *rapid.T) {
				p := rapid.SampledFrom(files).Draw(rt, "file")
				if _, err := s.Clear(p); (err == nil) != (want[p] != proto.Taint{}) {
					rt.Fatalf("%v of %v", err, want[p])
				}
				delete(want, p)
			},
			"open again": func(rt *rapid.T) {
				if err := s.Close(); err != nil {
					rt.Fatal(err)
				}
				s = open(t, at)
			},
			"": func(rt *rapid.T) {
				for _, p := range files {
					if s.Of(p) != want[p] {
						rt.Fatalf("%s is %v, want %v", p, s.Of(p), want[p])
					}
				}
			},
		})
	})
}

func TestWhatARunningCommandWritesIsPrivateOnceItReadSomethingPrivate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "labels"))
	var has bool
	end := s.Begin(func() bool { return has })
	innocent := s.Begin(func() bool { return false })
	p := touch(t, dir, "a", "b")
	if s.Of(p[0]).Private || s.Spreading() {
		t.Error("private before the command has read anything")
	}
	has = true
	link := filepath.Join(dir, "link")
	if err := os.Symlink(p[0], link); err != nil {
		t.Fatal(err)
	}
	if !s.Of(p[0]).Private || !s.Of(link).Private || !s.Spreading() {
		t.Error("what may have been written by it is public")
	}
	if s.Of("/").Private || s.Of(filepath.Join(dir, "none")).Private {
		t.Error("private: what is older, or not there")
	}
	if err := s.Mark(p[:1], private); err != nil {
		t.Fatal(err)
	}
	end()
	innocent()
	if !s.Of(p[0]).Private || s.Of(p[1]).Private || s.Spreading() {
		t.Error("after its end what was marked is private, and nothing else")
	}
	var none *label.Store
	none.Begin(nil)()
	if none.Spreading() {
		t.Error("no store")
	}
}
