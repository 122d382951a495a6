package backup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"passepartout/internal/backup"
)

var (
	made = time.Date(2026, 11, 15, 9, 30, 0, 0, time.UTC)
	lock = backup.Lock{Passphrase: "correct horse", Work: 4}
	keys = backup.Keys{Passphrase: "correct horse"}
)

// plant makes a tree that has one of everything.
func plant(t testing.TB, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"inbox/inbox.org": "* TODO Something\n", "notes/ü and space.org": "x", "notes/line\nbreak": "y", `notes/back\slash`: "z",
		"empty": "", "large.bin": strings.Repeat("0123456789abcdef", 20_000), "locked/inner.org": "* A\n",
	} {
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "empty dir"), 0o750))
	must(t, os.Symlink("inbox/inbox.org", filepath.Join(dir, "link")))
	must(t, os.Symlink("../inbox", filepath.Join(dir, "notes", "up")))
	must(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	must(t, os.Chmod(filepath.Join(dir, "empty"), 0o400))
	must(t, os.Chmod(filepath.Join(dir, "large.bin"), 0o755))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	stamp := time.Date(2019, 2, 3, 4, 5, 6, 123456789, time.UTC)
	for i, name := range []string{"inbox/inbox.org", "inbox", "notes", "empty dir"} {
		must(t, os.Chtimes(filepath.Join(dir, name), time.Time{}, stamp.Add(time.Duration(i)*time.Hour)))
	}
	must(t, os.Chmod(filepath.Join(dir, "locked"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "locked"), 0o700) })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tree is everything about a tree that must come back.
func tree(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		if !st.Mode().IsRegular() && !st.IsDir() && st.Mode()&fs.ModeSymlink == 0 {
			return nil
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%q %v %d", rel, st.Mode(), st.ModTime().UnixNano())
		switch {
		case st.Mode().IsRegular():
			raw, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", raw)
		case st.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %q", to)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

func wipe(t testing.TB, dir string) {
	t.Helper()
	_ = os.Chmod(filepath.Join(dir, "locked"), 0o700)
	must(t, os.RemoveAll(dir))
}

func open(t testing.TB, file string, k backup.Keys) *backup.Archive {
	t.Helper()
	a, err := backup.Open(file, k)
	must(t, err)
	t.Cleanup(func() { a.Close() })
	return a
}

func TestBackupWipeRestoreIsTheSameTree(t *testing.T) {
	base := t.TempDir()
	memex, config := filepath.Join(base, "memex"), filepath.Join(base, "config")
	must(t, errors.Join(os.Mkdir(memex, 0o700), os.Mkdir(config, 0o700)))
	plant(t, memex)
	must(t, os.WriteFile(filepath.Join(config, "env"), []byte("MEMEX_USER=Jean\n"), 0o600))
	roots := []backup.Root{{Name: "memex", Dir: memex}, {Name: "config", Dir: config}, {Name: "data", Dir: filepath.Join(base, "none")}}
	targets := map[string]string{"memex": memex, "config": config}
	key, err := age.GenerateX25519Identity()
	must(t, err)
	for _, tt := range []struct {
		name string
		lock backup.Lock
		keys func() backup.Keys
	}{
		{"passphrase", lock, func() backup.Keys { return keys }},
		{"recipient", backup.Lock{Recipients: []string{key.Recipient().String()}}, func() backup.Keys {
			return backup.Keys{Identities: strings.NewReader(key.String())}
		}},
		{"plain", backup.Lock{Plain: true}, func() backup.Keys { return backup.Keys{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			was := tree(t, memex) + tree(t, config)
			file := filepath.Join(t.TempDir(), "out")
			s, err := backup.Create(file, roots, tt.lock, "test", made)
			must(t, err)
			if s.Files != 8 || s.Links != 3 || !s.Made.Equal(made) || len(s.Outside) != 0 {
				t.Errorf("packed %+v", s)
			}
			raw, err := os.ReadFile(file)
			st, serr := os.Stat(file)
			if err != nil || serr != nil || st.Mode().Perm() != 0o600 || !tt.lock.Plain && bytes.Contains(raw, []byte("inbox")) {
				t.Errorf("the archive has mode %v: %v %v", st.Mode(), err, serr)
			}
			if _, err := backup.Create(file, roots, tt.lock, "test", made); !errors.Is(err, fs.ErrExist) {
				t.Errorf("an archive was replaced: %v", err)
			}
			wipe(t, memex)
			wipe(t, config)
			a := open(t, file, tt.keys())
			res, err := backup.Restore(a, targets, false, backup.Options{Size: a.Size()})
			must(t, err)
			if res.Digest != s.Digest || res.Replaced != 0 {
				t.Errorf("restored %+v", res)
			}
			if is := tree(t, memex) + tree(t, config); is != was {
				t.Errorf("the trees differ:\n%s\n%s", was, is)
			}
			left, err := os.ReadDir(base)
			if err != nil || len(left) != 2 {
				t.Errorf("beside the targets there is %v", left)
			}
		})
	}
}

func TestAnythingThatFitsInAFileTreeComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		base, err := os.MkdirTemp("", "backup")
		must(t, err)
		defer os.RemoveAll(base)
		dir := filepath.Join(base, "memex")
		must(t, os.Mkdir(dir, 0o700))
		names := rapid.SliceOfN(rapid.StringMatching(`([a-c]/){0,3}[a-zü. -]{1,8}`), 0, 8).Draw(rt, "names")
		for _, n := range names {
			n = filepath.Join(dir, n)
			if os.MkdirAll(filepath.Dir(n), 0o755) == nil {
				_ = os.WriteFile(n, rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(rt, "text"), fs.FileMode(rapid.IntRange(0o400, 0o777).Draw(rt, "mode"))) // a directory may be there
			}
		}
		was := tree(t, dir)
		var out bytes.Buffer
		if _, err := backup.Write(&out, []backup.Root{{Name: "memex", Dir: dir}}, "", made); err != nil {
			rt.Fatal(err)
		}
		must(t, os.RemoveAll(dir))
		if _, err := backup.Restore(bytes.NewReader(out.Bytes()), map[string]string{"memex": dir}, false, backup.Options{}); err != nil {
			rt.Fatal(err)
		}
		if is := tree(t, dir); is != was {
			rt.Fatalf("the trees differ:\n%s\n%s", was, is)
		}
	})
}

func TestWhatIsThereIsNotReplacedWithoutBeingTold(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "memex")
	must(t, os.Mkdir(dir, 0o700))
	for _, n := range []string{"a.org", "b.org", "c.org"} {
		must(t, os.WriteFile(filepath.Join(dir, n), []byte("old "+n), 0o600))
	}
	var out bytes.Buffer
	_, err := backup.Write(&out, []backup.Root{{Name: "memex", Dir: dir}}, "", made)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "a.org"), []byte("new"), 0o600))
	must(t, os.Remove(filepath.Join(dir, "b.org")))
	must(t, os.WriteFile(filepath.Join(dir, "mine.org"), []byte("mine"), 0o600))
	was := tree(t, base)
	targets := map[string]string{"memex": dir}

	p, err := backup.Plan(bytes.NewReader(out.Bytes()), targets, backup.Options{})
	if err != nil || !slices.Equal(p.Differs, []string{"memex/a.org"}) || p.New != 1 {
		t.Errorf("the plan is %+v: %v", p, err)
	}
	if _, err := backup.Restore(bytes.NewReader(out.Bytes()), targets, false, backup.Options{}); !errors.Is(err, backup.ErrDiffers) {
		t.Errorf("restored over a file: %v", err)
	}
	if tree(t, base) != was {
		t.Error("a refused restore changed something")
	}
	res, err := backup.Restore(bytes.NewReader(out.Bytes()), targets, true, backup.Options{})
	must(t, err)
	if res.Replaced != 1 || len(res.Saved) != 1 {
		t.Fatalf("replaced %+v", res)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "a.org"): "old a.org", filepath.Join(dir, "b.org"): "old b.org", filepath.Join(dir, "mine.org"): "mine",
		filepath.Join(res.Saved[0], "a.org"): "new",
	} {
		if raw, err := os.ReadFile(name); err != nil || string(raw) != want {
			t.Errorf("%s holds %q, want %q: %v", name, raw, want, err)
		}
	}
	// A file where a directory must be stops everything.
	must(t, os.RemoveAll(dir))
	must(t, os.WriteFile(dir, nil, 0o600))
	if _, err := backup.Restore(bytes.NewReader(out.Bytes()), targets, true, backup.Options{}); !errors.Is(err, backup.ErrDiffers) {
		t.Errorf("a file in the way: %v", err)
	}
}

