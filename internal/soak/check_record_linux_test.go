package soak

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// An entry is one line of the journal as this checker reads it.
type entry struct {
	seq  int
	body sexp.Plist
}

// A past is the journal, read without the journal's own code.
type past struct {
	entries []entry
	wrong   []string
}

var journalLine = regexp.MustCompile(`^\(:SEQ (\d+) :AT "[^"]*" :PREV "([0-9a-f]{64})" :ENTRY (.*)\) ;([0-9a-f]{64})$`)

// readJournal walks the segments in the order of their names. Each line must have
// its own sum, the sum of the line before and the next number.
func (w *world) readJournal() *past {
	p := &past{}
	names, err := filepath.Glob(w.path("state", "s", "journal", "*"))
	if err != nil {
		p.wrong = append(p.wrong, err.Error())
	}
	slices.Sort(names)
	prev, seq := strings.Repeat("0", 64), 0
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil || !bytes.HasPrefix(raw, []byte("(:SEQ ")) {
			continue // a lock, or what a crash tore off
		}
		if filepath.Ext(name) == ".torn" || strings.Contains(name, "torn") {
			continue
		}
		for i, line := range bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")) {
			m := journalLine.FindSubmatch(line)
			if m == nil {
				p.wrong = append(p.wrong, fmt.Sprintf("%s:%d is no entry: %.200s", filepath.Base(name), i+1, line))
				continue
			}
			sum := sha256.Sum256(line[:len(line)-66])
			seq++
			switch {
			case hex.EncodeToString(sum[:]) != string(m[4]):
				p.wrong = append(p.wrong, fmt.Sprintf("%s:%d does not have its own sum", filepath.Base(name), i+1))
			case string(m[2]) != prev:
				p.wrong = append(p.wrong, fmt.Sprintf("%s:%d does not follow the line before it", filepath.Base(name), i+1))
			case string(m[1]) != fmt.Sprint(seq):
				p.wrong = append(p.wrong, fmt.Sprintf("%s:%d has the number %s instead of %d", filepath.Base(name), i+1, m[1], seq))
			}
			prev = string(m[4])
			body, err := sexp.ReadPlist(m[3], sexp.Limits{Depth: 1000, Items: 1 << 20, Symbols: 1 << 16})
			if err != nil {
				p.wrong = append(p.wrong, fmt.Sprintf("%s:%d cannot be read: %v", filepath.Base(name), i+1, err))
			}
			p.entries = append(p.entries, entry{seq, body})
		}
	}
	return p
}

// checkChain: the record is whole, by this walk and by the program's own.
func (w *world) checkChain(p *past) finding {
	f := finding{check: "journal entries chained, by a walk of our own and by journal verify", examined: len(p.entries), wrong: p.wrong}
	out, talk, code := w.run(context.Background(), w.env, "journal", "verify")
	if code != 0 {
		f.add("journal verify: %s%s", out, talk)
	}
	if len(p.entries) == 0 {
		f.add("the journal is empty")
	}
	return f
}

// checkSignals: a message was taken up once. Telegram's may be begun again after a
// crash that left no effect, which the effects show.
func (w *world) checkSignals(p *past) finding {
	f := finding{check: "messages in the journal once (Telegram: begun again only without effect)"}
	seen := map[string]int{}
	for _, e := range p.entries {
		if e.body.Word("KIND") != "SIGNAL" || e.body.Sub("BODY").Word("SENSOR") != "USER-INPUT" {
			continue
		}
		text := e.body.Sub("BODY").Text("TEXT")
		if !asked.MatchString(text) {
			continue
		}
		f.examined++
		mark := markWord.FindString(text)
		switch m := w.ledger.find(mark); {
		case m == nil:
			f.add("the journal has a message nobody sent: %q", text)
		case m.by != "telegram":
			if seen[mark]++; seen[mark] == 2 {
				f.add("%s %s of %s was taken up twice", m.kind, mark, m.by)
			}
		}
	}
	for _, m := range w.ledger.all {
		if m.fate == answered && m.status == "done" && m.by != "telegram" && seen[m.mark] == 0 {
			f.add("%s %s of %s was answered, and the journal does not know it", m.kind, m.mark, m.by)
		}
	}
	return f
}

