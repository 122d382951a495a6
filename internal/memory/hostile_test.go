package memory_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
)

// setBody edits one headline.
func setBody(s *memory.Store, o memory.Object, text string) error {
	_, err := s.Apply(context.Background(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: memory.SetBody, Value: text}}}})
	return err
}

func TestTheIndexMayVanishOrRotAtAnyTime(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": tasks, "b.org": "* B\n"})
	settle(t, f)
	index := f.stateFile("index")
	good, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	want := func() memory.Hash {
		s, err := memory.Open(t.Context(), f.dir, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s.View().Hash()
	}()
	for name, damage := range map[string]func() error{
		"intact":  func() error { return nil },
		"gone":    func() error { return os.Remove(index) },
		"empty":   func() error { return os.WriteFile(index, nil, 0o600) },
		"cut":     func() error { return os.WriteFile(index, good[:len(good)/2], 0o600) },
		"flipped": func() error { b := slices.Clone(good); b[len(b)/2] ^= 1; return os.WriteFile(index, b, 0o600) },
		"another version": func() error {
			return os.WriteFile(index, append([]byte("passepartout memory index 9\n"), good...), 0o600)
		},
		"a directory": func() error {
			return errors.Join(os.Remove(index), os.Mkdir(index, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.RemoveAll(index); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(index, good, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			s, err := memory.Open(t.Context(), f.dir, f.options())
			if err != nil {
				t.Fatal(err)
			}
			if s.View().Hash() != want {
				t.Error("the memex reads differently")
			}
			if said := len(s.Problems()) > 0; said != (name != "intact" && name != "gone") {
				t.Errorf("problems: %v", s.Problems())
			}
			if p := s.Verify(); len(p) > 0 {
				t.Error(p)
			}
			if err := s.Close(); err != nil && name != "a directory" {
				t.Error(err)
			}
		})
	}
}

func TestAnIndexThatVouchesForAnotherTextIsNotBelieved(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\none\n"})
	settle(t, f)
	name := filepath.Join(f.dir, "a.org")
	fi, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	// Same size, same time, another file.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	f.write("filler.org", "* X\n")
	f.write("a.org", "* A\ntwo\n")
	if err := os.Chtimes(name, fi.ModTime(), fi.ModTime()); err != nil {
		t.Fatal(err)
	}
	s := f.open()
	if now, _ := os.Stat(name); os.SameFile(fi, now) {
		t.Skip("the file system reused the inode; nothing tells the two files apart")
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}

// fullDisk has no room left after some bytes.
type fullDisk struct {
	memory.Disk
	room int
}

type fullFile struct {
	memory.DiskFile
	d *fullDisk
}

func (d *fullDisk) OpenFile(name string, flag int, perm fs.FileMode) (memory.DiskFile, error) {
	f, err := d.Disk.OpenFile(name, flag, perm)
	return &fullFile{f, d}, err
}

func (f *fullFile) Write(b []byte) (int, error) {
	if n := f.d.room; n < len(b) {
		f.d.room = 0
		n, err := f.DiskFile.Write(b[:n])
		return n, errors.Join(err, syscall.ENOSPC)
	}
	f.d.room -= len(b)
	return f.DiskFile.Write(b)
}

func TestAFullDiskFailsTheEditAndNothingElse(t *testing.T) {
	for room := 0; room < 5600; room += some(61, 1) {
		f := newFixture(t, map[string]string{"a.org": "* A\n" + strings.Repeat("old\n", 100), "b.org": "* B\n" + strings.Repeat("old\n", 100)})
		d := &fullDisk{memory.RealDisk(), 1 << 30}
		s, err := memory.Open(t.Context(), f.dir, f.options().OnDisk(d))
		if err != nil {
			t.Fatal(err)
		}
		hash := s.View().Hash()
		d.room = room
		a, b := titled(t, s.View(), "A"), titled(t, s.View(), "B")
		_, err = s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{
			{Object: a.ID, Expect: a.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "new"}},
			{Object: b.ID, Expect: b.Hash, Change: memory.Change{Kind: memory.SetBody, Value: "new"}},
		}})
		d.room = 1 << 30
		if err != nil {
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("room %d: want no space, found %v", room, err)
			}
			if s.View().Hash() != hash || !strings.Contains(f.read("a.org"), "old") || !strings.Contains(f.read("b.org"), "old") {
				t.Fatalf("room %d: the refused edit left traces", room)
			}
		} else if strings.Contains(f.read("a.org")+f.read("b.org"), "old") {
			t.Fatalf("room %d: the edit was acknowledged and is not there", room)
		}
		// There is room again: everything works, also after a restart.
		if err := setBody(s, titled(t, s.View(), "A"), "again"); err != nil {
			t.Fatalf("room %d: %v", room, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s2 := f.open()
		if p := append(s2.Verify(), s2.Problems()...); len(p) > 0 {
			t.Fatalf("room %d: %v", room, p)
		}
		if titled(t, s2.View(), "A").Body() != "again\n" {
			t.Fatalf("room %d: the later edit is lost", room)
		}
		if err := s2.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADirectoryReplacedByAFileAndBack(t *testing.T) {
	f := newFixture(t, map[string]string{"d/a.org": "* A\n", "e.org": "* E\n"})
	s := f.open()
	if err := os.RemoveAll(filepath.Join(f.dir, "d")); err != nil {
		t.Fatal(err)
	}
	f.write("d", "not a directory")
	if err := os.Remove(filepath.Join(f.dir, "e.org")); err != nil {
		t.Fatal(err)
	}
	f.write("e.org/f.org", "* F\n")
	refresh(t, s)
	if got := slices.Collect(s.View().Files()); !slices.Equal(got, []string{"e.org/f.org"}) {
		t.Errorf("files %q", got)
	}
	_, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{File: "d/new.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "N"}}}}})
	if err == nil {
		t.Error("a file was written below a file")
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}

func TestAnUnreadableFileIsKeptAsLastSeenAndSaid(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root can read everything")
	}
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	s := f.open()
	name := filepath.Join(f.dir, "a.org")
	f.write("a.org", "* A changed\n")
	if err := os.Chmod(name, 0); err != nil {
		t.Fatal(err)
	}
	refresh(t, s)
	if len(s.Problems()) != 1 || s.View().Len() != 1 {
		t.Errorf("problems %v", s.Problems())
	}
}

func TestLinksOutOfTheMemexAreNotFollowedAndSaid(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n", "sub/b.org": "* B\n"})
	outside := newFixture(t, map[string]string{"secret.org": "* Secret\n"})
	for from, to := range map[string]string{
		"out.org": filepath.Join(outside.dir, "secret.org"), "outdir": outside.dir,
		"in.org": filepath.Join(f.dir, "a.org"), "loop": f.dir, "dangling.org": filepath.Join(f.dir, "none.org"),
	} {
		if err := os.Symlink(to, filepath.Join(f.dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	s := f.open()
	if got := slices.Collect(s.View().Files()); !slices.Equal(got, []string{"a.org", "sub/b.org"}) {
		t.Errorf("files %q", got)
	}
	var said []string
	for _, p := range s.Problems() {
		said = append(said, p.Path)
	}
	if !slices.Equal(said, []string{"dangling.org", "out.org", "outdir"}) {
		t.Errorf("problems %q", said)
	}
	for _, p := range []string{"outdir/x.org", "out.org", "../x.org", "/x.org", "dangling.org", ".git/x.org", "x.txt", "a/../../x.org"} {
		_, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{File: p, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "N"}}}}})
		if err == nil {
			t.Errorf("%s was written", p)
		}
	}
	if got := outside.read("secret.org"); got != "* Secret\n" {
		t.Errorf("outside: %q", got)
	}
}

func TestLimitsAreSaidNotSilent(t *testing.T) {
	f := newFixture(t, map[string]string{
		"big.org": strings.Repeat("* x\n", 1000), "bin.org": "* A\xff\n", "ok.org": "* Ok\n",
		".hidden.org": "* H\n", "#ok.org#": "* H\n", "drafts/d.org": "* D\n", ".memexignore": "# not these\ndrafts/\n*.tmp.org\n", "x.tmp.org": "* T\n",
	})
	o := f.options()
	o.MaxFile = 1000
	s, err := memory.Open(t.Context(), f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := slices.Collect(s.View().Files()); !slices.Equal(got, []string{"bin.org", "ok.org"}) {
		t.Errorf("files %q", got)
	}
	ps := s.Problems()
	if len(ps) != 2 || !errors.Is(ps[0].Err, memory.ErrTooLarge) || !errors.Is(ps[1].Err, org.ErrEncoding) {
		t.Errorf("problems %v", ps)
	}
	for o := range s.View().All() {
		if o.File == "bin.org" {
			if err := setBody(s, o, "x"); !errors.Is(err, org.ErrEncoding) {
				t.Errorf("editing a file that is not UTF-8: %v", err)
			}
		}
	}
}

// TestACheckoutOfThousandsOfFilesIsOneChange rewrites a whole tree at once, as
// switching branches does.
func TestACheckoutOfThousandsOfFilesIsOneChange(t *testing.T) {
	const files = 5000
	f := newFixture(t, nil)
	branch := func(name string) {
		for i := range files {
			f.write(fmt.Sprintf("d%02d/f%04d.org", i%50, i), fmt.Sprintf("* %s %d\n:PROPERTIES:\n:ID: i%d\n:END:\ntext\n** Sub\n", name, i, (i+len(name))%files))
		}
	}
	branch("main")
	s := f.open()
	before := s.View()
	o, ok := before.Get("i7")
	if !ok {
		t.Fatal("not found")
	}
	branch("feature")
	for i := range 500 {
		if err := os.Remove(filepath.Join(f.dir, fmt.Sprintf("d%02d/f%04d.org", i%50, i))); err != nil {
			t.Fatal(err)
		}
	}
	refresh(t, s)
	v := s.View()
	if v.Len() != 2*(files-500) || len(s.History()) != 1 {
		t.Errorf("%d headlines, %d operations", v.Len(), len(s.History()))
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p[:min(3, len(p))])
	}
	if again, _ := before.Get("i7"); again.Text() != o.Text() {
		t.Error("the pinned view changed")
	}
	if now, ok := v.Get("i1007"); !ok || !strings.HasPrefix(now.Title, "feature") {
		t.Errorf("moved object %+v", now)
	}
}

func TestADamagedHistoryIsSetAsideAndTheRestKept(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	s := f.open()
	for i := range 3 {
		if err := setBody(s, titled(t, s.View(), "A"), fmt.Sprint("version ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := f.stateFile("history.log")
	b, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(string(b), "version 1")
	b[i]++
	if err := os.WriteFile(log, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s = f.open()
	if n := len(s.History()); n != 1 {
		t.Errorf("want the operation before the damage, found %d", n)
	}
	if len(s.Problems()) != 1 {
		t.Errorf("problems %v", s.Problems())
	}
	if aside, err := filepath.Glob(log + ".damaged-*"); err != nil || len(aside) != 1 {
		t.Errorf("set aside: %q %v", aside, err)
	}
	if err := setBody(s, titled(t, s.View(), "A"), "goes on"); err != nil {
		t.Error(err)
	}
}

func TestHistoryIsCompactedFromItsOldEnd(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	s := f.open()
	for i := range 50 {
		if err := setBody(s, titled(t, s.View(), "A"), fmt.Sprint("version ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	o := f.options()
	o.KeepHistory = 8 << 10
	s, err := memory.Open(t.Context(), f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	n := len(s.History())
	if n == 0 || n >= 50 || s.History()[n-1].Seq != 50 {
		t.Fatalf("%d operations left", n)
	}
	if _, err := s.Undo(t.Context(), memory.Mark{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = f.open()
	if got := titled(t, s.View(), "A").Body(); got != "version 48\n" || len(s.History()) != n+1 {
		t.Errorf("after compaction and undo: %q, %d operations", got, len(s.History()))
	}
}

func TestTwoProcessesDoNotShareAState(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	s := f.open()
	if _, err := memory.Open(t.Context(), f.dir, f.options()); !errors.Is(err, memory.ErrLocked) {
		t.Errorf("want ErrLocked, found %v", err)
	}
	o := f.options()
	o.ReadOnly = true
	r, err := memory.Open(t.Context(), f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := setBody(r, titled(t, r.View(), "A"), "x"); !errors.Is(err, memory.ErrReadOnly) {
		t.Errorf("want ErrReadOnly, found %v", err)
	}
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestDuplicateIDsLeadToTheFirstFileAndNoObjectIsHidden(t *testing.T) {
	const text = "* Same\n:PROPERTIES:\n:ID: dup\n:END:\n"
	f := newFixture(t, map[string]string{"b.org": text, "c.org": text})
	s := f.open()
	where := func() string {
		o, _ := s.View().Get("dup")
		return o.File
	}
	if where() != "b.org" {
		t.Errorf("found in %s", where())
	}
	f.write("a.org", text)
	refresh(t, s)
	if where() != "a.org" || s.View().Stats().Duplicates != 1 {
		t.Errorf("found in %s", where())
	}
	seen := map[memory.ID]bool{}
	for o := range s.View().All() {
		got, ok := s.View().Get(o.ID)
		if !ok || got.File != o.File || seen[o.ID] {
			t.Errorf("%s of %s leads to %s", o.ID, o.File, got.File)
		}
		seen[o.ID] = true
	}
	for _, p := range []string{"a.org", "b.org"} {
		if err := os.Remove(filepath.Join(f.dir, p)); err != nil {
			t.Fatal(err)
		}
	}
	refresh(t, s)
	if where() != "c.org" || s.View().Stats().Duplicates != 0 {
		t.Errorf("found in %s", where())
	}
	if p := s.Verify(); len(p) > 0 {
		t.Error(p)
	}
}

func TestTimeIsTakenFromTheStoresClock(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\nDEADLINE: <2026-03-11 Wed>\n"})
	s := f.open()
	if os, err := s.View().Match("deadline:tomorrow"); err != nil || len(os) != 1 {
		t.Errorf("tomorrow of %s: %v %v", noon.Format(time.DateOnly), os, err)
	}
}

// TestAPipeIsNotWaitedFor: anybody who may make a file in the memex may make a pipe, and
// whoever reads one waits for a writer.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "#+SETUPFILE: pipe\n* A\n", "b.org": "* B\n"})
	for _, name := range []string{"pipe", ".memexignore", "c.org"} {
		if err := syscall.Mkfifo(filepath.Join(f.dir, name), 0o600); err != nil {
			t.Skip(err)
		}
	}
	s := f.open()
	if got := slices.Collect(s.View().Files()); !slices.Equal(got, []string{"a.org", "b.org"}) {
		t.Errorf("files %q", got)
	}
	refresh(t, s)
}

func TestAFileThatGrewBeyondTheLimitIsNotRead(t *testing.T) {
	f := newFixture(t, map[string]string{"a.org": "* A\n"})
	o := f.options()
	o.MaxFile = 1000
	s, err := memory.Open(t.Context(), f.dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := titled(t, s.View(), "A")
	f.write("a.org", "* A\n"+strings.Repeat("text\n", 1000))
	if err := setBody(s, a, "x"); !errors.Is(err, memory.ErrTooLarge) {
		t.Errorf("want ErrTooLarge, found %v", err)
	}
	refresh(t, s)
	if len(s.Problems()) != 1 || s.View().Len() != 1 {
		t.Errorf("problems %v", s.Problems())
	}
}

// TestAnIdentifierIsNotGivenTwice: else the name of an object would lead to what
// somebody else wrote, if only their file came first.
func TestAnIdentifierIsNotGivenTwice(t *testing.T) {
	f := newFixture(t, map[string]string{"b.org": "* Mine\n:PROPERTIES:\n:ID: mine\n:END:\n* Other\n"})
	s := f.open()
	other := titled(t, s.View(), "Other")
	for name, e := range map[string]memory.Edit{
		"an entry":        {File: "a.org", Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "X", Properties: []org.Property{{Key: "ID", Value: "mine"}}}}},
		"a text":          {File: "a.org", Change: memory.Change{Kind: memory.Insert, Value: "* X\n** Y\n:PROPERTIES:\n:id: mine\n:END:\n"}},
		"a child":         {Object: other.ID, Change: memory.Change{Kind: memory.Insert, Value: "* X\n:PROPERTIES:\n:ID: mine\n:END:\n"}},
		"a property":      {Object: other.ID, Expect: other.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "Id", Value: "mine"}},
		"a derived one":   {File: "a.org", Change: memory.Change{Kind: memory.Insert, Value: "* X\n:PROPERTIES:\n:ID: ~abc\n:END:\n"}},
		"a derived value": {Object: other.ID, Expect: other.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "ID", Value: "~abc"}},
	} {
		if _, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{e}}); !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%s: want a refusal, found %v", name, err)
		}
	}
	r, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{Object: other.ID, Expect: other.Hash, Change: memory.Change{Kind: memory.SetProperty, Key: "ID", Value: "other"}}}})
	if err != nil || r.IDs[0] != "other" {
		t.Fatalf("want the new identifier, found %v %v", r.IDs, err)
	}
	if vs, err := s.Versions("other"); err != nil || len(vs) != 1 || vs[0].Hash != titled(t, s.View(), "Other").Hash {
		t.Errorf("history of the new name: %v %v", vs, err)
	}
}

// TestAFileNamedInAnotherEncodingIsReadOnly: history names files in UTF-8, and could not
// take an edit of this one back.
func TestAFileNamedInAnotherEncodingIsReadOnly(t *testing.T) {
	f := newFixture(t, nil)
	if err := os.WriteFile(filepath.Join(f.dir, "caf\xe9.org"), []byte("* A\n"), 0o600); err != nil {
		t.Skip("names are UTF-8 here:", err)
	}
	s := f.open()
	if err := setBody(s, titled(t, s.View(), "A"), "x"); err == nil || f.read("caf\xe9.org") != "* A\n" {
		t.Errorf("edited: %v", err)
	}
	if len(s.Problems()) != 1 {
		t.Errorf("problems %v", s.Problems())
	}
	for _, name := range []string{"th\xe9.org", "a\nb.org", "a\x1b[2J.org"} {
		_, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{File: name, Change: memory.Change{Kind: memory.Insert, Entry: org.Entry{Title: "N"}}}}})
		if !errors.Is(err, memory.ErrInvalid) {
			t.Errorf("%q: want a refusal, found %v", name, err)
		}
	}
}
