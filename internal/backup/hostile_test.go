package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/backup"
)

// An entry of a hand-made archive.
type entry struct {
	name, link string
	kind       byte
	mode       int64
	text       string
}

// forge makes an archive whose first and last entries are right, whatever is in
// between.
func forge(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	write := func(h *tar.Header, text string) {
		must(t, tw.WriteHeader(h))
		_, err := tw.Write([]byte(text))
		must(t, err)
	}
	note := func(name string, v any) {
		raw, err := json.Marshal(v)
		must(t, err)
		write(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(raw)), ModTime: made}, string(raw))
	}
	note("PASSEPARTOUT-BACKUP", map[string]any{"version": 1, "made": made, "roots": []string{"memex"}})
	all, total := sha256.New(), int64(0)
	for _, e := range entries {
		h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: e.mode, Size: int64(len(e.text)), ModTime: made}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		write(h, e.text)
		var sum []byte
		if e.kind == tar.TypeReg {
			s := sha256.Sum256([]byte(e.text))
			sum = s[:]
		}
		total += h.Size
		fmt.Fprintf(all, "%c %o %d %d %q %q %x\n", h.Typeflag, h.Mode, h.ModTime.UnixNano(), h.Size, strings.TrimSuffix(h.Name, "/"), h.Linkname, sum)
	}
	note("PASSEPARTOUT-END", map[string]any{"entries": len(entries), "bytes": total, "sha256": hex.EncodeToString(all.Sum(nil))})
	must(t, errors.Join(tw.Close(), zw.Close()))
	return out.Bytes()
}

var (
	rootDir = entry{name: "memex", kind: tar.TypeDir, mode: 0o755}
	subDir  = entry{name: "memex/a", kind: tar.TypeDir, mode: 0o755}
)

func TestAHostileArchiveIsRefusedAndNothingIsWritten(t *testing.T) {
	file := func(name string) entry { return entry{name: name, kind: tar.TypeReg, text: "harm"} }
	if base := t.TempDir(); restoreInto(t, base, forge(t, rootDir, file("memex/fine.org"))) != nil {
		t.Fatal("a forged archive that means no harm is refused: the others prove nothing")
	}
	for _, tt := range []struct {
		name    string
		entries []entry
	}{
		{"traversal", []entry{rootDir, file("memex/../../evil")}},
		{"traversal at the front", []entry{rootDir, file("../evil")}},
		{"traversal below", []entry{rootDir, subDir, file("memex/a/../../evil")}},
		{"absolute", []entry{rootDir, file("/evil")}},
		{"dot", []entry{rootDir, file("memex/./evil")}},
		{"double slash", []entry{rootDir, file("memex//evil")}},
		{"another root", []entry{rootDir, {name: "ssh", kind: tar.TypeDir}, file("ssh/authorized_keys")}},
		{"no root", []entry{file("evil")}},
		{"the root as a file", []entry{file("memex")}},
		{"no directory before its file", []entry{rootDir, file("memex/a/evil")}},
		{"link out, relative", []entry{rootDir, {name: "memex/l", link: "../../etc", kind: tar.TypeSymlink}}},
		{"link out, absolute", []entry{rootDir, {name: "memex/l", link: "/etc/passwd", kind: tar.TypeSymlink}}},
		{"link to nothing", []entry{rootDir, {name: "memex/l", kind: tar.TypeSymlink}}},
		{"a file through a link", []entry{rootDir, subDir, {name: "memex/l", link: "a", kind: tar.TypeSymlink}, file("memex/l/evil")}},
		{"the root as a link", []entry{{name: "memex", link: "/tmp", kind: tar.TypeSymlink}}},
		{"hard link", []entry{rootDir, {name: "memex/l", link: "/etc/passwd", kind: tar.TypeLink}}},
		{"hard link inside", []entry{rootDir, file("memex/x"), {name: "memex/l", link: "memex/x", kind: tar.TypeLink}}},
		{"character device", []entry{rootDir, {name: "memex/dev", kind: tar.TypeChar}}},
		{"block device", []entry{rootDir, {name: "memex/dev", kind: tar.TypeBlock}}},
		{"pipe", []entry{rootDir, {name: "memex/pipe", kind: tar.TypeFifo}}},
		{"twice", []entry{rootDir, file("memex/x"), file("memex/x")}},
		{"twice, as file and link", []entry{rootDir, {name: "memex/x", link: "a", kind: tar.TypeSymlink}, file("memex/x")}},
		{"twice, as directory and link", []entry{rootDir, subDir, {name: "memex/a", link: "/", kind: tar.TypeSymlink}}},
		{"a file as a directory", []entry{rootDir, file("memex/x"), file("memex/x/evil")}},
		{"setuid", []entry{rootDir, {name: "memex/x", kind: tar.TypeReg, mode: 0o4755}}},
		{"long name", []entry{rootDir, file("memex/" + strings.Repeat("x", 5000))}},
	} {
		base := t.TempDir()
		err := restoreInto(t, base, forge(t, tt.entries...))
		if !errors.Is(err, backup.ErrRefused) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if left := leftOver(t, base); left != "" {
			t.Errorf("%s: wrote %s", tt.name, left)
		}
	}
	// A bomb is refused when it says how large it is, before it is unpacked.
	base := t.TempDir()
	if err := restoreInto(t, base, bomb(t)); !errors.Is(err, backup.ErrRefused) || !strings.Contains(err.Error(), "bomb") {
		t.Errorf("a bomb: %v", err)
	}
	if left := leftOver(t, base); left != "" {
		t.Errorf("a bomb wrote %s", left)
	}
}

