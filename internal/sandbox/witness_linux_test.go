package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"passepartout/internal/sandbox"
)

func TestARunTellsWhichWatchedFilesWereOpened(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		names := []string{"diary", "letters", "plain"}
		var files []string
		for _, n := range names {
			files = append(files, filepath.Join(b.root, n))
			if err := os.WriteFile(files[len(files)-1], []byte(n+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(files[1], filepath.Join(b.root, "another name")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(b.root, "store", "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, n := range []string{"store/pack", "store/sub/other"} {
			if err := os.WriteFile(filepath.Join(b.root, n), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		files = append(files, filepath.Join(b.root, "store"), filepath.Join(b.root, "deep", "down", "note"))
		if err := os.MkdirAll(filepath.Dir(files[4]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[4], nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for cmd, want := range map[string][]string{
			"ls -laR store; du store; cat store/sub/other":             nil,
			"cd store && cat pack":                                     {"store"},
			"mv plain moved; mv moved plain":                           {"plain"},
			"ln plain linked; rm linked":                               {"plain"},
			"mv store/../deep elsewhere; mv elsewhere deep":            {"deep"},
			"ls -la; stat diary; echo >> plain2; test -e letters":      nil,
			"cat diary plain":                                          {"diary", "plain"},
			"cat diary":                                                {"diary"},
			"cat 'another name' >/dev/null":                            {"letters"},
			"grep -rs nothing diary letters plain; true":               names,
			"mv plain moved; cat moved; mv moved plain":                {"plain"},
			"(exec 3<diary; sleep 0) & wait":                           {"diary"},
			"ln diary hard; ln -s hard soft; (cat soft); rm hard soft": {"diary"},
			"find . -type f | while read -r f; do :; done < plain":     {"plain"},
		} {
			t.Run(cmd, func(t *testing.T) {
				s := b.spec(cmd)
				s.Watched = append(slices.Clone(files), filepath.Join(b.root, "not there"))
				res := b.on(t).run(s)
				var got []string
				for _, f := range res.Opened {
					got = append(got, filepath.Base(f))
				}
				if !slices.Equal(got, want) {
					t.Errorf("opened %v, want %v (%s)", got, want, res.Stderr)
				}
			})
		}
	})
}

func TestADryRunRulesOutNoWatchedFile(t *testing.T) {
	b := newBox(t, sandbox.Namespaces)
	s := b.spec("true")
	s.Watched = []string{filepath.Join(b.root, "diary")}
	s.WriteRoots = []string{b.root}
	res, _, err := sandbox.DryRun(t.Context(), s, t.TempDir())
	if err != nil {
		t.Skip(err)
	}
	if !slices.Equal(res.Opened, s.Watched) {
		t.Errorf("opened %v", res.Opened)
	}
}
