package memory_test

import (
	"path/filepath"
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

// TestAPrivateHeadingStaysPrivateWhereverItIsArchived: the place is the user's choice
// (org-archive-location), and a heading may be archived below another.
func TestAPrivateHeadingStaysPrivateWhereverItIsArchived(t *testing.T) {
	const was = ":PROPERTIES:\n:Archive_Itags: @Personal\n:END:\n"
	f := newFixture(t, map[string]string{
		"archive.org":     "* Archived Tasks\n** Old\n" + was + "The canary sings.\n*** Older\n:PROPERTIES:\n:ARCHIVE_ITAGS: garden\n:END:\n",
		"b.org_archive":   "* Datetree\n** 2026\n*** Old too\n" + was,
		"open/c.org":      "* Open\n:PROPERTIES:\n:ARCHIVE_ITAGS: garden\n:END:\n",
		"wide.org":        "\xff\xfe*\x00 \x00W\x00i\x00d\x00e\x00\n\x00",
		"mac.org":         "#+TITLE: x\r#+FILETAGS: :private:\r* Mac\r",
		"latin.org":       "* Caf\xe9\nopen\n",
		"notes/plain.org": "* Plain\n",
	})
	v := f.open().View()
	for _, title := range []string{"Old", "Older", "Old too"} {
		if o := titled(t, v, title); !v.PrivateObject(o) {
			t.Errorf("%s is public", title)
		}
	}
	for name, want := range map[string]bool{
		string(titled(t, v, "Archived Tasks").ID): true, string(titled(t, v, "Datetree").ID): true, "archive.org": true, "b.org_archive": true,
		"open/c.org": false, "open": false, "latin.org": false, "notes": false, "wide.org": true, "mac.org": true,
	} {
		if v.Private(name) != want {
			t.Errorf("%s: private is %v", name, !want)
		}
	}
	if os, err := v.Match("is:private"); err != nil || len(os) != 3 {
		t.Errorf("is:private finds %d: %v", len(os), err)
	}
}

func TestAnIdentifierDoesNotSpeakForAFolderOfItsName(t *testing.T) {
	f := newFixture(t, map[string]string{
		"diary/2026.org": "#+FILETAGS: :@personal:\n* Monday\n",
		"a.org":          "* Open\n:PROPERTIES:\n:ID: diary-1\n:END:\n* Too\n:PROPERTIES:\n:ID: diary\n:END:\n",
	})
	s := f.open()
	for _, name := range []string{"diary", "diary/", "diary/2026.org", filepath.Join(f.dir, "diary")} {
		if !s.Private(name) {
			t.Errorf("%s is public", name)
		}
	}
	if s.Private("diary-1") {
		t.Error("the heading is private")
	}
}

// TestNothingTakesAnOriginBack: what came from elsewhere may say of itself what it likes.
func TestNothingTakesAnOriginBack(t *testing.T) {
	f := newFixture(t, map[string]string{
		"a.org": "* Page\n:PROPERTIES:\n:ORIGIN: web\n:ORIGIN:\n:END:\n** Part\n:PROPERTIES:\n:ORIGIN:\n:END:\n",
		"b.org": "#+PROPERTY: ORIGIN mail\n* Mail\n:PROPERTIES:\n:origin:\n:END:\n#+PROPERTY: ORIGIN\n",
		"c.org": ":PROPERTIES:\n:ORIGIN:\n:END:\n#+PROPERTY: ORIGIN\tmail\n* Letter\n",
		"d.org": "#+PROPERTY: header-args origin\n* Own\n",
	})
	v := f.open().View()
	for title, want := range map[string]string{"Page": "web", "Part": "web", "Mail": "mail", "Letter": "mail", "Own": ""} {
		if got := titled(t, v, title).Origin(); got != want {
			t.Errorf("%s: want origin %q, found %q", title, want, got)
		}
	}
	if os, err := v.Match("is:untrusted"); err != nil || len(os) != 4 {
		t.Errorf("is:untrusted finds %d: %v", len(os), err)
	}
}

// TestAHeadingTakesItsLabelsAlong: one that is private, or not the user's own, only by
// where it stands would be neither elsewhere.
func TestAHeadingTakesItsLabelsAlong(t *testing.T) {
	for _, kind := range []memory.ChangeKind{memory.Refile, memory.Archive} {
		f := newFixture(t, map[string]string{
			"in.org":     "#+FILETAGS: :@personal:\n#+PROPERTY: ORIGIN mail\n* Letter\n** Passage\n",
			"secret.org": "* Hidden\n",
			"plain.org":  "* Open\n",
		})
		o := f.options()
		o.Secluded = func(file string) bool { return file == "secret.org" }
		s, err := memory.Open(t.Context(), f.dir, o)
		if err != nil {
			t.Fatal(err)
		}
		to, _ := s.View().File("plain.org")
		for _, title := range []string{"Passage", "Hidden"} {
			o := titled(t, s.View(), title)
			_, err := s.Apply(t.Context(), memory.Tx{Edits: []memory.Edit{{Object: o.ID, Expect: o.Hash, Change: memory.Change{Kind: kind, Target: to.ID}}}})
			if err != nil {
				t.Fatal(err)
			}
			o = titled(t, s.View(), title)
			if !s.View().PrivateObject(o) {
				t.Errorf("%s: %s is public in %s", kind, title, o.File)
			}
			if want := map[string]string{"Passage": "mail"}[title]; o.Origin() != want {
				t.Errorf("%s: %s comes from %q, want %q", kind, title, o.Origin(), want)
			}
		}
		if o := titled(t, s.View(), "Open"); s.View().PrivateObject(o) || o.Origin() != "" {
			t.Errorf("%s: the labels spread", kind)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
