package memory_test

import (
	"testing"

	"passepartout/internal/memory"
)

func TestWhatWasArchivedFromAPrivatePlaceStaysPrivate(t *testing.T) {
	f := newFixture(t, map[string]string{
		"diary.org":         "#+FILETAGS: :@personal:\n* Monday\n** Morning\nThe canary sings.\n* Tuesday\n",
		"plain.org":         "* Note\nOpen.\n",
		"plain.org_archive": "* Old note\n:PROPERTIES:\n:ARCHIVE_ITAGS: home garden\n:END:\nOpen.\n",
	})
	s, err := memory.Open(t.Context(), f.dir, f.options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	monday, _ := s.View().Lookup("diary.org:2")
	if _, err := s.Apply(t.Context(), memory.Tx{Actor: "agent", Edits: []memory.Edit{{Object: monday.ID, Expect: monday.Hash, Change: memory.Change{Kind: memory.Archive}}}}); err != nil {
		t.Fatal(err)
	}
	v := s.View()
	file, ok := v.File("diary.org_archive")
	if !ok {
		t.Fatal("nothing was archived")
	}
	for o := range file.Children() {
		if !v.PrivateObject(o) || !v.Private(string(o.ID)) {
			t.Errorf("%s is public", o.Title)
		}
		for c := range o.Children() {
			if !v.PrivateObject(c) {
				t.Errorf("%s is public", c.Title)
			}
		}
	}
	if !v.Private("diary.org_archive") {
		t.Error("the archive is public")
	}
	if v.Private("plain.org_archive") {
		t.Error("an archive of open notes is private")
	}
}
