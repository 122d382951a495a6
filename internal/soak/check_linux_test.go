package soak

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A finding is one row of the table: what was looked at, how much of it, and what
// was not as it must be.
type finding struct {
	check    string
	examined int
	wrong    []string
}

func (f *finding) add(format string, args ...any) {
	f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
}

// check looks at everything, prints the table, and fails the test when something is
// wrong. It also keeps what lies on disks that end with the namespace.
func (w *world) check() {
	w.note("checking")
	j := w.readJournal()
	rows := []finding{
		w.checkMessages(), w.checkTelegram(), w.checkSignals(j), w.checkChain(j), w.checkRulings(j), w.checkReplay(),
		w.checkEffects(j), w.checkStill(), w.checkCells(), w.checkVictims(), w.checkApprovals(j), w.checkRuns(),
	}
	rows = append(rows, w.checkCanaries()...)
	if w.plan.watch > 0 {
		rows = append(rows, w.checkFlat()...)
	}
	rows = append(rows, w.checkProcesses(), w.checkWell())
	total, each := w.faults.all()
	faults := finding{check: fmt.Sprintf("faults injected (at least %d)", w.plan.least), examined: total}
	if total < w.plan.least {
		faults.add("only %d faults in %v", total, w.plan.length)
	}
	rows = append(rows, faults)
	table, bad := tabulate(rows, each, w)
	w.t.Log("\n" + table)
	if err := os.WriteFile(w.path("table.txt"), []byte(table), 0o600); err != nil {
		w.t.Error(err)
	}
	if bad > 0 {
		for _, d := range []string{"state", "memex"} {
			if err := copyTree(w.path(d), w.path("kept-"+d)); err != nil {
				w.t.Errorf("keeping %s: %v", d, err)
			}
		}
		w.t.Errorf("seed %d: %d violations; what was on the small disks is kept in %s/kept-…", w.seed, bad, w.dir)
	}
}

func tabulate(rows []finding, faults map[string]int, w *world) (string, int) {
	var b strings.Builder
	bad := 0
	fmt.Fprintf(&b, "seed %d, %v of storm, %d starts of the daemon, %d calls of the model, %d edits by hand (%d met a replacement and were made again)\n\n",
		w.seed, w.plan.length, w.daemon.starts, w.model.calls, w.books.edits, w.books.redone)
	fmt.Fprintf(&b, "| %-74s | %8s | %10s |\n|%s|%s|%s|\n", "check", "examined", "violations", strings.Repeat("-", 76), strings.Repeat("-", 10), strings.Repeat("-", 12))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %-74s | %8d | %10d |\n", r.check, r.examined, len(r.wrong))
		bad += len(r.wrong)
	}
	names := make([]string, 0, len(faults))
	for k := range faults {
		names = append(names, k)
	}
	slices.Sort(names)
	b.WriteString("\nfaults: ")
	for i, k := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %d", k, faults[k])
	}
	b.WriteString("\n")
	for _, r := range rows {
		for i, v := range r.wrong {
			if i == 12 {
				fmt.Fprintf(&b, "  … and %d more\n", len(r.wrong)-i)
				break
			}
			fmt.Fprintf(&b, "VIOLATION %s: %s\n", r.check, v)
		}
	}
	return b.String(), bad
}

