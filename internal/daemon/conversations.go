package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/journal"
	"passepartout/internal/record"
	"passepartout/internal/sexp"
)

// conversations know which sessions stand in which segments of the journal, so that
// every one of them is found without reading them all. What was found in a finished
// segment is kept in a file that can be deleted; the last segment is read when it is
// first asked for, and from then on only what is new.
type conversations struct {
	dir, file string // of the journal, and of what is kept
	log       *slog.Logger

	turn   chan struct{} // taken while somebody reads; guards what follows
	parts  []part        // of segment 1, 2, …
	reader *journal.Reader
	kept   *record.File // nil: nothing is kept
	sealed int          // how many parts were kept when it was opened
}

// A part is what one segment holds of each session.
type part struct {
	by     map[string]*talked
	broken error // the segment is damaged: it may hold more than is known
}

// A talked is a conversation as the journal knows it.
type talked struct {
	name  string
	first string // what was said first
	last  string // and last
	at    time.Time
	turns int
}

func newConversations(state string, log *slog.Logger) *conversations {
	return &conversations{
		dir: filepath.Join(state, "journal"), file: filepath.Join(state, "sessions", "index"),
		log: log, turn: make(chan struct{}, 1),
	}
}

// begin takes the turn.
func (c *conversations) begin(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errors.New("the record of conversations is still being read: ask again in a moment")
	}
}

func (c *conversations) end() { <-c.turn }

// close gives up what is open. Nobody reads any more.
func (c *conversations) close() error {
	var errs []error
	if c.reader != nil {
		errs = append(errs, c.reader.Close())
	}
	if c.kept != nil {
		errs = append(errs, c.kept.Close())
	}
	return errors.Join(errs...)
}

// update reads on to the end of the journal. What a context that ends leaves undone
// is done by the next.
func (c *conversations) update(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer c.end()
	return c.advance(ctx)
}

func (c *conversations) advance(ctx context.Context) error {
	if c.reader == nil {
		if err := c.load(); err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return fmt.Errorf("the record of conversations was read up to segment %d: %w", c.reader.Segment(), context.Cause(ctx))
		}
		line, err := c.reader.Next()
		for len(c.parts) < c.reader.Segment() {
			c.seal()
			c.parts = append(c.parts, part{by: map[string]*talked{}})
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		last := &c.parts[len(c.parts)-1]
		if err == nil {
			err = last.note(line)
		}
		if damage := (*journal.BrokenError)(nil); errors.As(err, &damage) {
			c.log.Error("a segment of the journal is damaged; conversations in it are not known", "error", err)
			last.broken = err
			err = c.reader.Close()
			c.reader = journal.ReadFrom(c.dir, len(c.parts)+1)
		}
		if err != nil {
			return errors.Join(err, c.reader.Close(), c.forget())
		}
	}
}

// forget makes the next who asks begin again.
func (c *conversations) forget() error {
	c.reader, c.parts = nil, nil
	if c.kept == nil {
		return nil
	}
	kept := c.kept
	c.kept = nil
	return kept.Close()
}

// load takes up what is kept, as far as it belongs to this journal.
func (c *conversations) load() error {
	last, err := journal.Segments(c.dir)
	if err != nil {
		return err
	}
	c.parts = nil
	var good []sexp.Plist
	err = record.Read(c.file, func(p sexp.Plist) error {
		number := len(c.parts) + 1
		size, err := journal.SegmentSize(c.dir, number)
		if err != nil || number >= last || p.Number("SEGMENT") != number || int64(p.Number("BYTES")) != size {
			return errors.New("it is of another journal")
		}
		c.parts, good = append(c.parts, partOf(p)), append(good, p)
		return nil
	})
	if err != nil {
		c.log.Info("the index of conversations is made anew", "from", len(c.parts)+1, "because", err)
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err == nil {
		c.kept, err = record.Create(c.file, good)
		if err != nil {
			c.kept = nil
			c.log.Warn("the index of conversations cannot be kept", "error", err)
		}
	}
	c.sealed = len(c.parts)
	c.reader = journal.ReadFrom(c.dir, c.sealed+1)
	return nil
}

// seal keeps what was found in the segment that has ended. Nobody depends on it.
func (c *conversations) seal() {
	number := len(c.parts)
	if number <= c.sealed || c.kept == nil {
		return // it is there since the last start
	}
	err := c.parts[number-1].broken // to be looked at again at the next start, and what follows
	var size int64
	if err == nil {
		size, err = journal.SegmentSize(c.dir, number)
	}
	if err == nil {
		err = c.kept.Append(false, c.parts[number-1].plist(number, size))
	}
	if err != nil {
		c.log.Warn("the index of conversations cannot be kept", "error", err)
		_ = c.kept.Close() // it is made anew at the next start
		c.kept = nil
	}
}

// note takes up an entry.
func (p part) note(l journal.Line) error {
	for _, name := range l.Texts("SESSION") {
		if p.by[name] == nil {
			p.by[name] = &talked{name: name}
		}
	}
	if !l.HasWord("KIND", "SIGNAL") {
		return nil
	}
	e, err := l.Read()
	if err != nil {
		return err
	}
	name, text, ok := heard(e)
	if !ok {
		return nil
	}
	t := p.by[name]
	if t == nil {
		t = &talked{name: name}
		p.by[name] = t
	}
	t.join(talked{first: brief(text), last: brief(text), at: e.At, turns: 1})
	return nil
}

// join adds what was said later.
func (t *talked) join(later talked) {
	if later.turns == 0 {
		return
	}
	if t.turns == 0 {
		t.first = later.first
	}
	t.last, t.at = later.last, later.at
	t.turns += later.turns
}

func (p part) plist(number int, size int64) sexp.Plist {
	var rows []sexp.Value
	for _, t := range p.by {
		rows = append(rows, sexp.P(
			sexp.Keyword("NAME"), t.name, sexp.Keyword("TURNS"), t.turns, sexp.Keyword("FIRST"), t.first, sexp.Keyword("LAST"), t.last,
			sexp.Keyword("AT"), t.at.UTC().Format(time.RFC3339Nano)).List())
	}
	return sexp.P(sexp.Keyword("SEGMENT"), number, sexp.Keyword("BYTES"), size, sexp.Keyword("SESSIONS"), sexp.NewList(rows...))
}

func partOf(p sexp.Plist) part {
	out := part{by: map[string]*talked{}}
	v, _ := p.Get("SESSIONS")
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		row, _ := item.(sexp.List)
		r, err := sexp.AsPlist(row)
		if err != nil {
			continue // unreachable: its checksum is right
		}
		at, _ := time.Parse(time.RFC3339Nano, r.Text("AT"))
		out.by[r.Text("NAME")] = &talked{name: r.Text("NAME"), turns: r.Number("TURNS"), first: r.Text("FIRST"), last: r.Text("LAST"), at: at}
	}
	return out
}

