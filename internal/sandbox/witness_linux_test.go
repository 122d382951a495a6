package sandbox_test

import (
	"io"
	"os"
	"os/exec"
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

// listening skips a test where the kernel cannot tell this program from others.
func listening(t *testing.T, dir string) {
	t.Helper()
	end, err := sandbox.Witnesses["fanotify"]([]string{dir}, nil)
	if err != nil {
		t.Skip("no fanotify here: ", err)
	}
	end()
}

// TestWhatThisProgramOpensIsNotHeldAgainstACommand reads a file while a command waits
// for a word: before that word it has been let go, and is still there.
func TestWhatThisProgramOpensIsNotHeldAgainstACommand(t *testing.T) {
	onEach(t, func(t *testing.T, b *box) {
		listening(t, b.root)
		diary, store := filepath.Join(b.root, "diary"), filepath.Join(b.root, "store")
		if err := os.Mkdir(store, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{diary, filepath.Join(store, "pack")} {
			if err := os.WriteFile(f, []byte("x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for cmd, want := range map[string][]string{
			"read -r x":                       nil,
			"read -r x; cat diary":            {diary},
			"cat diary; read -r x":            {diary},
			"read -r x; cat store/pack":       {store},
			"read -r x; ln diary y; rm y":     {diary},
			"read -r x; cat diary store/pack": {diary, store},
		} {
			t.Run(cmd, func(t *testing.T) {
				r, w := io.Pipe()
				s := b.spec("echo here; " + cmd)
				s.Watched, s.Stdin = []string{diary, store}, r
				s.Sink = func(sandbox.Chunk) { // it runs: now is the time
					for _, f := range []string{diary, filepath.Join(store, "pack")} {
						if _, err := os.ReadFile(f); err != nil {
							t.Error(err)
						}
					}
					if err := os.Chmod(diary, 0o600); err != nil {
						t.Error(err)
					}
					w.Close()
				}
				if res := b.on(t).run(s); !slices.Equal(res.Opened, want) {
					t.Errorf("opened %v, want %v (%s)", res.Opened, want, res.Stderr)
				}
			})
		}
	})
}

func TestWhatAnotherProgramOpensCannotBeToldFromACommand(t *testing.T) {
	dir := t.TempDir()
	diary := filepath.Join(dir, "diary")
	if err := os.WriteFile(diary, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, watch := range sandbox.Witnesses {
		for what, do := range map[string]func() error{
			"opened":   func() error { return exec.Command("cat", diary).Run() },
			"as a dir": func() error { return exec.Command("ls", dir).Run() },
			"moved":    func() error { return exec.Command("sh", "-c", "cd "+dir+" && mv diary x && mv x diary").Run() },
			"linked":   func() error { return exec.Command("sh", "-c", "cd "+dir+" && ln diary x && rm x").Run() },
		} {
			for _, roots := range [][]string{nil, {dir}} {
				t.Run(name+" "+what, func(t *testing.T) {
					opened, err := watch([]string{diary}, roots)
					if err != nil {
						t.Skip(err)
					}
					if err := do(); err != nil {
						t.Error(err)
					}
					var want []string
					renames := what == "moved" || what == "linked" // a command that writes nowhere did neither
					if what != "as a dir" && (!renames || roots != nil) {
						want = []string{diary}
					}
					if got := opened(); !slices.Equal(got, want) {
						t.Errorf("roots %v: opened %v, want %v", roots, got, want)
					}
				})
			}
		}
	}
}

// TestOnlyWhatACommandCanMoveIsWatchedForIt has the write root itself moved, which
// nobody inside a sandbox can do, and a directory in it.
func TestOnlyWhatACommandCanMoveIsWatchedForIt(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "root")
	note := filepath.Join(root, "a", "b", "note")
	if err := os.MkdirAll(filepath.Dir(note), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(note, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	byLink := filepath.Join(base, "link")
	if err := os.Symlink(root, byLink); err != nil {
		t.Fatal(err)
	}
	for name, watch := range sandbox.Witnesses {
		for _, via := range []string{root, byLink} {
			opened, err := watch([]string{filepath.Join(via, "a", "b", "note")}, []string{root})
			if err != nil {
				t.Skip(name, err)
			}
			sh := func(line string) {
				t.Helper()
				if out, err := exec.Command("sh", "-c", "cd "+base+" && "+line).CombinedOutput(); err != nil {
					t.Fatal(err, string(out))
				}
			}
			sh("mv root x && mv x root")
			sh("mv root/a root/x && mv root/x root/a")
			if got, want := opened(), []string{filepath.Join(root, "a")}; !slices.Equal(got, want) {
				t.Errorf("%s: moved %v, want %v", name, got, want)
			}
		}
	}
}
