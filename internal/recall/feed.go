package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"passepartout/internal/durable"
)

// An Embedder turns texts into vectors.
type Embedder interface {
	// Name says whose vectors these are: those of different names cannot be
	// compared.
	Name() string
	// Local reports whether texts stay on this machine.
	Local() bool
	// Embed returns a vector a text, nil for one that may not be sent. An error
	// may have the methods AboutInput() bool, when other texts may fare better,
	// and Wait() time.Duration.
	Embed(ctx context.Context, texts []string, query bool) ([][]float32, error)
}

// Bounds of a feed.
const (
	batchSize     = 64
	clipBytes     = 6000 // of a note; every provider takes so much
	firstBackoff  = time.Second
	longestPause  = 10 * time.Minute
	questionWait  = 2 * time.Second
	questionPause = 30 * time.Second // after a question could not be embedded
	mostQuestions = 256              // remembered
	compactAt     = 1024             // records nobody needs any more
)

// clip is the beginning of a note that is sent.
func clip(s string) string {
	if len(s) > clipBytes {
		s = strings.ToValidUTF8(s[:clipBytes], "")
	}
	return s
}

// Feed keeps the vectors of an embedder equal to the notes of an index, and on disk.
// A set of vectors serves once it is whole and was found to help; until then an
// earlier one does. It is safe for concurrent use.
type Feed struct {
	x      *Index
	dir    string
	with   Embedder
	former func(name string) Embedder
	wake   chan struct{}

	drain sync.Mutex // held while vectors are made, and by load

	// Guarded by drain.
	loaded bool
	writes bool      // files were made good, so that records can be added
	set    *provided // of with; serving or coming
	file   vectorFile
	old    *vectorFile // serves until set is whole
	sick   map[textKey]bool

	mu        sync.Mutex // guards what follows
	asks      Embedder   // of the serving set; nil for none
	progress  Progress
	questions map[string][]float32
	mute      time.Time // no questions are embedded before
}

// FeedOptions say what a [Feed] works with.
type FeedOptions struct {
	Dir      string // where vectors are kept; only its owner may read it
	Embedder Embedder
	// Former returns the embedder of an earlier set, to ask it questions until the
	// new set is whole; nil for one that is no longer there. It may be nil.
	Former func(name string) Embedder
}

// Progress says how far a [Feed] is.
type Progress struct {
	Embedder string      `json:"embedder"`
	Local    bool        `json:"local"`
	Serving  string      `json:"serving,omitempty"` // whose vectors searches use
	Have     int         `json:"have"`              // notes with a vector of their present text
	Want     int         `json:"want"`              // notes that may have one
	Withheld int         `json:"withheld"`          // private notes that are not sent
	Refused  int         `json:"refused"`           // notes the embedder did not take
	Cal      Calibration `json:"calibration"`
	Problem  string      `json:"problem,omitempty"`
	Retry    time.Time   `json:"retry,omitzero"`
}

// NewFeed returns a feed that has done nothing yet. The index must know the parts of
// its notes.
func NewFeed(x *Index, o FeedOptions) *Feed {
	if o.Former == nil {
		o.Former = func(string) Embedder { return nil }
	}
	return &Feed{
		x: x, dir: o.Dir, with: o.Embedder, former: o.Former, wake: make(chan struct{}, 1), sick: map[textKey]bool{},
		questions: map[string][]float32{}, progress: Progress{Embedder: o.Embedder.Name(), Local: o.Embedder.Local()},
	}
}

// Progress is how far the feed is.
func (f *Feed) Progress() Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.progress
}

// Wake makes Run look for notes that changed.
func (f *Feed) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run makes vectors whenever it is woken, and tries again after failures, ever less
// often, until the context ends.
func (f *Feed) Run(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		var again <-chan time.Time
		if err := f.Drain(ctx); err != nil && ctx.Err() == nil {
			wait := backoff
			var w interface{ Wait() time.Duration }
			if errors.As(err, &w) {
				wait = max(wait, min(w.Wait(), longestPause))
			}
			f.note(func(p *Progress) { p.Retry = time.Now().Add(wait) })
			again, backoff = time.After(wait), min(backoff*2, longestPause)
		} else {
			backoff = firstBackoff
		}
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-again:
		}
	}
}

// Load takes up the vectors on disk. Nothing is sent or written.
func (f *Feed) Load() error {
	f.drain.Lock()
	defer f.drain.Unlock()
	return f.load(false)
}

