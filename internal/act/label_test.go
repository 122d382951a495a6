package act_test

import (
	"strings"
	"testing"

	"passepartout/internal/act"
	"passepartout/internal/proto"
)

// TestANoteWrittenAfterReadingForeignOrPrivateTextSaysSo: else a summary of a private
// letter could be sent off tomorrow.
func TestANoteWrittenAfterReadingForeignOrPrivateTextSaysSo(t *testing.T) {
	s := open(t, act.Web{})
	both := proto.Taint{Untrusted: true, Private: true}
	origin, private := "#+PROPERTY: ORIGIN conversation, turn s-9\n", "#+FILETAGS: :@personal:\n"
	for _, tt := range []struct {
		name, tool, args, file, before, want string
		taint                                proto.Taint
	}{
		{"nothing read", "write-note", `:FILEPATH "n1.org" :CONTENT "* A\n"`, "n1.org", "", "* A\n", proto.Taint{}},
		{"a new note", "write-note", `:FILEPATH "n2.org" :CONTENT "* A\n"`, "n2.org", "", origin + private + "* A\n", both},
		{"a file written over", "write-file", `:FILEPATH "n3.org" :CONTENT "* A\n"`, "n3.org", "old\n", private + "* A\n", proto.Taint{Private: true}},
		{"a passage replaced", "replace-in-file", `:FILEPATH "n4.org" :OLD "old" :NEW "new"`, "n4.org", "* old\n", origin + "* new\n", proto.Taint{Untrusted: true}},
		{"labels that are there", "replace-in-file", `:FILEPATH "n5.org" :OLD "old" :NEW "new"`, "n5.org", origin + private + "* old\n", origin + private + "* new\n", both},
		{"behind the file's drawer", "replace-in-file", `:FILEPATH "n6.org" :OLD "old" :NEW "new"`, "n6.org", ":PROPERTIES:\n:ID: x\n:END:\n* old\n", ":PROPERTIES:\n:ID: x\n:END:\n" + private + "* new\n", proto.Taint{Private: true}},
		{
			"what only looks like labels", "write-note", `:FILEPATH "n8.org" :CONTENT "#+PROPERTY: ORIGIN\n#+PROPERTY: header-args origin\n#+begin_example\n#+FILETAGS: :@personal:\n#+end_example\n* A\n"`, "n8.org", "",
			origin + private + "#+PROPERTY: ORIGIN\n#+PROPERTY: header-args origin\n#+begin_example\n#+FILETAGS: :@personal:\n#+end_example\n* A\n", both,
		},
		{
			"what only looks like a drawer", "write-note", `:FILEPATH "n9.org" :CONTENT ":PROPERTIES:\n:ID: x\n:end:\n#+begin_example\n:END:\n#+end_example\n"`, "n9.org", "",
			private + ":PROPERTIES:\n:ID: x\n:end:\n#+begin_example\n:END:\n#+end_example\n",
			proto.Taint{Private: true},
		},
		{"not a note", "write-file", `:FILEPATH "n7.txt" :CONTENT "a\n"`, "n7.txt", "old\n", "a\n", both},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := strings.TrimPrefix(s.memex, s.dir+"/") + "/" + tt.file
			if tt.before != "" {
				s.write(file, tt.before)
			}
			ctx := act.InTurn(t.Context(), act.Turn{ID: "s-9", Step: "a-9", Taint: tt.taint})
			if o := s.carryOut(ctx, s.permit(tt.tool, strings.ReplaceAll(tt.args, `\n`, "\n"))); !o.OK {
				t.Fatal(o.Text)
			}
			if got := s.read(file); got != tt.want {
				t.Errorf("want\n%s\nfound\n%s", tt.want, got)
			}
		})
	}
}

// TestALabelIsNotTakenOffByAnotherSpelling: letter case does not count where labels are
// looked for, and what was archived has them in a property.
func TestALabelIsNotTakenOffByAnotherSpelling(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/diary.org", "* Monday :@Personal:\n:PROPERTIES:\n:ID: monday\n:ARCHIVE_ITAGS: @personal\n:END:\n")
	must(t, s.memory.Refresh(t.Context()))
	for _, args := range []string{`:ID "monday" :TAGS ("open")`, `:ID "monday" :PROPERTY "archive_itags"`, `:ID "monday" :PROPERTY "ARCHIVE_ITAGS+" :VALUE "x"`, `:ID "monday" :PROPERTY "Origin" :VALUE "me"`} {
		if o, err := s.table.Do(s.step(), s.permit("org-edit", args)); err == nil && o.OK {
			t.Errorf("%s was carried out: %s", args, o.Text)
		}
	}
}
