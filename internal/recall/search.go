package recall

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Mode says which signals a search uses.
type Mode uint8

// The modes.
const (
	Fused   Mode = iota // all that there are
	Lexical             // BM25 alone
	Vector              // the dense signal alone
	Hashing             // trigram Jaccard, as the ancestor had it
)

var modeNames = [...]string{"fused", "lexical", "vector", "hashing"}

// String is the mode's name.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return fmt.Sprintf("Mode(%d)", m)
}

// ParseMode reads a mode's name.
func ParseMode(s string) (Mode, error) {
	if i := slices.Index(modeNames[:], strings.TrimPrefix(strings.ToLower(s), ":")); i >= 0 {
		return Mode(i), nil
	}
	return Fused, fmt.Errorf("want one of %s, found %q", strings.Join(modeNames[:], ", "), s)
}

// BM25's constants.
const bmK1, bmB = 1.2, 0.75

// shares are how much each signal counts for; together 1. Lent is the part of its
// calibrated share that a provider's signal has in this query.
type shares struct{ words, spell, dense, near, lent float64 }

// shares depend on the query. A few words name a thing: the note that has them is
// meant. Many words describe it, and may be other words than the note's, which the
// dense signal bridges. Spelling counts as far as words are unknown.
func (q query) shares() shares {
	const (
		near                = 0.15
		leastDense, denseAt = 0.10, 3 // words
		mostDense, mostAt   = 0.30, 8
		leastSpell, spell   = 0.02, 0.35
	)
	unknown := 0
	for _, w := range q.words {
		if w.term == stopped && !w.prefix {
			unknown++
		}
	}
	long := float64(min(max(len(q.words), denseAt), mostAt)-denseAt) / (mostAt - denseAt)
	s := shares{near: near, dense: leastDense + (mostDense-leastDense)*long, spell: leastSpell}
	s.lent = s.dense / mostDense
	s.spell += spell * float64(unknown) / float64(max(len(q.words), 1))
	s.words = 1 - s.near - s.dense - s.spell
	return s
}

// pool is how many of each signal's best are looked at together.
const pool = 400

// A query is a search taken apart.
type query struct {
	text    string
	words   []queryWord
	phrases []string
}

// A queryWord is one stem that is asked for.
type queryWord struct {
	stem   string
	term   int32 // stopped when no note has it
	count  float32
	prefix bool
}

// parse takes "quoted phrases" and prefixes* out of a search.
func (x *Index) parse(text string) query {
	q := query{text: text}
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 && strings.Count(text, `"`) > i {
			if p := flat(part); p != "" {
				q.phrases = append(q.phrases, p)
			}
		}
	}
	var s scanner
	for _, field := range strings.Fields(text) {
		prefix := len(field) > 3 && strings.HasSuffix(field, "*")
		s.words(field, func(w []byte, _ bool) { q.add(x, string(w), prefix) })
	}
	return q
}

func (q *query) add(x *Index, word string, prefix bool) {
	w := queryWord{stem: stem(word), term: stopped, count: 1, prefix: prefix}
	if prefix {
		w.stem = word
	}
	if w.stem == "" {
		return
	}
	if t, ok := x.words[word]; ok && !prefix {
		w.term = t
	} else if t, ok := x.words[w.stem]; ok && t != stopped && x.terms[t].text == w.stem {
		w.term = t
	}
	for i := range q.words {
		if q.words[i].stem == w.stem && q.words[i].prefix == prefix {
			q.words[i].count++
			return
		}
	}
	if len(q.words) < mostWords {
		q.words = append(q.words, w)
	}
}

// mostWords is how many different words a search looks for: a whole page handed in
// as a question is about what it begins with.
const mostWords = 64