// Drain makes the vectors that are missing or stale. It returns when there are none
// left, or with the first failure that is not a single note's.
func (f *Feed) Drain(ctx context.Context) error {
	f.drain.Lock()
	defer f.drain.Unlock()
	err := f.drainAll(ctx)
	f.note(func(p *Progress) {
		p.Problem, p.Retry = "", time.Time{}
		if err != nil {
			p.Problem = err.Error()
		}
	})
	return err
}

func (f *Feed) drainAll(ctx context.Context) error {
	if err := f.load(true); err != nil {
		return err
	}
	for from := uint32(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		notes, next := f.x.stale(f.setOrNone(), f.with.Local(), from, batchSize)
		if notes = f.healthy(notes); len(notes) > 0 {
			begun := f.set
			if err := f.embed(ctx, notes); err != nil {
				return err
			}
			if f.set != begun {
				next = 0 // vectors of another length: all over again
			}
			f.count()
		}
		if from = next; len(notes) == 0 && int(from) >= f.x.numbered() {
			break
		}
	}
	f.count()
	return f.settle(ctx)
}

// numbered is how many numbers notes have been given.
func (x *Index) numbered() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.notes)
}

func (f *Feed) setOrNone() *provided {
	if f.set == nil {
		return &provided{}
	}
	return f.set
}

// healthy leaves out notes the embedder did not take.
func (f *Feed) healthy(notes []staleNote) []staleNote {
	out := notes[:0]
	for _, n := range notes {
		if !f.sick[n.key] {
			out = append(out, n)
		}
	}
	return out
}

// embed makes the vectors of some notes, one half and then the other where the
// embedder objects to a text among them.
func (f *Feed) embed(ctx context.Context, notes []staleNote) error {
	var texts []string
	may := notes[:0:0] // what is sent is asked, not what was put: it may be newer
	for _, n := range notes {
		title, body, private := f.x.opt.Parts(n.id)
		if private && !f.with.Local() {
			continue
		}
		may = append(may, n)
		texts = append(texts, clip(strings.TrimSpace(title+"\n"+body)))
	}
	if notes = may; len(notes) == 0 {
		return nil
	}
	vectors, err := f.with.Embed(ctx, texts, false)
	var about interface{ AboutInput() bool }
	if err != nil && errors.As(err, &about) && about.AboutInput() {
		if len(notes) > 1 {
			half := len(notes) / 2
			if err := f.embed(ctx, notes[:half]); err != nil {
				return err
			}
			return f.embed(ctx, notes[half:])
		}
		f.sick[notes[0].key] = true
		return nil
	}
	if err != nil {
		return err
	}
	return f.take(notes, vectors)
}

// take enters vectors into the set and onto the disk.
func (f *Feed) take(notes []staleNote, vectors [][]float32) error {
	raw := 0
	for i, v := range vectors {
		if v == nil {
			f.sick[notes[i].key] = true // it may not be sent
		} else {
			raw = len(v)
		}
	}
	if raw == 0 {
		return nil
	}
	if f.set == nil || f.set.raw != raw {
		if err := f.begin(raw); err != nil {
			return err
		}
	}
	var records []byte
	one := newSpace(raw)
	one.grow(1)
	for i, v := range vectors {
		if v != nil {
			one.set(0, v)
			records = appendRecord(records, notes[i].key, one.scale[0], one.bytes[:raw])
		}
	}
	if err := f.file.add(records); err != nil {
		return fmt.Errorf("vectors cannot be kept: %w", err)
	}
	f.x.accept(f.set, notes, vectors)
	return nil
}

// begin starts a new set, while the one that served goes on serving.
func (f *Feed) begin(raw int) error {
	if err := durable.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	file, err := createVectors(f.dir, f.with.Name(), raw)
	if err != nil {
		return fmt.Errorf("vectors cannot be kept: %w", err)
	}
	serving := f.x.served()
	if serving != nil && serving == f.set {
		old := f.file
		f.old = &old
	}
	f.set, f.file = newProvided(f.with.Name(), raw), file
	f.x.attach(serving, f.set)
	return nil
}

// served is the set searches use.
func (x *Index) served() *provided {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.serving
}

// settle puts a set that is whole in place, after finding out how far it helps, and
// finds that out again when there are twice the notes.
func (f *Feed) settle(ctx context.Context) error {
	if f.set == nil {
		return nil
	}
	serving := f.x.served() == f.set
	if serving && f.x.Len() < 2*max(f.set.cal.Notes, calLeast) {
		return nil
	}
	cal, err := f.x.calibrate(ctx, f.set, f.with)
	if err != nil {
		return fmt.Errorf("calibration: %w", err)
	}
	if err := f.file.keep(cal); err != nil {
		return fmt.Errorf("vectors cannot be kept: %w", err)
	}
	f.x.promote(f.set, cal)
	f.serves(f.with, cal)
	if f.old != nil {
		err = f.old.remove()
		f.old = nil
	}
	return err
}

