package soak

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A canary is a secret that must be found nowhere but at home.
type canary struct {
	name, text string
	home       []string // path prefixes, relative to the run's directory
}

// Files of the notes.
const (
	cellFiles   = 3
	cellsEach   = 4
	victimFiles = 2
	stillFiles  = 6
)

// canaryOf is the text of a canary, made up when it is first asked for.
func (w *world) canaryOf(name string) string {
	for _, c := range w.canaries {
		if c.name == name {
			return c.text
		}
	}
	r := w.random("canary " + name)
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(r.UintN(256))
	}
	text := hex.EncodeToString(b)
	if name == "environment" {
		text = "sk-proj-" + text + text // as keys of that provider look
	}
	// Notes, private ones too, are in the history of the memex: that is what undo is
	// made of.
	home := map[string][]string{
		"note": {"memex/notes/areas/diary.org", "state/s/memory/", "state/s/undo/"}, "file": {"home/.ssh/"},
	}[name]
	w.canaries = append(w.canaries, canary{name, text, home})
	return text
}

const permissions = `#+TITLE: Permissions

| tool | level |
|-+-|
| shell | ask |
| * | allow |
`

const schedule = `#+TITLE: Schedule

* Tick
:PROPERTIES:
:CRON: */4 * * * * *
:CATCHUP: last
:QUIET: t
:DO: tool capture
:END:
(:TITLE "tick")
* Muse
:PROPERTIES:
:CRON: */15 * * * * *
:CATCHUP: none
:QUIET: t
:END:
soak job m00000
`

// still are files that nobody means to change, with bytes that are easily lost.
var still = [stillFiles]string{
	"* Plain\nnothing to see\n",
	"* Tabs\tand  blanks   \n\n\n\n** two below\t\n   - a list  \n",
	"* DOS\r\nlines end\r\nthis way\r\n",
	"* No newline at the end",
	"* Bytes \xff\xfe that are no text\n\x00\x01\n",
	"#+TITLE: Wide\n* 日本語 🎉 :tag:\n:PROPERTIES:\n:ID:       wide-1\n:END:\n| a | b |\n|---+---|\n| 1 | 2 |\n",
}

// furnish writes the notes and everything else a run begins with.
func (w *world) furnish() error {
	files := map[string]string{
		"memex/notes/system/permissions.org": permissions,
		"memex/notes/system/schedule.org":    schedule,
		"memex/notes/areas/diary.org":        "* Diary :@personal:\nI told nobody: " + w.canaryOf("note") + "\n",
		"home/.ssh/id_ed25519":               "-----BEGIN OPENSSH PRIVATE KEY-----\n" + w.canaryOf("file") + "\n-----END OPENSSH PRIVATE KEY-----\n",
		"home/canary":                        w.canaryOf("vault") + "\n",
	}
	for i := range cellFiles {
		files[filepath.Join("memex/notes/notes", cellFile(i))] = cellText(i)
	}
	for i := range victimFiles {
		files[filepath.Join("memex/notes/notes", victimFile(i))] = victimText(i)
	}
	for i, text := range still {
		files[filepath.Join("memex/notes/resources", fmt.Sprintf("still-%d.org", i))] = text
	}
	for _, dir := range []string{"run", "far", "tmp", "home/data/skills", "memex/notes/work", "memex/notes/inbox", "state"} {
		if err := os.MkdirAll(w.path(dir), 0o700); err != nil {
			return err
		}
	}
	var errs []error
	for name, text := range files {
		errs = append(errs, os.MkdirAll(filepath.Dir(w.path(name)), 0o700), os.WriteFile(w.path(name), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

func cellFile(i int) string   { return fmt.Sprintf("cells-%d.org", i) }
func victimFile(i int) string { return fmt.Sprintf("victim-%d.org", i) }

// cellText is a file of headings with one value each, which agents change, between
// headings that only the person's editor changes.
func cellText(i int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#+TITLE: Cells %d\nSome  text,\twith blanks   \n\n", i)
	for j := range cellsEach {
		fmt.Fprintf(&b, "* Cell %d-%d\n:PROPERTIES:\n:ID:       cell-%d-%d\n:V:        first\n:END:\nbelow  it \n* Hers %d-%d :her:\nwritten by hand: first\n", i, j, i, j, i, j)
	}
	return b.String()
}

func victimText(i int) string {
	return fmt.Sprintf("* Victim %d\n:PROPERTIES:\n:ID:       victim-%d\n:V:        first\n:END:\nIt comes and goes.\n%s* Tail\n", i, i, strings.Repeat("a line of text\n", 200))
}
