package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/org"
	"passepartout/internal/proto"
	"passepartout/internal/scribe"
	"passepartout/internal/sexp"
)

// A diary writes what turns came to into the log of the day: what was said, what
// was proposed and how it was judged and ended. What took part in a turn labels
// its entry: a privacy tag, or the origin of text from elsewhere. It never holds a
// turn up: entries wait in a queue, and one that does not fit is dropped.
//
// The methods of a nil diary do nothing.
type diary struct {
	store *memory.Store
	now   func() time.Time
	log   *slog.Logger
	trace bool
	talk  bool
	tag   string // marks an entry as private
	queue chan entry

	mu    sync.Mutex // guards turns
	turns map[string]*entry
}

// An entry is one turn.
type entry struct {
	turn, session string
	at            time.Time
	said          string
	by            string
	steps         []string
	rulings       map[string]int // step by ruling
	private       bool
	untrusted     bool
	status, reply string
}

// Limits of the diary.
const (
	maxEntries  = 256  // that wait to be written
	maxTurns    = 1024 // that are being followed
	maxSaid     = 4000 // bytes of what was said
	maxOutcome  = 200
	maxHeadline = 60
)

func (d *Daemon) newDiary() *diary {
	x := &diary{
		store: d.memory, now: d.now, log: d.log, queue: make(chan entry, maxEntries), turns: map[string]*entry{},
		trace: d.s.Diary == "trace" || d.s.Diary == "all", talk: d.s.Diary == "talk" || d.s.Diary == "all",
	}
	if !x.trace && !x.talk {
		return nil
	}
	if len(d.s.PrivacyTags) > 0 {
		x.tag = d.s.PrivacyTags[0]
	}
	return x
}

// note follows a turn by what is recorded of it. Records hold no credentials.
func (x *diary) note(kind, turn string, p sexp.Plist) {
	if x == nil || turn == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch kind {
	case "signal":
		body := p.Sub("BODY")
		if x.turns[turn] == nil && len(x.turns) < maxTurns {
			x.turns[turn] = &entry{
				turn: turn, session: p.Text("SESSION"), at: x.now(), said: body.Text("TEXT"), by: p.Sub("ORIGIN").Text("CHANNEL"), rulings: map[string]int{},
			}
		}
	case "ruling":
		e := x.turns[turn]
		if e == nil {
			return
		}
		facts, trace := p.Sub("FACTS"), p.Sub("TRACE")
		e.private = e.private || facts.Flag("PRIVATE")
		e.untrusted = e.untrusted || facts.Flag("UNTRUSTED")
		a := p.Sub("ACTION")
		step := fmt.Sprintf("%s.%s: %s%s", strings.ToLower(string(a.Word("TARGET"))), strings.ToLower(string(a.Word("VERB"))),
			strings.ToLower(string(trace.Word("DECISION"))), objected(trace))
		e.rulings[p.Text("ID")] = len(e.steps)
		e.steps = append(e.steps, step+" ("+p.Text("ID")+")")
	case "outcome":
		e := x.turns[turn]
		if e == nil {
			return
		}
		if i, ok := e.rulings[p.Text("RULING")]; ok {
			word := "failed"
			if p.Flag("OK") {
				word = "done"
			}
			e.steps[i] += ", " + word + ": " + clip(p.Text("TEXT"), maxOutcome)
		}
	}
}

// objected names the gates that did not let something pass.
func objected(trace sexp.Plist) string {
	v, _ := trace.Get("VERDICTS")
	l, _ := v.(sexp.List)
	var codes []string
	for _, x := range l.Items() {
		vl, _ := x.(sexp.List)
		if p, err := sexp.AsPlist(vl); err == nil && p.Word("DECISION") != "ALLOW" {
			codes = append(codes, p.Text("CODE"))
		}
	}
	if len(codes) == 0 {
		return ""
	}
	return " by " + strings.Join(codes, " ")
}

// ended takes the end of a turn, and queues what is to be written.
func (x *diary) ended(session string, m proto.Message) {
	if x == nil {
		return
	}
	turn := m.Meta.Text("TURN")
	x.mu.Lock()
	e := x.turns[turn]
	delete(x.turns, turn)
	x.mu.Unlock()
	if e == nil || e.said == "" && len(e.steps) == 0 {
		return
	}
	e.status, e.reply = strings.ToLower(string(m.Payload.Word("STATUS"))), m.Payload.Text("TEXT")
	select {
	case x.queue <- *e:
	default:
		x.log.Warn("the diary is behind; an entry is dropped", "turn", turn, "session", session)
	}
}

// write puts entries into the log of the day until the context ends, and then what
// is left.
func (x *diary) write(ctx context.Context) {
	for {
		select {
		case e := <-x.queue:
			x.put(e)
		case <-ctx.Done():
			for len(x.queue) > 0 { // nobody else takes from it
				x.put(<-x.queue)
			}
			return
		}
	}
}

func (x *diary) put(e entry) {
	file := "daily/" + e.at.Format(time.DateOnly) + ".org"
	_, err := x.store.Apply(context.Background(), memory.Tx{
		Actor: "diary", Turn: e.turn, Label: "diary",
		Edits: []memory.Edit{{File: file, Change: memory.Change{Kind: memory.Insert, Entry: x.entry(e)}}},
	})
	if err != nil {
		x.log.Warn("the diary could not be written", "file", file, "error", err)
	}
}

// entry is a turn as a heading.
func (x *diary) entry(e entry) org.Entry {
	title := "a turn"
	if x.talk && e.said != "" {
		title = clip(e.said, maxHeadline)
	}
	o := org.Entry{
		Title: e.at.Format("15:04 ") + title, Tags: []string{scribe.AgentTag},
		Properties: []org.Property{{Key: "TURN", Value: e.turn}, {Key: "SESSION", Value: clip(e.session, maxHeadline)}, {Key: "STATUS", Value: e.status}},
	}
	if e.private && x.tag != "" {
		o.Tags = append(o.Tags, x.tag)
	}
	if e.untrusted {
		o.Properties = append(o.Properties, org.Property{Key: "ORIGIN", Value: "session"})
	}
	var b strings.Builder
	if x.talk {
		fmt.Fprintf(&b, "- said on %s :: %s\n", e.by, clip(e.said, maxSaid))
	}
	if x.trace {
		for _, s := range e.steps {
			fmt.Fprintf(&b, "- proposed :: %s\n", clip(s, maxSaid))
		}
	}
	if x.talk && e.reply != "" {
		fmt.Fprintf(&b, "- answered :: %s\n", clip(e.reply, maxSaid))
	}
	o.Body = b.String()
	return o
}

// clip is a text on one line, and not too long.
func clip(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
