package undo_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"passepartout/internal/undo"
)

// place is a tree to change and a store beside it.
type place struct {
	root  string
	dir   string
	store *undo.Store
}

func newPlace(tb rapid.TB, o undo.Options) *place {
	base, err := os.MkdirTemp("", "passepartout-undo-")
	if err != nil {
		tb.Fatal(err)
	}
	if base, err = filepath.EvalSymlinks(base); err != nil {
		tb.Fatal(err)
	}
	p := &place{root: filepath.Join(base, "root"), dir: filepath.Join(base, "store")}
	if err := os.Mkdir(p.root, 0o755); err != nil {
		tb.Fatal(err)
	}
	p.reopen(tb, o)
	return p
}

func (p *place) remove() {
	p.store.Close()
	_ = filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	os.RemoveAll(filepath.Dir(p.root))
}

func (p *place) reopen(tb rapid.TB, o undo.Options) {
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	var err error
	if p.store, err = undo.Open(p.dir, o); err != nil {
		tb.Fatal(err)
	}
}

func (p *place) write(tb rapid.TB, rel, text string) {
	path := filepath.Join(p.root, rel)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// sh changes the tree the way a shell command would.
func (p *place) sh(tb rapid.TB, script string) {
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// do captures the whole root around a change.
func (p *place) do(tb rapid.TB, label string, f func()) undo.Entry {
	c, err := p.store.Begin(label, "turn", undo.Scope{Root: p.root})
	if err != nil {
		tb.Fatal(err)
	}
	f()
	e, err := c.Commit()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// fingerprint describes the tree: names, modes, contents, targets.
func (p *place) fingerprint(tb rapid.TB) string {
	var sb strings.Builder
	err := filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(p.root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&sb, "%s %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sb, " %x", sha256.Sum256(b))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			sb.WriteString(" " + to)
		}
		sb.WriteByte('\n')
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return sb.String()
}

func TestUndoAndRedoSwapExactly(t *testing.T) {
	for name, script := range map[string]string{
		"an edit":                           "echo more >> a",
		"an edit of the same size":          "printf B > a",
		"a deletion":                        "rm a",
		"a deleted tree":                    "rm -r d",
		"a new tree":                        "mkdir -p n/m/o; echo x > n/m/o/p; ln -s ../p n/q",
		"a rename":                          "mv a b",
		"a renamed directory":               "mv d e",
		"a file become a directory":         "rm a; mkdir a; echo x > a/x",
		"a directory become a file":         "rm -r d; echo x > d",
		"a file become a link":              "ln -sf /etc/passwd a",
		"a directory become a link":         "mv d e; ln -s e d",
		"a directory become a link outside": "rm -r d; ln -s /etc d",
		"a link moved":                      "ln -sfn elsewhere l",
		"a link become a file":              "rm l; echo x > l",
		"modes":                             "chmod 600 a; chmod 700 d; chmod 4755 d/one",
		"a directory closed":                "rm d/one; chmod 500 d",
		"an empty directory":                "mkdir empty",
		"a swap of two files":               "mv a t; mv d/one a; mv t d/one",
		"a name with a newline and a quote": `printf x > "$(printf 'a\nb"c')"`,
		"a name that is no text":            `printf x > "$(printf 'a\377b')"; rm a`,
		"the root's own mode":               "chmod 711 .",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, undo.Options{})
			defer p.remove()
			p.write(t, "a", "A")
			p.write(t, "d/one", "1")
			p.write(t, "d/two", "2")
			p.sh(t, "ln -s a l")
			before := p.fingerprint(t)
			e := p.do(t, name, func() { p.sh(t, script) })
			after := p.fingerprint(t)
			if before == after || e.ID == 0 {
				t.Fatalf("the script changed nothing: %+v", e)
			}
			for range 2 {
				if err := p.store.Undo(e.ID); err != nil {
					t.Fatal(err)
				}
				if got := p.fingerprint(t); got != before {
					t.Fatalf("after undo:\n%s\nwanted\n%s", got, before)
				}
				if err := p.store.Redo(e.ID); err != nil {
					t.Fatal(err)
				}
				if got := p.fingerprint(t); got != after {
					t.Fatalf("after redo:\n%s\nwanted\n%s", got, after)
				}
			}
		})
	}
}

func TestNothingIsRestoredOverWorkTheStoreDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct{ change, later, path string }{
		"an edit after the edit":              {"echo x > a", "echo mine > a", "a"},
		"a mode after the edit":               {"echo x > a", "chmod 600 a", "a"},
		"a file where one was deleted":        {"rm a", "echo mine > a", "a"},
		"a deletion after the edit":           {"echo x > a", "rm a", "a"},
		"a file in a directory that was made": {"mkdir n", "echo mine > n/mine", "n/mine"},
		"a link in the place of a file":       {"echo x > a", "ln -sf /etc/passwd a", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, undo.Options{})
			defer p.remove()
			p.write(t, "a", "A")
			p.write(t, "other", "O")
			e := p.do(t, name, func() { p.sh(t, c.change+"; echo changed > other") })
			p.sh(t, c.later)
			now := p.fingerprint(t)
			err := p.store.Undo(e.ID)
			var conflict *undo.ConflictError
			if !errors.As(err, &conflict) || !slices.Contains(conflict.Paths, filepath.Join(p.root, c.path)) {
				t.Errorf("wanted a conflict about %s, got %v", c.path, err)
			}
			if got := p.fingerprint(t); got != now {
				t.Errorf("a refused undo changed something:\n%s\nwas\n%s", got, now)
			}
		})
	}
}

func TestALinkThatAppearedLeadsNowhere(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	outside := filepath.Join(filepath.Dir(p.root), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "d/f", "old")
	e := p.do(t, "edit", func() { p.write(t, "d/f", "new") })
	p.sh(t, "mv d/f "+outside+"/f; rmdir d; ln -s "+outside+" d")
	if err := p.store.Undo(e.ID); err == nil {
		t.Error("wanted a refusal")
	}
	if b, err := os.ReadFile(filepath.Join(outside, "f")); err != nil || string(b) != "new" {
		t.Errorf("a file outside the root is now %q %v", b, err)
	}
}

