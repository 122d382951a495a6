package act_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"passepartout/internal/act"
)

func TestALinkMadeAfterTheRulingLeadsNowhere(t *testing.T) {
	const secret = "the secret outside"
	swaps := map[string]func(s *shop){
		"the file becomes a link": func(s *shop) {
			must(t, os.Remove(s.path("memex/notes/a.txt")))
			must(t, os.Symlink(s.path("outside/a.txt"), s.path("memex/notes/a.txt")))
		},
		"its directory becomes a link": func(s *shop) {
			must(t, os.Rename(s.path("memex/notes"), s.path("memex/moved")))
			must(t, os.Symlink(s.outside, s.path("memex/notes")))
		},
		"the memex becomes a link": func(s *shop) {
			must(t, os.MkdirAll(s.path("outside/notes"), 0o755))
			s.write("outside/notes/a.txt", secret)
			must(t, os.Rename(s.memex, s.path("elsewhere")))
			must(t, os.Symlink(s.outside, s.memex))
		},
	}
	calls := map[string]string{
		"read-file":       `:FILEPATH "notes/a.txt"`,
		"write-file":      `:FILEPATH "notes/a.txt" :CONTENT "overwritten"`,
		"replace-in-file": `:FILEPATH "notes/a.txt" :OLD "secret" :NEW "overwritten"`,
		"write-note":      `:FILEPATH "notes/new.org" :CONTENT "planted"`,
		"list-directory":  `:PATH "notes"`,
		"search-files":    `:PATH "notes" :PATTERN "secret"`,
	}
	for what, swap := range swaps {
		for tool, args := range calls {
			if what == "the file becomes a link" && !strings.Contains(args, "a.txt") {
				continue
			}
			t.Run(what+"/"+tool, func(t *testing.T) {
				s := open(t, act.Web{})
				s.write("memex/notes/a.txt", "an ordinary secret text")
				s.write("outside/a.txt", secret)
				p := s.permit(tool, args)
				swap(s)
				o := s.carryOut(context.Background(), p)
				if o.OK || strings.Contains(o.Text, secret) {
					t.Errorf("ok %t: %s", o.OK, o.Text)
				}
				if got := s.read("outside/a.txt"); got != secret {
					t.Errorf("the file outside became %q", got)
				}
				for _, planted := range []string{"outside/new.org", "outside/notes/new.org"} {
					if _, err := os.Lstat(s.path(planted)); err == nil {
						t.Errorf("%s was made", planted)
					}
				}
			})
		}
	}
}

func TestALinkThatWasJudgedIsFollowed(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/real.txt", "through a link")
	must(t, os.Symlink("real.txt", s.path("memex/alias.txt")))
	if o := s.succeeds("read-file", `:FILEPATH "alias.txt"`); o.Text != "through a link" {
		t.Errorf("read %q", o.Text)
	}
	s.succeeds("write-file", `:FILEPATH "alias.txt" :CONTENT "changed"`)
	if st, err := os.Lstat(s.path("memex/alias.txt")); err != nil || st.Mode()&os.ModeSymlink == 0 || s.read("memex/real.txt") != "changed" {
		t.Errorf("the link is %v and the file %q: want the file behind the link written", st.Mode(), s.read("memex/real.txt"))
	}
}

// A swap at any moment, also in the middle of an operation, shows or changes
// nothing outside.
func TestASwapInTheMiddleOfAnOperationLeadsNowhere(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/dir/a.txt", "inside")
	s.write("outside/a.txt", "the secret outside")
	must(t, os.Symlink(s.outside, s.path("memex/link")))
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default: // the directory and the link change places
				_ = os.Rename(s.path("memex/dir"), s.path("memex/tmp"))
				_ = os.Rename(s.path("memex/link"), s.path("memex/dir"))
				_ = os.Rename(s.path("memex/dir"), s.path("memex/link"))
				_ = os.Rename(s.path("memex/tmp"), s.path("memex/dir"))
			}
		}
	}()
	read := 0
	for range 300 {
		// Judged while the directory is a directory, or else not at all.
		for _, c := range []struct{ tool, args string }{
			{"read-file", `:FILEPATH "dir/a.txt"`}, {"write-file", `:FILEPATH "dir/a.txt" :CONTENT "inside"`},
		} {
			p := s.permit(c.tool, c.args)
			if abs, _ := p.Path("FILEPATH"); abs != s.path("memex/dir/a.txt") {
				continue
			}
			o := s.carryOut(context.Background(), p)
			if strings.Contains(o.Text, "secret") {
				t.Fatalf("%s: %s", c.tool, o.Text)
			}
			if o.OK {
				read++
			}
		}
	}
	close(stop)
	<-ended
	if got := s.read("outside/a.txt"); got != "the secret outside" {
		t.Errorf("the file outside became %q", got)
	}
	t.Logf("%d of 600 operations got through between swaps", read)
}