// lastWords wants an answer from every kind of client now that nothing is broken,
// and lets Telegram finish.
func (w *world) lastWords(ctx context.Context) {
	want := func(m *message) {
		if !m.done() {
			w.books.wrong("when nothing was broken any more, %s was told %q %q (%s)", m.by, m.status, m.text, m.mark)
		}
	}
	w.readRuns(ctx)
	want(w.oneCommand(ctx, "cli-0", w.env, true, "capture", 1_000_000))
	want(w.oneCommand(ctx, "cli-1", w.far, false, "write", 1_000_000))
	if !gone(w.path("emacs", "loop.el")) {
		want(w.sayInEmacs(ctx, "capture", 1_000_000))
	}
	if !gone(w.path("tmp", "tmux")) {
		w.tmux("send-keys", "Escape").Run()
		rest(ctx, escapeTime)
		w.tmux("send-keys", "-l", "/new").Run()
		w.tmux("send-keys", "Enter").Run()
		rest(ctx, time.Second) // what it says comes before the question
		want(w.sayInTerminal(ctx, "capture", patience))
		w.note("screen:\n%s", w.screen())
		w.tmux("kill-server").Run()
	}
	w.telegram.Say(owner, "/new")
	w.books.renewed.Add(1)
	m, text := w.ledger.open(w, "telegram", "capture", "")
	w.telegram.Say(owner, text)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for quiet := 0; quiet < 20 && rest(ctx, 100*time.Millisecond); quiet++ {
		if w.telegram.Waiting() > 0 || !w.shown("answer "+m.mark) {
			quiet = 0
		}
	}
	if !w.shown("answer " + m.mark) {
		w.books.wrong("when nothing was broken any more, Telegram showed no answer to %s", m.mark)
	}
	if out, talk, code := w.run(ctx, w.env, "--no-start", "skill", "list"); code != 0 || !strings.Contains(out, "soaker") {
		w.books.wrong("the last version of the skill is not in force: %s%s", out, talk)
	}
	if err := os.WriteFile(w.path("emacs", "stop"), nil, 0o600); err != nil && !gone(w.path("emacs")) {
		w.t.Error(err)
	}
}

// others are marks in a text besides one's own.
var answerMark = regexp.MustCompile(`answer (m\d{5})`)

// checkMessages: every message was answered or reported, once, and the answer is its
// own.
func (w *world) checkMessages() finding {
	f := finding{check: "messages answered or reported, once, each with its own answer"}
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for _, m := range w.ledger.all {
		if m.by == "telegram" {
			continue
		}
		f.examined++
		switch {
		case m.fate == waiting:
			f.add("%s %s of %s at %v: neither answered nor reported", m.kind, m.mark, m.by, m.sent)
		case m.answers > 1:
			f.add("%s %s of %s: answered %d times", m.kind, m.mark, m.by, m.answers)
		case m.fate == answered && m.text == "":
			f.add("%s %s of %s: an empty answer (%s)", m.kind, m.mark, m.by, m.status)
		}
		for _, x := range answerMark.FindAllStringSubmatch(m.text, -1) {
			if x[1] != m.mark {
				f.add("%s of %s got the answer of %s: %q", m.mark, m.by, x[1], m.text)
			}
		}
	}
	return f
}

// checkTelegram: the person sees one answer to each message. An answer that names no
// mark (the model was away) stands for one of the messages that have none.
func (w *world) checkTelegram() finding {
	f := finding{check: "messages over Telegram shown one answer or report"}
	lines := w.telegram.Chat(owner)
	named, nameless := map[string]int{}, 0
	for _, l := range lines {
		marks := markWord.FindAllString(l.Text, -1)
		for _, x := range answerMark.FindAllStringSubmatch(l.Text, -1) {
			if strings.Contains(l.Text, x[0]+" ") {
				named[x[1]]++
			}
		}
		if len(marks) == 0 {
			nameless++
		}
		for _, m := range marks {
			named[m] += 0
		}
	}
	silent := 0
	for _, m := range w.ledger.all {
		if m.by != "telegram" {
			continue
		}
		f.examined++
		switch n, ok := named[m.mark]; {
		case n > 1:
			f.add("%s %s was answered %d times", m.kind, m.mark, n)
		case !ok:
			silent++
		}
	}
	nameless -= int(w.books.renewed.Load())
	if silent > max(nameless, 0) {
		f.add("%d messages have no answer that names them, and only %d answers name none", silent, nameless)
	}
	if n := w.telegram.Waiting(); n > 0 {
		f.add("%d updates were never taken", n)
	}
	if l := w.telegram.Chat(666); len(l) > 0 {
		f.add("a stranger was answered: %+v", l)
	}
	return f
}