// promote lets a set serve.
func (x *Index) promote(p *provided, cal Calibration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p.grow(len(x.notes))
	p.cal = cal
	p.centre()
	x.serving, x.coming = p, nil
}

// serves notes whose vectors searches use now.
func (f *Feed) serves(e Embedder, cal Calibration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asks, f.mute = e, time.Time{}
	f.progress.Serving, f.progress.Cal = e.Name(), cal
	clear(f.questions)
}

func (f *Feed) note(change func(*Progress)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.progress)
}

// count brings the progress up to date.
func (f *Feed) count() {
	have, want, withheld := f.x.count(f.setOrNone(), f.with.Local())
	f.note(func(p *Progress) { p.Have, p.Want, p.Withheld, p.Refused = have, want, withheld, len(f.sick) })
}

// load takes up the sets on disk: the embedder's own, and an earlier one if that is
// the last that was whole.
func (f *Feed) load(write bool) error {
	if f.loaded && (f.writes || !write) {
		return nil
	}
	f.set, f.old = nil, nil
	files, err := vectorFiles(f.dir)
	if err != nil {
		return fmt.Errorf("vectors cannot be read: %w", err)
	}
	var serving, coming *provided
	for _, v := range files {
		cal, whole := v.calibration()
		switch {
		case v.name == f.with.Name() && f.set == nil:
			if f.set, err = f.x.restore(v, write); err != nil {
				return err
			}
			if f.file = v; !whole {
				coming = f.set
				continue
			}
			f.set.cal, serving = cal, f.set
			f.serves(f.with, cal)
		case whole && serving == nil:
			if serving, err = f.x.restore(v, write); err != nil {
				return err
			}
			serving.cal = cal
			f.old = &v
			if e := f.former(v.name); e != nil {
				f.serves(e, cal)
			}
		}
	}
	if serving == f.set && f.set != nil {
		f.old = nil
	}
	if serving != nil {
		serving.centre()
	}
	f.loaded, f.writes = true, write
	f.x.attach(serving, coming)
	f.count()
	return nil
}

// restore reads the vectors of a set that notes still have the text of, and cuts the
// file down to them when most of it is of the past.
func (x *Index) restore(v vectorFile, write bool) (*provided, error) {
	p := newProvided(v.name, v.raw)
	x.mu.RLock()
	wanted := make(map[textKey][]uint32, len(x.byID))
	for n := range x.notes {
		if note := &x.notes[n]; !note.gone && note.stamp != [32]byte{} {
			k := keyOf(note.stamp)
			wanted[k] = append(wanted[k], uint32(n))
		}
	}
	p.grow(len(x.notes))
	x.mu.RUnlock()
	var live []byte
	kept := map[textKey]bool{}
	good, records, err := v.each(func(k textKey, scale float32, vec []int8) {
		for _, n := range wanted[k] {
			p.putQuantised(n, k, vec, scale)
		}
		if len(wanted[k]) > 0 && !kept[k] {
			kept[k] = true
			live = appendRecord(live, k, scale, vec)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("vectors cannot be read: %w", err)
	}
	info, err := os.Stat(v.path)
	if err != nil {
		return nil, err
	}
	if torn := info.Size() > good; write && (torn || records-len(kept) > max(compactAt, len(kept))) {
		if err := v.rewrite(live); err != nil {
			return nil, fmt.Errorf("vectors cannot be kept: %w", err)
		}
	}
	return p, nil
}

// Question is the vector of a question in the space that searches use, nil when
// there is none to be had soon. Only when leave is set is it sent off the machine.
func (f *Feed) Question(ctx context.Context, text string, leave bool) []float32 {
	text = clip(strings.TrimSpace(text))
	f.mu.Lock()
	e, known := f.asks, f.questions[text]
	muted := time.Now().Before(f.mute)
	f.mu.Unlock()
	if e == nil || text == "" || muted || !leave && !e.Local() {
		return nil
	}
	if known != nil {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, questionWait)
	defer cancel()
	v, err := e.Embed(ctx, []string{text}, true)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil || len(v) != 1 {
		f.mute = time.Now().Add(questionPause)
		return nil
	}
	if f.asks == e && v[0] != nil {
		if len(f.questions) >= mostQuestions {
			clear(f.questions)
		}
		f.questions[text] = v[0]
	}
	return v[0]
}