func TestFilesAreWrittenWholeWithTheirModeAndOnlyWhenUnchanged(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/run.sh", "echo old\n")
	must(t, os.Chmod(s.path("memex/run.sh"), 0o750))
	s.succeeds("write-file", `:FILEPATH "run.sh" :CONTENT "echo new"`)
	if st, err := os.Stat(s.path("memex/run.sh")); err != nil || st.Mode().Perm() != 0o750 || s.read("memex/run.sh") != "echo new" {
		t.Errorf("mode %v, text %q", st.Mode(), s.read("memex/run.sh"))
	}
	o := s.succeeds("write-file", `:FILEPATH "a/b/c.txt" :CONTENT "deep"`)
	if s.read("memex/a/b/c.txt") != "deep" || len(o.Changed) != 1 || o.Changed[0] != s.path("memex/a/b/c.txt") {
		t.Errorf("changed %v", o.Changed)
	}
	s.succeeds("write-note", `:FILEPATH "new.org" :CONTENT "* Note"`)
	if s.read("memex/new.org") != "* Note\n" {
		t.Errorf("note %q", s.read("memex/new.org"))
	}
	s.fails("exists already", "write-note", `:FILEPATH "new.org" :CONTENT "* Other"`)
	s.fails("no note", "write-note", `:FILEPATH "new.txt" :CONTENT "* Other"`)
	s.fails("is a directory", "write-file", `:FILEPATH "notes" :CONTENT "x"`)
	names, err := filepath.Glob(s.path("memex/.passepartout-*"))
	if err != nil || len(names) != 0 {
		t.Errorf("left behind: %v", names)
	}
}

func TestOnlyFilesAreRead(t *testing.T) {
	s := open(t, act.Web{})
	must(t, syscall.Mkfifo(s.path("memex/pipe"), 0o644))
	s.write("memex/binary", "\xff\xfe")
	s.fails("not a regular file", "read-file", `:FILEPATH "pipe"`)
	s.fails("not text", "read-file", `:FILEPATH "binary"`)
	s.fails("use list-directory", "read-file", `:FILEPATH "notes"`)
	s.fails("does not exist", "read-file", `:FILEPATH "nowhere"`)
	s.fails("not a directory", "read-file", `:FILEPATH "inbox.org/x"`)
	must(t, os.Truncate(s.path("memex/binary"), 9<<20))
	s.fails("at most", "read-file", `:FILEPATH "binary"`)
}

func TestLinesOfAFileAreCountedFromOne(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/five", "one\ntwo\nthree\nfour\nfive\n")
	for _, c := range []struct {
		args, want string
		cut        bool
	}{
		{"", "one\ntwo\nthree\nfour\nfive\n", false},
		{":FROM 2 :LINES 2", "two\nthree\n", true},
		{":FROM 4", "four\nfive\n", false},
		{":LINES 1", "one\n", true},
		{":FROM 5 :LINES 100", "five\n", false},
	} {
		if o := s.succeeds("read-file", `:FILEPATH "five" %s`, c.args); o.Text != c.want || o.Truncated != c.cut {
			t.Errorf("%s: got %q, truncated %t", c.args, o.Text, o.Truncated)
		}
	}
	s.fails("there is no line 6", "read-file", `:FILEPATH "five" :FROM 6`)
	s.fails("positive", "read-file", `:FILEPATH "five" :FROM 0`)
}

