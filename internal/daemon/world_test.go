package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"passepartout/internal/secret"
)

func TestRealFollowsLinksAlsoToWhatDoesNotExist(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(names ...string) string { return filepath.Join(append([]string{dir}, names...)...) }
	if err := os.MkdirAll(at("real", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{
		"dirlink": "real", "dangling": "real/missing", "chain": "dangling", "absent": at("nowhere", "at", "all"), "loop1": "loop2", "loop2": "loop1",
	} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	w := world{scanner: secret.Default}
	for _, tt := range []struct {
		path, want string
		changed    bool
	}{
		{at("real", "sub"), at("real", "sub"), false},
		{at("dirlink", "sub"), at("real", "sub"), true},
		{at("dirlink", "new", "file"), at("real", "new", "file"), true},
		{at("dangling"), at("real", "missing"), true},
		{at("chain"), at("real", "missing"), true},
		{at("chain", "below"), at("real", "missing", "below"), true},
		{at("absent"), at("nowhere", "at", "all"), true},
		{at("not", "there"), at("not", "there"), false},
	} {
		got, changed := w.Real(tt.path)
		if changed != tt.changed || got != tt.want {
			t.Errorf("Real(%s) = %s, %v; want %s, %v", tt.path, got, changed, tt.want, tt.changed)
		}
	}
	if _, changed := w.Real(at("loop1")); !changed {
		t.Error("a loop of links passes for an ordinary path")
	}
}

func TestReadKeepsScriptsWithCredentialsOutOfTheRecord(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	w := world{scanner: secret.Default}
	if text, ok := w.Read(write("a.sh", "ls -la\n")); !ok || text != "ls -la\n" {
		t.Errorf("an ordinary script reads as %q, %v", text, ok)
	}
	for name, text := range map[string]string{
		"key.sh":    "export TOKEN=ghp_" + "0123456789abcdefghijABCDEFGHIJ012345\n",
		"binary.sh": "\xff\xfe\x00",
		"large.sh":  string(make([]byte, maxScript+1)),
	} {
		if _, ok := w.Read(write(name, text)); ok {
			t.Errorf("%s was read", name)
		}
	}
	if _, ok := w.Read(dir); ok {
		t.Error("a directory was read as a script")
	}
	for _, name := range []string{".env", "id_ed25519", "note.org", "old.org_archive"} { // by what they are, whatever they hold
		if _, ok := w.Read(write(name, "ls -la\n")); ok {
			t.Errorf("%s was read", name)
		}
	}
	link := filepath.Join(dir, "harmless.sh")
	if err := os.Symlink(".env", link); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Read(link); ok {
		t.Error("a credential was read through a link")
	}
}