func TestARootInsideAnotherIsPackedOnce(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "system", "state"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "system", "state", "journal"), []byte("x"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "skipped.lock"), []byte("x"), 0o600))
	var out bytes.Buffer
	s, err := backup.Write(&out, []backup.Root{
		{Name: "memex", Dir: dir, Skip: func(rel string) bool { return strings.HasSuffix(rel, ".lock") }},
		{Name: "state", Dir: filepath.Join(dir, "system", "state")},
	}, "", made)
	if err != nil || s.Files != 1 {
		t.Errorf("%+v: %v", s, err)
	}
}

func TestTheWrongKeyDoesNotOpenIt(t *testing.T) {
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "out")
	_, err := backup.Create(file, []backup.Root{{Name: "memex", Dir: dir}}, lock, "", made)
	must(t, err)
	for _, k := range []backup.Keys{{Passphrase: "wrong horse"}, {Identities: strings.NewReader("nonsense")}} {
		if _, err := backup.Open(file, k); !errors.Is(err, backup.ErrKey) {
			t.Errorf("%v", err)
		}
	}
	if sealed, phrase, err := backup.Encrypted(file); err != nil || !sealed || !phrase {
		t.Errorf("Encrypted: %v %v %v", sealed, phrase, err)
	}
	for _, l := range []backup.Lock{{}, {Recipients: []string{"age1nonsense"}}, {Passphrase: "x", Recipients: []string{"y"}}} {
		if _, err := backup.Create(filepath.Join(dir, "no"), nil, l, "", made); err == nil {
			t.Errorf("a lock of %d recipients was taken", len(l.Recipients))
		}
	}
}
