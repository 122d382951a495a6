package sandbox_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"passepartout/internal/sandbox"
)

// dryBox has files to change and a place to collect changes in.
func dryBox(t *testing.T) (b *box, dir string) {
	t.Helper()
	b = newBox(t, sandbox.Auto)
	if err := os.Remove(b.self); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(filepath.Dir(b.root), "overlay")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return b, dir
}

// fingerprint describes a tree: names, types, modes, content, targets.
func fingerprint(t *testing.T, root string) string {
	t.Helper()
	var sb strings.Builder
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		fmt.Fprintf(&sb, "%s %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&sb, " %x", sha256.Sum256(b))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return err
			}
			sb.WriteString(" " + to)
		}
		sb.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sb.String()
}

func TestADryRunListsChangesAndMakesNone(t *testing.T) {
	b, dir := dryBox(t)
	for f, text := range map[string]string{"keep": "k", "edit": "old", "drop": "d", "dir/a": "a", "dir/b": "b", "old/x": "x", "mode": "m"} {
		mustWrite(t, filepath.Join(b.root, f), text)
	}
	before := fingerprint(t, b.root)
	s := b.spec("echo new > edit; rm drop; rm -r dir; mkdir dir; echo again > dir/b; echo fresh > fresh; ln -s keep link; " +
		"mv old young; chmod 600 mode; echo gone > brief; rm brief; mkdir empty; cat edit")
	res, changes, err := sandbox.DryRun(t.Context(), s, dir)
	if errors.Is(err, sandbox.ErrUnavailable) {
		t.Skipf("cannot be shown here: %v", err)
	}
	if err != nil || !res.OK() || res.Stdout.String() != "new\n" {
		t.Fatalf("%v %+v %s%s", err, res.Cause, res.Stdout, res.Stderr)
	}
	if after := fingerprint(t, b.root); after != before {
		t.Errorf("a dry run changed the disk:\n%s\nwas\n%s", after, before)
	}
	var got []string
	for _, c := range changes {
		rel, err := filepath.Rel(b.root, c.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.Kind.String()+" "+rel)
	}
	want := []string{
		"modified dir", "deleted dir/a", "modified dir/b", "deleted drop", "modified edit", "created empty", "created fresh",
		"created link", "modified mode", "deleted old", "deleted old/x", "created young", "created young/x",
	}
	if !slices.Equal(got, want) {
		t.Errorf("wanted\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	for _, c := range changes {
		switch filepath.Base(c.Path) {
		case "edit":
			sum := sha256.Sum256([]byte("new\n"))
			if c.SHA256 != hex.EncodeToString(sum[:]) || mustRead(t, c.Upper) != "new\n" || c.Size != 4 {
				t.Errorf("got %+v", c)
			}
		case "link":
			if c.Target != "keep" || c.Mode&fs.ModeSymlink == 0 {
				t.Errorf("got %+v", c)
			}
		case "mode":
			if c.Mode.Perm() != 0o600 {
				t.Errorf("got %+v", c)
			}
		}
	}
}

func TestADryRunStillHidesSecrets(t *testing.T) {
	b, dir := dryBox(t)
	mustWrite(t, filepath.Join(b.root, "sub", "vault"), "swordfish")
	s := b.spec("cat sub/vault; ls " + dir + "; echo x > sub/vault; echo x > absent; mv sub other; true")
	s.Hidden = []string{filepath.Join(b.root, "sub", "vault"), filepath.Join(b.root, "absent")}
	res, changes, err := sandbox.DryRun(t.Context(), s, dir)
	if errors.Is(err, sandbox.ErrUnavailable) {
		t.Skipf("cannot be shown here: %v", err)
	}
	if err != nil || res.Stdout.Total != 0 || len(changes) != 0 {
		t.Errorf("got %v, %q, %+v", err, res.Stdout, changes)
	}
}

func TestADryRunRefusesWhatItCannotCover(t *testing.T) {
	b, dir := dryBox(t)
	mustWrite(t, filepath.Join(b.root, "file"), "x")
	inside := filepath.Join(b.root, "overlay")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		roots []string
		dir   string
		want  error
	}{
		"a file as a root":           {[]string{filepath.Join(b.root, "file")}, dir, sandbox.ErrSpec},
		"a root in a root":           {[]string{b.root, inside}, dir, sandbox.ErrSpec},
		"changes kept in the root":   {[]string{b.root}, inside, sandbox.ErrSpec},
		"a relative directory":       {[]string{b.root}, "here", sandbox.ErrSpec},
		"a directory that is absent": {[]string{b.root}, dir + "/none", sandbox.ErrSpec},
	} {
		t.Run(name, func(t *testing.T) {
			s := b.spec("true")
			s.WriteRoots = c.roots
			if _, _, err := sandbox.DryRun(t.Context(), s, c.dir); !errors.Is(err, c.want) {
				t.Errorf("wanted %v, got %v", c.want, err)
			}
		})
	}
}