// checkRulings: what was done had been allowed before, in the order of the record.
func (w *world) checkRulings(p *past) finding {
	f := finding{check: "outcomes preceded by their allowing ruling"}
	decision := map[string]string{}
	for _, e := range p.entries {
		switch e.body.Word("KIND") {
		case "RULING":
			decision[e.body.Text("ID")] = string(e.body.Sub("TRACE").Word("DECISION"))
		case "OUTCOME":
			f.examined++
			if d := decision[e.body.Text("RULING")]; d != "ALLOW" {
				f.add("entry %d is the outcome of %s, whose ruling before it is %q", e.seq, e.body.Text("RULING"), d)
			}
		}
	}
	return f
}

// checkReplay: every ruling, decided again from its recorded facts, is the same.
func (w *world) checkReplay() finding {
	f := finding{check: "rulings decided again from their recorded facts"}
	out, talk, code := w.run(context.Background(), w.env, "policy", "replay", "--verify")
	if _, err := fmt.Sscanf(strings.TrimSpace(out), "%d", &f.examined); err != nil {
		w.note("policy replay: %s%s", out, talk)
	}
	if code != 0 {
		f.add("policy replay --verify: %s%s", last(out, 2000), last(talk, 1000))
	}
	return f
}

// checkEffects: what is on disk was allowed before, happened once, and is there
// when somebody was told so.
func (w *world) checkEffects(p *past) finding {
	f := finding{check: "effects on disk: allowed before, never twice, there when told so"}
	allowed, ok := map[string]bool{}, map[string]bool{}
	of := map[string]string{}
	for _, e := range p.entries {
		switch e.body.Word("KIND") {
		case "RULING":
			mark := markWord.FindString(strings.ReplaceAll(e.body.Sub("ACTION").Sub("ARGS").String(), "-", " "))
			if mark != "" && e.body.Sub("TRACE").Word("DECISION") == "ALLOW" && e.body.Sub("ACTION").Word("VERB") != "MESSAGE" {
				allowed[mark] = true
				of[e.body.Text("ID")] = mark
			}
		case "OUTCOME":
			if v, has := e.body.Get("OK"); has && fmt.Sprint(v) == "T" && of[e.body.Text("RULING")] != "" {
				ok[of[e.body.Text("RULING")]] = true
			}
		}
	}
	found := w.effectsOnDisk(&f)
	for mark, n := range found {
		f.examined++
		if n > 1 {
			f.add("the effect of %s happened %d times", mark, n)
		}
		if !allowed[mark] {
			f.add("the effect of %s happened without a ruling", mark)
		}
	}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for _, m := range w.ledger.all {
		switch m.kind {
		case "capture", "tests", "write", "ask":
			if m.done() && found[m.mark] == 0 {
				f.add("%s %s of %s was told to be done at %v, and is not there", m.kind, m.mark, m.by, m.ended)
			}
			if ok[m.mark] && found[m.mark] == 0 {
				f.add("%s %s of %s: the journal has its good outcome, and the effect is not there", m.kind, m.mark, m.by)
			}
		}
	}
	return f
}

// inboxLine are the lines an agent may have written into the inbox.
var inboxLine = regexp.MustCompile(`^(\* (TODO )?(item m\d{5}|tick)|:PROPERTIES:|:ID: .*|:ORIGIN: .*|:END:|)$`)

// effectsOnDisk counts the marks where effects of the run leave them.
func (w *world) effectsOnDisk(f *finding) map[string]int {
	found := map[string]int{}
	raw, err := os.ReadFile(w.notes("inbox", "inbox.org"))
	if err != nil {
		f.add("%v", err)
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if !inboxLine.MatchString(line) {
			f.add("inbox.org holds a line nobody asked for: %q", line)
		}
		if strings.HasPrefix(line, "* ") {
			if mark := markWord.FindString(line); mark != "" {
				found[mark]++
			}
		}
	}
	for _, name := range []string{"done.log", "approved.log"} {
		raw, _ := os.ReadFile(w.notes("work", name)) // nobody need have got so far
		for line := range strings.Lines(string(raw)) {
			if mark := strings.TrimSuffix(line, "\n"); markWord.FindString(mark) != mark {
				f.add("%s holds a line nobody asked for: %q", name, line)
			} else {
				found[mark]++
			}
		}
	}
	files, err := os.ReadDir(w.notes("work"))
	if err != nil {
		f.add("%v", err)
	}
	for _, e := range files {
		mark := markWord.FindString(strings.ReplaceAll(e.Name(), "-", " "))
		switch {
		case strings.HasPrefix(e.Name(), "loot-"):
			continue // a command of a thief may run; that it finds nothing is the canaries' matter
		case e.Name() == "file-"+mark+".txt":
			found[mark]++
			if raw, err := os.ReadFile(w.notes("work", e.Name())); err != nil || string(raw) != "wrote-"+mark+"\n" {
				f.add("%s holds %q (%v)", e.Name(), raw, err)
			}
		case e.Name() != "done.log" && e.Name() != "approved.log":
			f.add("work holds %s, which nobody asked for", e.Name())
		}
	}
	return found
}