var markWord = regexp.MustCompile(`\bm\d{5}\b`)

// checkStill: nobody meant to change these files.
func (w *world) checkStill() finding {
	f := finding{check: "Org files nobody edits, byte for byte"}
	files := map[string]string{"areas/diary.org": "", "system/permissions.org": permissions, "system/schedule.org": schedule}
	for i, text := range still {
		files[fmt.Sprintf("resources/still-%d.org", i)] = text
	}
	files["areas/diary.org"] = "* Diary :@personal:\nI told nobody: " + w.canaryOf("note") + "\n"
	for name, want := range files {
		f.examined++
		if raw, err := os.ReadFile(w.notes(name)); err != nil || string(raw) != want {
			f.add("%s: %v, %d bytes instead of %d", name, err, len(raw), len(want))
		}
	}
	return f
}

// checkCells: outside its values a file is what it was, and each value is one that
// nothing written later has replaced.
func (w *world) checkCells() finding {
	f := finding{check: "edited Org files: skeleton and every value against the naive model"}
	for i := range cellFiles {
		raw, err := os.ReadFile(w.notes("notes", cellFile(i)))
		if err != nil {
			f.add("%v", err)
			continue
		}
		f.examined++
		if got, want := skeleton(string(raw)), skeleton(cellText(i)); got != want {
			f.add("%s outside its values is now\n%s", cellFile(i), got)
			continue
		}
		for cell, value := range cellsOf(string(raw)) {
			f.examined++
			if !w.mayHold(cell, value) {
				f.add("%s holds %q, which something later replaced:\n%s", cell, value, w.story(cell))
			}
		}
	}
	return f
}

// mayHold reports whether a cell may hold a value at the end: some write of it must
// not have been over when a later one that is known to have worked began.
func (w *world) mayHold(cell, value string) bool {
	writes := append([]*cellWrite{{value: "first", end: 1}}, w.books.writes[cell]...)
	for _, c := range writes {
		if c.value != value {
			continue
		}
		_, end, open := c.interval()
		later := func(o *cellWrite) bool {
			start, _, unknown := o.interval()
			return !unknown && start > end
		}
		if open || !slices.ContainsFunc(writes, later) {
			return true
		}
	}
	return false
}

// story is what happened to a cell, the last of it.
func (w *world) story(cell string) string {
	var b strings.Builder
	writes := w.books.writes[cell]
	for _, c := range writes[max(0, len(writes)-8):] {
		start, end, open := c.interval()
		who := "editor"
		if c.m != nil {
			who = fmt.Sprintf("%s %s %q", c.m.by, c.m.status, c.m.text)
		}
		fmt.Fprintf(&b, "    %v – %v open=%t %s by %s\n", start, end, open, c.value, who)
	}
	return b.String()
}

// checkVictims: what was seen to be wrong while the run went on.
func (w *world) checkVictims() finding {
	f := finding{check: "seen while it ran: files deleted or cut stay so, clients end, all answer at last", examined: w.books.removed}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	f.wrong = append(f.wrong, w.books.wrongs...)
	return f
}

// checkProcesses: no daemon ended by itself, none panicked.
func (w *world) checkProcesses() finding {
	f := finding{check: "daemons that ended only when something ended them", examined: w.daemon.starts}
	f.wrong = append(f.wrong, w.daemon.strange...)
	for _, name := range []string{w.path("daemon.log"), w.path("state", "s", "daemon.log"), w.path("emacs.log")} {
		raw, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, word := range []string{"panic:", "fatal error:", "goroutine 1 [", "DATA RACE", "An internal error"} {
			if i := bytes.Index(raw, []byte(word)); i >= 0 {
				f.add("%s: %s", filepath.Base(name), raw[i:min(len(raw), i+3000)])
			}
		}
	}
	for _, m := range w.ledger.all {
		if strings.Contains(m.text, "An internal error") || strings.Contains(m.text, "which is a bug") {
			f.add("%s %s was told %q", m.kind, m.mark, m.text)
		}
	}
	return f
}