// flat is a text in the form phrases are compared by.
func flat(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// Search returns the notes that fit the text best, best first. A word may end in
// * to stand for all that begin with it; "words in quotes" must stand like that in
// the note.
func (x *Index) Search(text string, limit int, mode Mode) []Hit {
	return x.SearchNear(text, nil, limit, mode)
}

// SearchNear is a Search that also has the question's vector, of the embedder whose
// vectors the index serves ([Feed.Question]); one of another length is ignored.
func (x *Index) SearchNear(text string, vector []float32, limit int, mode Mode) []Hit {
	if limit <= 0 {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	q := x.parse(text)
	b := boards.Get().(*board)
	defer boards.Put(b)
	b.reset(len(x.notes))
	switch mode {
	case Hashing:
		x.tri.scores(text, b.words)
		b.everything()
		hits := x.plain(b, limit, len(q.phrases) > 0)
		for i := range hits {
			hits[i].Alike = alike(hashingAlike, hits[i].Score)
		}
		return x.phrased(q, hits, limit)
	case Lexical:
		x.lexical(q, b)
		return x.phrased(q, x.plain(b, limit, len(q.phrases) > 0), limit)
	case Vector:
		if p := x.serving.probe(vector); p.s != nil {
			return x.nearest(p, limit)
		}
		return x.nearest(x.space.probe(x, q), limit)
	case Fused:
	}
	return x.phrased(q, x.fuse(q, b, x.serving.probe(vector), max(limit, pool)), limit)
}

// A board holds a score for every note while a search runs. Only the notes that were
// met are looked at and wiped: most of a large memex has none of the words.
type board struct {
	words, spell []float32
	met          []uint32
	all          bool // scores were given without noting whom
}

var boards = sync.Pool{New: func() any { return new(board) }}

func (b *board) reset(n int) {
	switch {
	case cap(b.words) < n:
		b.words, b.spell = make([]float32, n, n+n/4), make([]float32, n, n+n/4)
	case b.all:
		clear(b.words[:cap(b.words)])
		clear(b.spell[:cap(b.spell)])
	default:
		for _, m := range b.met {
			b.words[:cap(b.words)][m], b.spell[:cap(b.spell)][m] = 0, 0
		}
	}
	b.words, b.spell, b.met, b.all = b.words[:n], b.spell[:n], b.met[:0], false
}

// everything notes that any note may have a score.
func (b *board) everything() {
	b.all = true
	for n := range b.words {
		b.met = append(b.met, uint32(n))
	}
}

// idf is how much a term tells.
func (x *Index) idf(t int32) float32 {
	n, df := float64(len(x.notes)), float64(len(x.terms[t].posts))
	return float32(math.Log(1 + (n-df+0.5)/(df+0.5)))
}

// accrue adds a term's share to every note that has it.
func (x *Index) accrue(t int32, weight float32, b *board, into []float32) {
	live := len(x.notes) - x.dead
	if live == 0 {
		return
	}
	perLen := float32(bmK1*bmB) * float32(live) / float32(max(x.total, 1))
	weight *= bmK1 + 1
	lens := x.lens
	for _, p := range x.terms[t].posts {
		if into[p.note] == 0 {
			b.met = append(b.met, p.note)
		}
		into[p.note] += weight * p.tf / (p.tf + bmK1*(1-bmB) + perLen*lens[p.note])
	}
}

// lexical is BM25 over the query's own words.
func (x *Index) lexical(q query, b *board) {
	for _, w := range q.words {
		if w.prefix {
			for _, t := range x.beginning(w.stem) {
				x.accrue(t, w.count*x.idf(t), b, b.words)
			}
		} else if w.term != stopped {
			x.accrue(w.term, w.count*x.idf(w.term), b, b.words)
		}
	}
}

// beginning returns terms that begin with the prefix, in the order they were met.
func (x *Index) beginning(prefix string) []int32 {
	const most = 64
	var out []int32
	for t := range x.terms {
		if strings.HasPrefix(x.terms[t].text, prefix) && len(x.terms[t].posts) > 0 {
			if out = append(out, int32(t)); len(out) == most {
				break
			}
		}
	}
	return out
}

// mostSpelt is how many notes the words spelt alike may be in, together: what is in
// more of them tells little and takes most of a search.
const mostSpelt = 200_000

// spelling adds words that are spelt like the query's to what the words gave.
func (x *Index) spelling(q query, b *board) {
	for _, n := range b.met {
		b.spell[n] = b.words[n]
	}
	common, left := max(len(x.notes)/10, 100), mostSpelt
	for _, w := range q.words {
		for _, l := range x.grams.alike(w.stem, w.term) {
			posts := len(x.terms[l.term].posts)
			if posts > min(common, left) {
				continue
			}
			left -= posts
			idf := x.idf(l.term)
			if w.term != stopped {
				idf = min(idf, x.idf(w.term))
			}
			x.accrue(l.term, w.count*idf*l.sim*l.sim, b, b.spell)
		}
	}
}

// fuse adds up the signals, each divided by its best. Where a provider's vectors
// help, they take their share from all others; a note that has none keeps the score
// it has without them.
func (x *Index) fuse(q query, b *board, lent probe, most int) []Hit {
	x.lexical(q, b)
	x.spelling(q, b)
	probe := x.space.probe(x, q)
	found := map[uint32]float32{}
	for _, n := range x.best(b, b.words, most) {
		found[n] = 0
	}
	for _, n := range x.best(b, b.spell, most) {
		found[n] = 0
	}
	for _, n := range probe.nearest(x, most) {
		found[n] = 0
	}
	var cal Calibration
	if lent.s != nil {
		cal = x.serving.cal
	}
	if cal.Weight > 0 {
		for _, n := range lent.nearest(x, most) {
			found[n] = 0
		}
	}
	var maxWords, maxSpell, maxDense, maxLent float32
	for n := range found {
		d := max(probe.cosine(n), 0)
		found[n] = d
		maxWords, maxSpell, maxDense = max(maxWords, b.words[n]), max(maxSpell, b.spell[n]), max(maxDense, d)
		maxLent = max(maxLent, cal.above(lent.cosine(n)))
	}
	of := q.shares()
	hits := make([]Hit, 0, len(found))
	for n, d := range found {
		h := Hit{ID: x.notes[n].id, keep: 1, Alike: alike(learntAlike, float64(d))}
		if lent.has(n) && cal.Weight > 0 {
			c := lent.cosine(n)
			h.keep = 1 - cal.Weight*of.lent
			h.Lent = share(cal.Weight*of.lent, cal.above(c), maxLent)
			h.Alike = max(h.Alike, cal.alike(c))
		}
		h.Lexical = share(of.words, b.words[n], maxWords) * h.keep
		h.Spell = share(of.spell, b.spell[n], maxSpell) * h.keep
		h.Dense = share(of.dense, d, maxDense) * h.keep
		h.Score = h.Lexical + h.Spell + h.Dense + h.Lent
		hits = append(hits, h)
	}
	hits = sortHits(hits, most)
	x.reread(q, hits, of.near)
	return sortHits(hits, most)
}

func share(of float64, score, best float32) float64 {
	if best <= 0 {
		return 0
	}
	return of * float64(score) / float64(best)
}

// best returns the notes with the highest scores above 0.
func (x *Index) best(b *board, scores []float32, most int) []uint32 {
	top := newTop(most)
	least := top.least // in a register: almost all scores are below it
	for _, n := range b.met {
		if s := scores[n]; s > least && !x.notes[n].gone {
			top.add(n, s)
			least = top.least
		}
	}
	return top.numbers()
}

// plain is a ranking by one board alone.
func (x *Index) plain(b *board, limit int, more bool) []Hit {
	if more {
		limit = max(limit, pool)
	}
	var hits []Hit
	for _, n := range x.best(b, b.words, limit) {
		hits = append(hits, Hit{ID: x.notes[n].id, Score: float64(b.words[n])})
	}
	return sortHits(hits, limit)
}

// nearest is a ranking by the dense signal alone.
func (x *Index) nearest(p probe, limit int) []Hit {
	var hits []Hit
	for _, n := range p.nearest(x, limit) {
		hits = append(hits, Hit{ID: x.notes[n].id, Score: float64(p.cosine(n))})
	}
	return sortHits(hits, limit)
}

// phrased drops hits that lack one of the query's phrases.
func (x *Index) phrased(q query, hits []Hit, limit int) []Hit {
	if len(q.phrases) > 0 && x.opt.Text != nil {
		hits = slices.DeleteFunc(hits, func(h Hit) bool {
			text := flat(x.opt.Text(h.ID))
			return slices.ContainsFunc(q.phrases, func(p string) bool { return !strings.Contains(text, p) })
		})
	}
	return hits[:min(limit, len(hits))]
}

// top keeps the highest scores of many: a heap whose root is the least kept.
type top struct {
	most  int
	least float32
	heap  []scored
}

type scored struct {
	note  uint32
	score float32
}

func newTop(most int) *top { return &top{most: most, heap: make([]scored, 0, most)} }

// below orders by score, earlier notes before later ones of the same.
func (a scored) below(b scored) bool {
	return a.score < b.score || a.score == b.score && a.note > b.note
}

func (t *top) add(n uint32, s float32) {
	if len(t.heap) < t.most {
		t.heap = append(t.heap, scored{n, s})
		for i := len(t.heap) - 1; i > 0 && t.heap[i].below(t.heap[(i-1)/2]); i = (i - 1) / 2 {
			t.heap[i], t.heap[(i-1)/2] = t.heap[(i-1)/2], t.heap[i]
		}
	} else {
		t.heap[0] = scored{n, s}
		for i := 0; ; {
			c := 2*i + 1
			if c+1 < len(t.heap) && t.heap[c+1].below(t.heap[c]) {
				c++
			}
			if c >= len(t.heap) || !t.heap[c].below(t.heap[i]) {
				break
			}
			t.heap[i], t.heap[c] = t.heap[c], t.heap[i]
			i = c
		}
	}
	if len(t.heap) == t.most {
		t.least = t.heap[0].score
	}
}

func (t *top) numbers() []uint32 {
	out := make([]uint32, len(t.heap))
	for i, s := range t.heap {
		out[i] = s.note
	}
	return out
}
