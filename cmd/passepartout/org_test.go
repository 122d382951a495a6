package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// orgRun runs "passepartout org …" in this process.
func orgRun(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{in: strings.NewReader(in), out: &out, errw: &out}
	cmd := a.orgCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func orgFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notes.org")
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestOrgDumpGoesOnAfterAFileItCannotRead(t *testing.T) {
	name := orgFile(t, "* TODO a :x:\n")
	out, err := orgRun(t, "missing.org\n"+name+"\n", "dump", "--jsonl")
	if err == nil {
		t.Error("a missing file is no failure")
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"ok":false`) {
		t.Fatalf("got %q", lines)
	}
	var got struct {
		OK        bool `json:"ok"`
		Headlines []struct {
			Todo string   `json:"todo"`
			Tags []string `json:"tags"`
		} `json:"headlines"`
	}
	if err := json.Unmarshal([]byte(lines[1]), &got); err != nil || !got.OK || got.Headlines[0].Todo != "TODO" || got.Headlines[0].Tags[0] != "x" {
		t.Errorf("%v: %+v", err, got)
	}
	if out, err := orgRun(t, "", "dump", "--roundtrip", name); err != nil || !strings.Contains(out, `"identical":true`) {
		t.Errorf("round trip: %q, %v", out, err)
	}
}

func TestOrgDumpWantsFilesOrPathsNotBoth(t *testing.T) {
	for _, args := range [][]string{{"dump"}, {"dump", "--jsonl", "x.org"}} {
		if _, err := orgRun(t, "", args...); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
}

func TestOrgEditWritesOneChangeAndKeepsTheMode(t *testing.T) {
	name := orgFile(t, "* a\nodd   spacing\n* TODO b\n")
	if _, err := orgRun(t, "", "edit", name, "b", "todo", "DONE"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "* a\nodd   spacing\n* DONE b\n"; string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if st, err := os.Stat(name); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode is %v, %v", st.Mode(), err)
	}
}

func TestOrgEditScriptsAreAllOrNothing(t *testing.T) {
	const src = "* a\n* b\n"
	name := orgFile(t, src)
	script := `{"target":"a","op":"title","args":["c"]}` + "\n" + `{"target":"nowhere","op":"delete"}` + "\n"
	if _, err := orgRun(t, script, "edit", "--script", name); err == nil {
		t.Fatal("a target that is not there was accepted")
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != src {
		t.Errorf("the file became %q, %v", got, err)
	}
	out, err := orgRun(t, "", "edit", "--dry-run", name, "line:2", "title", "c")
	if err != nil || strings.TrimSpace(out) != `{"end":7,"start":6,"text":"c"}` {
		t.Errorf("dry run: %q, %v", out, err)
	}
}

func TestOrgEditArchivesIntoTheFileBeside(t *testing.T) {
	name := orgFile(t, "* p\n** DONE b\ntext\n")
	if _, err := orgRun(t, "", "edit", "--at", "2026-03-14T15:09", name, "p/b", "archive", "notes.org"); err != nil {
		t.Fatal(err)
	}
	arc, err := os.ReadFile(name + "_archive")
	if err != nil {
		t.Fatal(err)
	}
	want := "* DONE b\n:PROPERTIES:\n:ARCHIVE_TIME: 2026-03-14 Sat 15:09\n:ARCHIVE_FILE: notes.org\n:ARCHIVE_OLPATH: p\n:ARCHIVE_CATEGORY: notes\n:ARCHIVE_TODO: DONE\n:END:\ntext\n"
	if string(arc) != want {
		t.Errorf("archive is %q, want %q", arc, want)
	}
	if got, _ := os.ReadFile(name); string(got) != "* p\n" {
		t.Errorf("file is %q", got)
	}
}

func TestOrgLintNamesFileAndLine(t *testing.T) {
	name := orgFile(t, "* a\n\n:PROPERTIES:\n:ID: x\n:END:\n")
	out, err := orgRun(t, "", "lint", name)
	if err == nil || !strings.HasPrefix(out, name+":3: property-place: ") {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestOrgConvertReadsBothWays(t *testing.T) {
	out, err := orgRun(t, "* Title\n/it/ [[https://example.org][x]]\n", "convert", "--to", "markdown", "-")
	if want := "# Title\n\n*it* [x](https://example.org)\n\n"; err != nil || out != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	out, err = orgRun(t, out, "convert", "--to", "org", "-")
	if want := "* Title\n/it/ [[https://example.org][x]]\n"; err != nil || out != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if _, err := orgRun(t, "", "convert", "--to", "pdf", "-"); err == nil {
		t.Error("pdf was accepted")
	}
}