// bomb is the beginning of an archive of 2 GiB of zeros.
func bomb(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	first := `{"version":1,"made":"2026-11-15T09:30:00Z","roots":["memex"]}`
	must(t, tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "PASSEPARTOUT-BACKUP", Mode: 0o600, Size: int64(len(first)), ModTime: made}))
	_, err := tw.Write([]byte(first))
	must(t, err)
	must(t, tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "memex", Mode: 0o755, ModTime: made}))
	must(t, tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "memex/zeros", Mode: 0o644, Size: 2 << 30, ModTime: made}))
	_, err = tw.Write(make([]byte, 8<<20))
	must(t, errors.Join(err, zw.Close()))
	return out.Bytes()
}

// restoreInto restores as the command does, agreeing to everything it asks.
func restoreInto(t testing.TB, base string, raw []byte) error {
	t.Helper()
	target := filepath.Join(base, "inner", "memex")
	_, err := backup.Restore(bytes.NewReader(raw), map[string]string{"memex": target}, true, backup.Options{Size: int64(len(raw))})
	return err
}

func leftOver(t testing.TB, base string) string {
	t.Helper()
	entries, err := os.ReadDir(base)
	must(t, err)
	if len(entries) > 0 {
		return entries[0].Name()
	}
	return ""
}

func TestADamagedArchiveIsRefusedAndNothingIsWritten(t *testing.T) {
	src := t.TempDir()
	plant(t, src)
	for _, l := range []backup.Lock{lock, {Plain: true}} {
		file := filepath.Join(t.TempDir(), "out")
		_, err := backup.Create(file, []backup.Root{{Name: "memex", Dir: src}}, l, "", made)
		must(t, err)
		whole, err := os.ReadFile(file)
		must(t, err)
		k := keys
		if l.Plain {
			k = backup.Keys{}
		}
		try := func(what string, raw []byte) {
			t.Helper()
			base, hurt := t.TempDir(), filepath.Join(t.TempDir(), "hurt")
			must(t, os.WriteFile(hurt, raw, 0o600))
			a, err := backup.Open(hurt, k)
			if err == nil {
				defer a.Close()
				_, err = backup.Restore(a, map[string]string{"memex": filepath.Join(base, "memex")}, true, backup.Options{Size: a.Size()})
			}
			if err == nil && l.Plain && tree(t, filepath.Join(base, "memex")) == tree(t, src) {
				return // a bit that means nothing to gzip
			}
			if err == nil {
				t.Errorf("%s: restored", what)
			}
			if left := leftOver(t, base); left != "" {
				t.Errorf("%s: wrote %s", what, left)
			}
		}
		for i := 0; i < len(whole); i += 1 + len(whole)/12 {
			if l.Plain && i == 9 || l.Plain && i >= 3 && i <= 8 {
				continue // gzip's own time and system mean nothing
			}
			hurt := bytes.Clone(whole)
			hurt[i] ^= 0x20
			try(fmt.Sprintf("byte %d of %d flipped, plain %v", i, len(whole), l.Plain), hurt)
			try(fmt.Sprintf("cut to %d bytes of %d, plain %v", i, len(whole), l.Plain), whole[:i])
		}
		try("one byte short", whole[:len(whole)-1])
		try("one byte more", append(bytes.Clone(whole), 0))
		try("twice", append(bytes.Clone(whole), whole...))
	}
}