// checkApprovals: an effect that needs a yes has one, and a yes has one effect.
func (w *world) checkApprovals(p *past) finding {
	f := finding{check: "approvals: no effect without a yes, none used twice, none after a no"}
	raw, _ := os.ReadFile(w.notes("work", "approved.log"))
	ran := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		ran[strings.TrimSpace(line)]++
	}
	yes, ruled, done := map[string]bool{}, map[string]string{}, map[string]int{}
	for _, e := range p.entries {
		if e.body.Word("KIND") == "ANSWER" {
			if v, _ := e.body.Get("YES"); fmt.Sprint(v) == "T" {
				yes[e.body.Text("TOKEN")] = true
			}
		}
		// A kill between ruling and start has it ruled again, so outcomes are counted.
		switch e.body.Word("KIND") {
		case "RULING":
			ruled[e.body.Text("ID")] = markWord.FindString(e.body.Sub("ACTION").Sub("ARGS").Text("CMD"))
		case "OUTCOME":
			done[ruled[e.body.Text("RULING")]]++
		}
	}
	states := map[string]string{} // by mark
	err := record.Read(w.path("state", "s", "flight", "plans.log"), func(pl sexp.Plist) error {
		mark := markWord.FindString(pl.Sub("ACTION").Sub("ARGS").String())
		token, state := pl.Text("TOKEN"), strings.ToUpper(pl.Text("STATE"))
		f.examined++
		if m := w.ledger.find(mark); m == nil || m.kind != "ask" {
			return nil // another effect, which was asked about because its session had read something
		}
		switch n := ran[mark]; {
		case n > 1:
			f.add("%s (%s, %s) was carried out %d times", token, mark, state, n)
		case n == 1 && !yes[token] && states[mark] == "":
			f.add("%s (%s, %s) was carried out, and the journal has no yes to it", token, mark, state)
		case n == 0 && state == "DONE":
			f.add("%s (%s) is told to be done and is not", token, mark)
		case n == 1 && (state == "DENIED" || state == "EXPIRED" || state == "PLAN"):
			f.add("%s (%s) is %s and was carried out", token, mark, state)
		}
		if yes[token] && !w.books.yes[token] {
			f.add("%s (%s) has a yes that nobody gave", token, mark)
		}
		if yes[token] {
			states[mark] = state
		}
		return nil
	})
	if err != nil {
		f.add("%v", err)
	}
	for mark, n := range done {
		if m := w.ledger.find(mark); m != nil && m.kind == "ask" && n > 1 {
			f.add("%s was carried out %d times", mark, n)
		}
	}
	return f
}

// checkWell: the program finds nothing broken.
func (w *world) checkWell() finding {
	f := finding{check: "doctor's findings about journal, notes, plans, skills, places"}
	out, talk, _ := w.run(context.Background(), w.env, "--json", "doctor", "--lint")
	var r struct {
		Findings []struct {
			ID, Severity, Note string
			More               []string
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		f.add("doctor: %v: %s%s", err, out, talk)
	}
	for _, x := range r.Findings {
		f.examined++
		part, _, _ := strings.Cut(x.ID, ".")
		if x.Severity == "error" && slices.Contains([]string{"journal", "memex", "plans", "policy", "skills", "state", "places", "vault", "settings"}, part) {
			f.add("%s: %s %v", x.ID, x.Note, x.More)
		}
	}
	return f
}