func TestATooLargeFileIsSaidAndTheRestCanBeUndone(t *testing.T) {
	p := newPlace(t, undo.Options{MaxFile: 10})
	defer p.remove()
	p.write(t, "small", "s")
	p.write(t, "large", strings.Repeat("l", 100))
	e := p.do(t, "both", func() { p.sh(t, "echo x > small; rm large") })
	var incomplete *undo.IncompleteError
	if err := p.store.Undo(e.ID); !errors.As(err, &incomplete) || len(incomplete.Paths) != 1 {
		t.Fatalf("wanted an incomplete entry, got %v", err)
	}
	if err := p.store.UndoKept(e.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.fingerprint(t); !strings.Contains(got, "small") || strings.Contains(got, "large") {
		t.Errorf("got %s", got)
	}
}

func TestAChangeToATooLargeFileIsNoticed(t *testing.T) {
	p := newPlace(t, undo.Options{MaxFile: 10})
	defer p.remove()
	p.write(t, "large", strings.Repeat("l", 100))
	if e := p.do(t, "nothing", func() {}); e.ID != 0 {
		t.Errorf("an unchanged large file is no news, got %+v", e)
	}
	e := p.do(t, "edit", func() { p.sh(t, "echo more >> large") })
	if len(e.Lost) != 1 || len(e.Changes) != 0 {
		t.Errorf("wanted the file among the lost, got %+v", e)
	}
}

func TestDamagedContentIsNotRestored(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.write(t, "a", "good")
	e := p.do(t, "edit", func() { p.write(t, "a", "later") })
	err := filepath.WalkDir(filepath.Join(p.dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if string(b) == "good" {
			return os.WriteFile(path, []byte("evil"), 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.store.Undo(e.ID); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("wanted the damage to be noticed, got %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(p.root, "a")); err != nil || string(b) != "later" {
		t.Errorf("the file is now %q %v", b, err)
	}
}

// TestAnUndoThatFailsInTheMiddleChangesNothing: and can be asked for again when what was
// in its way is gone.
func TestAnUndoThatFailsInTheMiddleChangesNothing(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	for _, f := range []string{"a", "b", "c"} {
		p.write(t, f, "good "+f)
	}
	before := p.fingerprint(t)
	e := p.do(t, "edit", func() { p.sh(t, "echo later > a; rm b; echo later > c; echo new > d") })
	after := p.fingerprint(t)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("good c")))
	blob := filepath.Join(p.dir, "blobs", sum[:2], sum[2:])
	for _, text := range []string{"evil c", "good c"} {
		if err := os.WriteFile(blob, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := p.store.Undo(e.ID)
		if text == "good c" {
			if got := p.fingerprint(t); err != nil || got != before {
				t.Errorf("%v: got\n%s\nwanted\n%s", err, got, before)
			}
			break
		}
		if got := p.fingerprint(t); err == nil || got != after {
			t.Errorf("%v: got\n%s\nwanted\n%s", err, got, after)
		}
		p.reopen(t, undo.Options{})
		if got := p.fingerprint(t); got != after {
			t.Errorf("after a restart: got\n%s\nwanted\n%s", got, after)
		}
	}
}

func TestAFileWithTheLongestNameIsRestored(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	name := strings.Repeat("n", 255)
	p.write(t, name, "good")
	before := p.fingerprint(t)
	e := p.do(t, "edit", func() { p.write(t, name, "later") })
	if err := p.store.Undo(e.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.fingerprint(t); got != before {
		t.Errorf("got\n%s\nwanted\n%s", got, before)
	}
}

func TestSkippedPathsAreNeverRead(t *testing.T) {
	p := newPlace(t, undo.Options{Skip: func(path string) bool { return filepath.Base(path) == "vault" }})
	defer p.remove()
	p.write(t, "vault/key", "swordfish")
	p.write(t, "a", "A")
	p.do(t, "edit", func() { p.sh(t, "echo changed > vault/key; echo x > a") })
	err := filepath.WalkDir(p.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "swordfish") {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAToolCapturesOneFileAndTheDirectoriesItMakes(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.write(t, "other", "O")
	before := p.fingerprint(t)
	c, err := p.store.Begin("write-file", "turn", undo.Scope{Root: p.root, Paths: []string{"new/deep/file.org"}})
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "new/deep/file.org", "* TODO\n")
	e, err := c.Commit()
	if err != nil || len(e.Changes) != 3 {
		t.Fatalf("wanted a file and two directories, got %+v %v", e, err)
	}
	if err := p.store.Undo(e.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.fingerprint(t); got != before {
		t.Errorf("got %s", got)
	}
}

func TestScopesThatLeaveTheirRootAreRefused(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.sh(t, "ln -s /etc link; mkdir inside; ln -s inside near")
	for name, s := range map[string]undo.Scope{
		"relative root":     {Root: "here"},
		"root through link": {Root: filepath.Join(p.root, "link")},
		"path upwards":      {Root: p.root, Paths: []string{"../store"}},
		"absolute path":     {Root: p.root, Paths: []string{"/etc/passwd"}},
		"path through link": {Root: p.root, Paths: []string{"link/passwd"}},
		"path through near": {Root: p.root, Paths: []string{"near/file"}},
		"no such root":      {Root: filepath.Join(p.root, "none")},
	} {
		if _, err := p.store.Begin(name, "", s); err == nil {
			t.Errorf("%s: wanted an error", name)
		}
	}
}

func TestAnUnchangedTreeIsNotRemembered(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.write(t, "a", "A")
	if e := p.do(t, "nothing", func() { p.sh(t, "cat a; touch a") }); e.ID != 0 || len(p.store.Entries()) != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestACrashBeforeCommitLosesNothing(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.write(t, "a", "A")
	p.write(t, "b", "B")
	before := p.fingerprint(t)
	if _, err := p.store.Begin("command", "turn", undo.Scope{Root: p.root}); err != nil {
		t.Fatal(err)
	}
	p.sh(t, "echo x > a; rm b; mkdir c")
	p.reopen(t, undo.Options{}) // the capture was never committed
	e, err := p.store.Last(false)
	if err != nil || !e.Interrupted || e.Label != "command" {
		t.Fatalf("wanted the interrupted change, got %+v %v", e, err)
	}
	if err := p.store.Undo(e.ID); err != nil {
		t.Fatal(err)
	}
	if got := p.fingerprint(t); got != before {
		t.Errorf("got\n%s\nwanted\n%s", got, before)
	}
}

func TestACrashInTheMiddleOfAnUndoIsFinished(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	for _, f := range []string{"a", "b", "d/c"} {
		p.write(t, f, f)
	}
	before := p.fingerprint(t)
	e := p.do(t, "command", func() { p.sh(t, "echo x > a; rm b; rm -r d; mkdir n; echo y > n/y") })
	// As if the process had died after the intent and the first steps.
	if err := p.store.LeaveIntent(e.ID); err != nil {
		t.Fatal(err)
	}
	p.sh(t, "printf a > a; rm n/y; mkdir -m 755 d; echo half > .passepartout-undo-b")
	p.reopen(t, undo.Options{})
	if got := p.fingerprint(t); got != before {
		t.Errorf("got\n%s\nwanted\n%s", got, before)
	}
	if es := p.store.Entries(); len(es) != 1 || !es[0].Undone {
		t.Errorf("got %+v", es)
	}
}

func TestEntriesSurviveARestart(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	p.write(t, "a", "A")
	before := p.fingerprint(t)
	first := p.do(t, "first", func() { p.write(t, "a", "B") })
	second := p.do(t, "second", func() { p.write(t, "a", "C") })
	p.reopen(t, undo.Options{})
	if got := p.store.Group("turn"); len(got) != 2 || got[0].ID != second.ID || got[1].ID != first.ID {
		t.Fatalf("got %+v", got)
	}
	for _, e := range p.store.Group("turn") {
		if err := p.store.Undo(e.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.fingerprint(t); got != before {
		t.Errorf("got %s", got)
	}
	if e, err := p.store.Last(true); err != nil || e.ID != first.ID {
		t.Errorf("next to redo: wanted the first, got %+v %v", e, err)
	}
	if _, err := p.store.Last(false); !errors.Is(err, undo.ErrNone) {
		t.Errorf("wanted nothing left to undo, got %v", err)
	}
}

func TestAStoreIsOpenedOnce(t *testing.T) {
	p := newPlace(t, undo.Options{})
	defer p.remove()
	if _, err := undo.Open(p.dir, undo.Options{}); !errors.Is(err, undo.ErrInUse) {
		t.Errorf("wanted ErrInUse, got %v", err)
	}
}

func TestBoundsForgetTheOldestFirst(t *testing.T) {
	p := newPlace(t, undo.Options{MaxEntries: 3, MaxBytes: 4000})
	defer p.remove()
	p.write(t, "a", "start")
	for i := range 10 {
		p.do(t, fmt.Sprint(i), func() { p.write(t, "a", strings.Repeat(fmt.Sprint(i), 1000)) })
	}
	es := p.store.Entries()
	if len(es) == 0 || len(es) > 3 || es[0].Label != "9" {
		t.Fatalf("got %d entries, newest %+v", len(es), es[0].Label)
	}
	var total int64
	err := filepath.WalkDir(filepath.Join(p.dir, "blobs"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		total += info.Size()
		return err
	})
	if err != nil || total > 4000 {
		t.Errorf("wanted at most 4000 bytes kept, got %d %v", total, err)
	}
	for _, e := range es {
		if err := p.store.Undo(e.ID); err != nil {
			t.Errorf("entry %s: %v", e.Label, err)
		}
	}
}

// TestUndoingEverythingGivesTheSameTree makes random changes in the ways tools
// and commands do, then goes all the way back and all the way forward.
func TestUndoingEverythingGivesTheSameTree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlace(rt, undo.Options{})
		defer p.remove()
		name := rapid.SampledFrom([]string{"a", "b", "c", "d/a", "d/b", "d/e/a", "f/a", "f/g/h/a", "ü ø"})
		text := rapid.StringN(0, 20, 40)
		for range rapid.IntRange(0, 5).Draw(rt, "files at first") {
			mess(rt, p, "write", name.Draw(rt, "name"), name.Draw(rt, "other"), text.Draw(rt, "text"))
		}
		states := []string{p.fingerprint(rt)}
		var ids []uint64
		for range rapid.IntRange(1, 8).Draw(rt, "changes") {
			e := p.do(rt, "change", func() {
				for range rapid.IntRange(1, 4).Draw(rt, "steps") {
					op := rapid.SampledFrom([]string{"write", "append", "remove", "rename", "link", "mode", "directory", "replace"}).Draw(rt, "op")
					mess(rt, p, op, name.Draw(rt, "name"), name.Draw(rt, "other"), text.Draw(rt, "text"))
				}
			})
			if e.ID != 0 {
				ids = append(ids, e.ID)
				states = append(states, p.fingerprint(rt))
			}
			if rapid.Bool().Draw(rt, "restart") {
				p.reopen(rt, undo.Options{})
			}
		}
		for i := len(ids) - 1; i >= 0; i-- {
			if err := p.store.Undo(ids[i]); err != nil {
				rt.Fatal(err)
			}
			if got := p.fingerprint(rt); got != states[i] {
				rt.Fatalf("undo %d:\n%s\nwanted\n%s", i, got, states[i])
			}
		}
		for i, id := range ids {
			if err := p.store.Redo(id); err != nil {
				rt.Fatal(err)
			}
			if got := p.fingerprint(rt); got != states[i+1] {
				rt.Fatalf("redo %d:\n%s\nwanted\n%s", i, got, states[i+1])
			}
		}
	})
}

// mess does one thing to the tree; what the tree makes impossible is left.
func mess(tb rapid.TB, p *place, op, rel, other, text string) {
	path, to := filepath.Join(p.root, rel), filepath.Join(p.root, other)
	parent := func(path string) bool { return os.MkdirAll(filepath.Dir(path), 0o755) == nil }
	switch op {
	case "write":
		if parent(path) {
			_ = os.WriteFile(path, []byte(text), 0o644)
		}
	case "append":
		if f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString(text)
			f.Close()
		}
	case "remove":
		_ = os.RemoveAll(path)
	case "rename":
		if parent(to) {
			_ = os.Rename(path, to)
		}
	case "link":
		if parent(path) {
			_ = os.Remove(path)
			_ = os.Symlink(text, path)
		}
	case "mode":
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			mode := []fs.FileMode{0o600, 0o755, 0o644, 0o500}[len(text)%4]
			if info.IsDir() {
				mode |= 0o700 // or the test itself could not look inside
			}
			_ = os.Chmod(path, mode)
		}
	case "directory":
		_ = os.MkdirAll(path, 0o755)
	case "replace":
		_ = os.RemoveAll(path)
		if parent(path) {
			_ = os.MkdirAll(filepath.Join(path, "inner"), 0o750)
		}
	default:
		tb.Fatalf("no operation called %s", op)
	}
}

func BenchmarkCaptureOfThousandFilesUnchanged(b *testing.B) {
	p := newPlace(b, undo.Options{})
	defer p.remove()
	for i := range 1000 {
		p.write(b, fmt.Sprintf("d%d/f%d", i%20, i), strings.Repeat("text ", 400))
	}
	p.do(b, "first", func() {})
	for b.Loop() {
		p.do(b, "nothing", func() {})
	}
}
