package daemon_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// gateSkill is a skill whose gate refuses a word, and says which version it is.
func gateSkill(version int, code string) string {
	return fmt.Sprintf("#+TITLE: gate\n\n#+begin_src lisp\n"+`(defparameter *version* %d)
(defun judge (action context)
  (declare (ignore context))
  (if (search "forbidden" (format nil "~a" (action-args action)))
      (reject "version %d refuses the word, as ~a does" *version*)
      action))
(defskill :gate :priority 1000 :deterministic #'judge)
%s`+"\n#+end_src\n", version, version, code)
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
		var r proto.Message
		for range 500 { // while the heartbeat happens to be loading it, decisions do not wait
			r = p.request(data(t, forbidden))
			if status(r.Payload) == c.status && strings.Contains(r.Payload.String(), c.text) {
				break
			}
		}
		if status(r.Payload) != c.status || !strings.Contains(r.Payload.String(), c.text) {
			t.Errorf("got %s, want %s and %q", r.Payload, c.status, c.text)
		}
	}
}

// mixed matches what a version says of itself twice.
var mixed = regexp.MustCompile(`version (\d+) refuses the word, as (\d+) does`)

// TestTurnsGoOnWhileASkillIsSaved saves a skill again and again, every third time
// broken, while turns run: each of them is answered, the gate is never absent, no
// broken version judges, and no judgement is made of two versions.
func TestTurnsGoOnWhileASkillIsSaved(t *testing.T) {
	turns, saves := 1000, 100
	if testing.Short() {
		turns, saves = 200, 20
	}
	s := settings(t)
	s.SkillsDir = filepath.Join(s.Home, "skills")
	file := filepath.Join(s.SkillsDir, "gate.org")
	writeSkill(t, file, gateSkill(0, ""))
	p := open(t, s).connect()
	due, saved := make(chan struct{}, saves), make(chan int)
	go func() {
		n := 0
		for range due {
			n++
			code := ""
			if n%3 == 0 {
				code = "(error \"broken\")"
			}
			if err := errors.Join(os.WriteFile(file+".new", []byte(gateSkill(n, code)), 0o600), os.Rename(file+".new", file)); err != nil {
				t.Error(err)
			}
		}
		saved <- n
	}()
	seen := map[string]bool{}
	for i := range turns {
		if i%(turns/saves) == 0 {
			due <- struct{}{} // it is saved while the turns go on
		}
		m, want := say("main", "hello"), sexp.Keyword("DONE")
		if i%2 == 0 {
			m, want = data(t, forbidden), "DENIED"
		}
		r := p.request(m)
		if r.Payload.Word("STATUS") != want {
			t.Fatalf("turn %d: got %s, want %s", i, r.Payload, want)
		}
		if want == "DENIED" {
			v := mixed.FindStringSubmatch(r.Payload.Text("TEXT"))
			if v == nil || v[1] != v[2] {
				t.Fatalf("turn %d was judged by a mix: %s", i, r.Payload)
			}
			if n, _ := strconv.Atoi(v[1]); n > 0 && n%3 == 0 {
				t.Fatalf("turn %d was judged by the broken version %d", i, n)
			}
			seen[v[1]] = true
		}
	}
	close(due)
	n := <-saved
	t.Logf("%d turns while the skill was saved %d times, %d of them broken; %d versions judged", turns, n, n/3, len(seen))
	if n != saves || len(seen) < saves/10 {
		t.Errorf("saved %d times, %d versions judged", n, len(seen))
	}
}

// hostile is a skill whose tools never end of themselves.
const hostile = "#+begin_src lisp\n" + `(def-cognitive-tool :spin "Spins." () :body (lambda (args) (declare (ignore args)) (loop)))
(def-cognitive-tool :hoard "Hoards." () :body (lambda (args) (declare (ignore args)) (let ((l nil)) (loop (push (make-string 1000) l)))))
(def-cognitive-tool :dig "Digs." () :body (lambda (args) (declare (ignore args)) (labels ((f (n) (1+ (f n)))) (f 1))))
(defskill :hostile)` + "\n#+end_src\n"

// TestHostileSkillsDoNotHoldUpOthers lets one session call tools that never end while
// another talks: every turn is answered, and it prints how long they took with and
// without them. With PASSEPARTOUT_SOAK the talk is longer.
func TestHostileSkillsDoNotHoldUpOthers(t *testing.T) {
	turns := 30
	if os.Getenv("PASSEPARTOUT_SOAK") != "" {
		turns = 1000
	}
	s := settings(t)
	s.SkillsDir = filepath.Join(s.Home, "skills")
	names := []string{"spin", "hoard", "dig"}
	for i := range 40 { // a skill that fails too often is left alone: many take turns
		text := hostile
		for _, n := range names {
			text = strings.ReplaceAll(text, ":"+n+" ", fmt.Sprintf(":%s-%d ", n, i))
		}
		writeSkill(t, filepath.Join(s.SkillsDir, fmt.Sprintf("hostile-%d.org", i)), text)
	}
	writeSkill(t, filepath.Join(s.MemexDir, "system/permissions.org"), "| tool | level |\n|---+---|\n| * | allow |\n")
	h := open(t, s)
	talk := func(p *peer) []time.Duration {
		var took []time.Duration
		for range turns {
			start := time.Now()
			if r := p.request(say("quiet", "hello")); r.Payload.Word("STATUS") != "DONE" {
				t.Fatalf("got %s", r.Payload)
			}
			took = append(took, time.Since(start))
		}
		slices.Sort(took)
		return took
	}
	p := h.connect()
	alone := talk(p)
	ready, stop, calls := make(chan struct{}), make(chan struct{}), make(chan int)
	go func() {
		q := h.connect()
		n := 0
		for {
			select {
			case <-stop:
				calls <- n
				return
			default:
			}
			if n == 1 {
				close(ready)
			}
			r, ok := q.try(proto.Message{Kind: proto.Request, Target: "tool", Meta: sexp.P(sexp.Keyword("SESSION-ID"), "loud"), Payload: sexp.P(
				sexp.Keyword("TOOL"), fmt.Sprintf("%s-%d", names[n%3], n/3%40), sexp.Keyword("ARGS"), sexp.Plist{}, sexp.Keyword("EXPLANATION"), "The owner asks for it.")})
			if !ok || r.Payload.Word("STATUS") == "" {
				t.Errorf("call %d was not answered: %v", n, r.Payload)
			}
			n++
		}
	}()
	<-ready
	beside := talk(p)
	close(stop)
	n := <-calls
	q := func(d []time.Duration, f float64) time.Duration {
		return d[int(f*float64(len(d)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("%d turns alone: median %v, 99th %v; beside %d hostile calls: median %v, 99th %v", turns, q(alone, 0.5), q(alone, 0.99), n, q(beside, 0.5), q(beside, 0.99))
}