func TestAPassageIsReplacedWhenItStandsThereOnce(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/a.go", "package a\n\nfunc one() {\n\treturn\n}\n\nfunc two() {\n\treturn\n}\n")
	s.fails("stands 2 times", "replace-in-file", `:FILEPATH "a.go" :OLD "return" :NEW "panic()"`)
	s.fails("lines 4, 8", "replace-in-file", `:FILEPATH "a.go" :OLD "return" :NEW "panic()"`)
	s.fails("does not stand in", "replace-in-file", `:FILEPATH "a.go" :OLD "three" :NEW "x"`)
	s.fails("other white space", "replace-in-file", `:FILEPATH "a.go" :OLD "func two() { return" :NEW "x"`)
	s.fails("nothing would change", "replace-in-file", `:FILEPATH "a.go" :OLD "" :NEW "x"`)
	o := s.succeeds("replace-in-file", `:FILEPATH "a.go" :OLD "two() {
	return" :NEW "two() {
	panic()"`)
	if want := "package a\n\nfunc one() {\n\treturn\n}\n\nfunc two() {\n\tpanic()\n}\n"; s.read("memex/a.go") != want || !strings.Contains(o.Text, "line 7") {
		t.Errorf("%s gave\n%s", o.Text, s.read("memex/a.go"))
	}
}

func TestSearchStaysInItsDirectoryAndLeavesOutWhatMayNotBeRead(t *testing.T) {
	s := open(t, act.Web{})
	s.write("memex/src/a.go", "package a // needle one\n// Needle two\n")
	s.write("memex/src/b.txt", "a needle three (1)\n")
	s.write("memex/src/secrets/key", "needle in a secret\n")
	s.write("memex/src/.git/x", "needle in git\n")
	s.write("memex/src/bin", "needle\x00\n")
	s.write("outside/o.txt", "needle outside\n")
	must(t, os.Symlink(s.outside, s.path("memex/src/out")))
	must(t, os.Symlink(s.path("outside/o.txt"), s.path("memex/src/o.txt")))
	for _, c := range []struct{ tool, args, want string }{
		{"search-files", `:PATTERN "needle"`, "a.go:1: package a // needle one\nb.txt:1: a needle three (1)"},
		{"search-files", `:PATTERN "NEEDLE T" :IGNORE-CASE T`, "a.go:2: // Needle two\nb.txt:1: a needle three (1)"},
		{"search-files", `:PATTERN "(1)" :LITERAL T`, "b.txt:1: a needle three (1)"},
		{"search-files", `:PATTERN "needle" :FILES "*.go"`, "a.go:1: package a // needle one"},
		{"search-files", `:PATTERN "needle" :LIMIT 1`, "a.go:1: package a // needle one\n… there may be more; shown are 1"},
		{"find-files", `:NAME "*.go"`, "a.go"},
		{"find-files", `:NAME "*"`, "a.go\nb.txt\nbin\no.txt\nout"},
	} {
		if o := s.succeeds(c.tool, `:PATH "src" %s`, c.args); o.Text != c.want {
			t.Errorf("%s %s: got\n%s", c.tool, c.args, o.Text)
		}
	}
	if o := s.succeeds("search-files", `:PATH "src" :PATTERN "haystack"`); !strings.Contains(o.Text, "No line") {
		t.Errorf("got %s", o.Text)
	}
	s.fails("missing closing", "search-files", `:PATH "src" :PATTERN "(1"`)
	s.fails("syntax error", "find-files", `:PATH "src" :NAME "[a"`)
}

func TestWhatIsReadLabelsTheTurn(t *testing.T) {
	s := open(t, act.Web{})
	s.write("outside/page.txt", "text of others\n")
	s.write("memex/plain.txt", "own words\n")
	for _, c := range []struct {
		tool, args         string
		untrusted, private bool
	}{
		{"read-file", `:FILEPATH "plain.txt"`, false, false},
		{"read-file", `:FILEPATH "inbox.org"`, false, false},
		{"read-file", `:FILEPATH "notes/garden.org"`, false, true},
		{"read-file", `:FILEPATH "../outside/page.txt"`, true, false},
		{"search-files", `:PATH "." :PATTERN "own"`, false, false},
		{"search-files", `:PATH "." :PATTERN "quiet"`, false, true},
		{"search-files", `:PATH "../outside" :PATTERN "others"`, true, false},
		{"memory-search", `:QUERY "quiet day"`, false, true},
	} {
		if o := s.succeeds(c.tool, "%s", c.args); o.Taint.Untrusted != c.untrusted || o.Taint.Private != c.private {
			t.Errorf("%s %s: %v", c.tool, c.args, o.Taint)
		}
	}
}

func BenchmarkReadFile(b *testing.B) {
	s := open(b, act.Web{})
	s.write("memex/notes/a.txt", strings.Repeat("a line of text\n", 500))
	for b.Loop() {
		b.StopTimer()
		p := s.permit("read-file", `:FILEPATH "notes/a.txt"`)
		b.StartTimer()
		s.carryOut(context.Background(), p)
	}
}
