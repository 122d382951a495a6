package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/sexp"
)

// gateSkill is a skill whose gate refuses a word, and says which version it is.
func gateSkill(version int, code string) string {
	return fmt.Sprintf("#+TITLE: gate\n\n#+begin_src lisp\n"+`(defun judge (action context)
  (declare (ignore context))
  (if (search "forbidden" (format nil "~a" (action-args action)))
      (reject "version %d refuses the word")
      action))
(defskill :gate :priority 1000 :deterministic #'judge)
%s`+"\n#+end_src\n", version, code)
}

func writeSkill(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
}

const forbidden = `(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "a forbidden word" :EXPLANATION "an answer to the question"))`

func TestASkillsGateJudgesBehindTheCompiledInOnes(t *testing.T) {
	s := settings(t)
	s.SkillsDir = filepath.Join(s.Home, "skills")
	file := filepath.Join(s.SkillsDir, "gate.org")
	writeSkill(t, file, gateSkill(1, ""))
	p := open(t, s).connect()
	status := func(m sexp.Plist) string { return string(m.Word("STATUS")) }
	for _, c := range []struct{ save, status, text string }{
		{"", "DENIED", "version 1 refuses the word"},
		{gateSkill(2, ""), "DENIED", "version 2 refuses the word"},
		{gateSkill(3, "(error \"broken\")"), "DENIED", "version 2 refuses the word"},
		{gateSkill(4, "(deftest no (is (= 1 2)))"), "DENIED", "version 2 refuses the word"},
		{"#+TITLE: no gate any more\n", "DONE", "a forbidden word"},
	} {
		if c.save != "" {
			writeSkill(t, file, c.save)
		}
		r := p.request(data(t, forbidden))
		if status(r.Payload) != c.status || !strings.Contains(r.Payload.String(), c.text) {
			t.Errorf("got %s, want %s and %q", r.Payload, c.status, c.text)
		}
	}
}

// TestTurnsGoOnWhileASkillIsSaved saves a skill again and again, every third time
// broken, while turns run: each of them is answered, and the gate is never absent.
func TestTurnsGoOnWhileASkillIsSaved(t *testing.T) {
	const turns, every = 200, 5
	s := settings(t)
	s.SkillsDir = filepath.Join(s.Home, "skills")
	file := filepath.Join(s.SkillsDir, "gate.org")
	writeSkill(t, file, gateSkill(0, ""))
	h := open(t, s)
	p := h.connect()
	stop, saved := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				saved <- n
				return
			default:
			}
			n++
			code := ""
			if n%3 == 0 {
				code = "(error \"broken\")"
			}
			if err := os.WriteFile(file+".new", []byte(gateSkill(n, code)), 0o600); err != nil {
				t.Error(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Error(err)
			}
		}
	}()
	for i := range turns {
		m, want := say("main", "hello"), sexp.Keyword("DONE")
		if i%every == 0 {
			m, want = data(t, forbidden), "DENIED"
		}
		if r := p.request(m); r.Payload.Word("STATUS") != want {
			t.Errorf("turn %d: got %s, want %s", i, r.Payload, want)
			break
		}
	}
	close(stop)
	t.Logf("%d turns while the skill was saved %d times", turns, <-saved)
}