// list are the conversations people had, the latest first. It also says what of the
// record is damaged.
func (c *conversations) list(ctx context.Context) (out []talked, damage error, err error) {
	if err := c.begin(ctx); err != nil {
		return nil, nil, err
	}
	defer c.end()
	if err := c.advance(ctx); err != nil {
		return nil, nil, err
	}
	by := map[string]*talked{}
	for _, p := range c.parts {
		damage = errors.Join(damage, p.broken)
		for name, t := range p.by {
			if by[name] == nil {
				by[name] = &talked{name: name}
			}
			by[name].join(*t)
		}
	}
	for _, t := range by {
		if t.turns > 0 {
			out = append(out, *t)
		}
	}
	slices.SortFunc(out, func(a, b talked) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.name, b.name)) })
	return out, damage, nil
}

// A find is a segment that holds something of a session, or may.
type find struct {
	number int
	broken error
}

// where are the segments of a session, the last first. With now the journal is read
// to its end; without, it is enough to know what was there when it was first looked at.
func (c *conversations) where(ctx context.Context, session string, now bool) ([]find, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.end()
	if now || c.reader == nil {
		if err := c.advance(ctx); err != nil {
			return nil, err
		}
	}
	var out []find
	for i, p := range slices.Backward(c.parts) {
		if p.broken != nil || p.by[session] != nil {
			out = append(out, find{i + 1, p.broken})
		}
	}
	return out, nil
}

// read returns a session's entries, oldest first: the last ones, as many segments of
// them as are enough. A damaged segment that would have to be read is an error.
func (c *conversations) read(ctx context.Context, session string, now bool, enough func([]journal.Entry) bool) ([]journal.Entry, error) {
	if c.busy(ctx) {
		if all, ok := c.recent(ctx, session, enough); ok {
			return all, nil
		}
	}
	finds, err := c.where(ctx, session, now)
	if err != nil {
		return nil, err
	}
	var all []journal.Entry
	for _, f := range finds {
		if f.broken != nil {
			return all, f.broken
		}
		part, err := c.segment(ctx, f.number, session)
		if err != nil {
			return nil, err
		}
		if all = append(part, all...); enough(all) {
			break
		}
	}
	return all, nil
}

// indexPatience is how long the index is waited for before the end of the journal is read
// without it.
const indexPatience = 300 * time.Millisecond

// busy reports whether the index is being made, which takes long when there was none
// for a long journal.
func (c *conversations) busy(ctx context.Context) bool {
	wait, cancel := context.WithTimeout(ctx, indexPatience)
	defer cancel()
	if c.begin(wait) != nil {
		return true
	}
	c.end()
	return false
}

// recent looks for a session at the end of the journal, where the conversations are
// that somebody would go on with. It is not ok when that is not enough.
func (c *conversations) recent(ctx context.Context, session string, enough func([]journal.Entry) bool) (all []journal.Entry, ok bool) {
	last, err := journal.Segments(c.dir)
	for number := last; err == nil && number > max(0, last-2); number-- {
		var part []journal.Entry
		if part, err = c.segment(ctx, number, session); err != nil {
			break // the index will tell what is wrong with it
		}
		if all = append(part, all...); enough(all) {
			return all, true
		}
	}
	return nil, false
}

// segment reads the entries of a session in one segment. What came of a ruling named
// no session once, so it is found by the ruling.
func (c *conversations) segment(ctx context.Context, number int, session string) (out []journal.Entry, err error) {
	r := journal.ReadFrom(c.dir, number)
	defer func() { err = errors.Join(err, r.Close()) }()
	rulings := map[string]bool{}
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		l, err := r.Next()
		if errors.Is(err, io.EOF) || err == nil && r.Segment() != number {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		ours := l.Has("SESSION", session)
		if !ours && !l.HasWord("KIND", "OUTCOME") {
			continue
		}
		e, err := l.Read()
		if err != nil {
			return nil, err
		}
		switch {
		case ours && e.Body.Word("KIND") == "RULING":
			rulings[e.Body.Text("ID")] = true
		case !ours && !rulings[e.Body.Text("RULING")]:
			continue
		}
		out = append(out, e)
	}
}

// heard is what a person said in an entry. Control words are not conversation.
func heard(e journal.Entry) (session, text string, ok bool) {
	body := e.Body.Sub("BODY")
	if e.Body.Word("KIND") != "SIGNAL" || body.Word("SENSOR") != "USER-INPUT" {
		return "", "", false
	}
	text = body.Text("TEXT")
	return e.Body.Text("SESSION"), text, text != "" && !strings.HasPrefix(text, "/")
}