func TestAnArchiveWithLinksOutsideIsTakenOnlyWhenToldSo(t *testing.T) {
	src := filepath.Join(t.TempDir(), "memex")
	must(t, os.Mkdir(src, 0o700))
	must(t, os.Symlink("/usr/share/doc", filepath.Join(src, "doc")))
	var out bytes.Buffer
	s, err := backup.Write(&out, []backup.Root{{Name: "memex", Dir: src}}, "", made)
	if err != nil || len(s.Outside) != 1 {
		t.Fatalf("%+v: %v", s, err)
	}
	if err := restoreInto(t, t.TempDir(), out.Bytes()); !errors.Is(err, backup.ErrRefused) || !strings.Contains(err.Error(), "--outside-links") {
		t.Errorf("%v", err)
	}
	to := filepath.Join(t.TempDir(), "memex")
	_, err = backup.Restore(bytes.NewReader(out.Bytes()), map[string]string{"memex": to}, false, backup.Options{OutsideLinks: true})
	if err != nil || tree(t, to) != tree(t, src) {
		t.Errorf("%v", err)
	}
}

// FuzzCheck: whatever an archive holds, checking it ends, and what it accepts can
// be restored below its target and nowhere else.
func FuzzCheck(f *testing.F) {
	unzip := func(raw []byte) []byte {
		zr, err := gzip.NewReader(bytes.NewReader(raw))
		must(f, err)
		var out bytes.Buffer
		_, err = out.ReadFrom(zr)
		must(f, err)
		return out.Bytes()
	}
	f.Add(unzip(forge(f, rootDir, subDir, entry{name: "memex/a/x", kind: tar.TypeReg, text: "x"})))
	f.Add(unzip(forge(f, rootDir, entry{name: "memex/l", link: "a", kind: tar.TypeSymlink})))
	f.Add([]byte("PASSEPARTOUT-BACKUP"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		zw := gzip.NewWriter(&out)
		_, err := zw.Write(raw)
		must(t, errors.Join(err, zw.Close()))
		opt := backup.Options{Size: int64(out.Len())}
		if _, err := backup.Check(bytes.NewReader(out.Bytes()), opt); err != nil {
			return
		}
		base := t.TempDir()
		inner := filepath.Join(base, "inner")
		must(t, os.Mkdir(inner, 0o700))
		if _, err := backup.Restore(bytes.NewReader(out.Bytes()), map[string]string{"memex": filepath.Join(inner, "memex")}, false, opt); err != nil && !errors.Is(err, os.ErrInvalid) {
			t.Logf("accepted, then: %v", err)
		}
		if entries, err := os.ReadDir(base); err != nil || len(entries) != 1 {
			t.Fatalf("wrote outside of its target: %v", entries)
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), bytes.Repeat([]byte("* TODO A heading of the memex\n"), 100), 0o600))
	}
	out := b.TempDir()
	for i := 0; b.Loop(); i++ {
		_, err := backup.Create(filepath.Join(out, fmt.Sprint(i)), []backup.Root{{Name: "memex", Dir: dir}}, lock, "", time.Now())
		must(b, err)
	}
}
