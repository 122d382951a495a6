package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"passepartout/internal/place"
)

// plant makes files below dir.
func plant(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, n := range names {
		p := filepath.Join(dir, n)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("KEY-MATERIAL"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// testSealer looks after a home with one root in it.
func testSealer(t testing.TB) (s *sealer, home string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(home, "work")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return &sealer{home: home, roots: []string{root}, layout: place.Layout{Home: home, User: "ann"}, most: secretNames, seen: map[string]listing{}}, home
}

func TestCredentialsAreHiddenHoweverDeepTheyLie(t *testing.T) {
	s, home := testSealer(t)
	secret := []string{
		".ssh/id_ed25519", "a/b/c/d/e/f/.ssh/config", "old/disk/2019/home/ann/.aws/credentials", "work/.env",
		"work/x/y/z/deploy/.env.production", "work/x/y/z/keys/server.key", "work/vendor/thing/id_rsa", "mail/a/b/c/d/.netrc", ".config/gcloud/deep/er/creds.db",
	}
	plain := []string{"work/main.go", "work/x/y/z/readme", "a/b/c/d/e/f/notes.org", "work/.env.example", "go/pkg/mod/tls@v1/testdata/server.key", "work/node_modules/p/test/server.key"}
	plant(t, home, append(slices.Clone(secret), plain...)...)
	hides := func(name string) bool {
		return slices.ContainsFunc(s.paths(), func(h string) bool { return inside(filepath.Join(home, name), h) })
	}
	for _, n := range secret {
		if !hides(n) {
			t.Errorf("%s is in sight", n)
		}
	}
	for _, n := range plain {
		if hides(n) {
			t.Errorf("%s is hidden", n)
		}
	}
	// What comes later is seen later, in a directory that was looked at before.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(home, "work/x/y/z"), old, old); err != nil {
		t.Fatal(err)
	}
	s.paths()
	plant(t, home, "work/x/y/z/id_ed25519")
	if !hides("work/x/y/z/id_ed25519") {
		t.Error("a new key is in sight")
	}
	if err := os.Remove(filepath.Join(home, "work/x/y/z/id_ed25519")); err != nil || hides("work/x/y/z/id_ed25519") {
		t.Error("what is gone is still looked for", err)
	}
}

func TestWhatThereWasNoTimeToLookAtIsHidden(t *testing.T) {
	s, home := testSealer(t)
	plant(t, home, "near/a", "near/far/b", "near/far/away/.ssh/id_rsa", "work/p/q/r/code.go")
	s.most = 4
	got := s.paths()
	if !slices.Contains(got, filepath.Join(home, "near/far")) && !slices.Contains(got, filepath.Join(home, "near")) {
		t.Errorf("hidden are %v", got)
	}
	if slices.ContainsFunc(got, func(p string) bool { return inside(p, filepath.Join(home, "work")) || p == home }) {
		t.Errorf("a root is hidden: %v", got)
	}
}

func TestManyCredentialsTakeTheirDirectoriesAlong(t *testing.T) {
	s, home := testSealer(t)
	for i := range 40 {
		for j := range 20 {
			plant(t, home, fmt.Sprintf("backup/%d/keys/%d.key", i, j))
		}
	}
	plant(t, home, ".netrc", "work/.env")
	got := s.paths()
	if len(got) > secretMasks {
		t.Errorf("%d masks", len(got))
	}
	for _, n := range []string{"backup/3/keys/7.key", ".netrc", "work/.env"} {
		if !slices.ContainsFunc(got, func(h string) bool { return inside(filepath.Join(home, n), h) }) {
			t.Errorf("%s is in sight", n)
		}
	}
	if slices.Contains(got, home) || slices.ContainsFunc(got, func(p string) bool { return strings.HasSuffix(p, "/work") }) {
		t.Errorf("too much is hidden: %v", got)
	}
}

func BenchmarkTheLookForCredentials(b *testing.B) {
	s, home := testSealer(b)
	for i := range 300 {
		for j := range 10 {
			plant(b, home, fmt.Sprintf("d%d/e%d/file", i, j))
		}
	}
	old := time.Now().Add(-time.Hour)
	_ = filepath.WalkDir(home, func(p string, d os.DirEntry, _ error) error {
		if d.IsDir() {
			return os.Chtimes(p, old, old)
		}
		return nil
	})
	s.paths()
	for b.Loop() {
		s.paths()
	}
}
