package recall

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Doc is one note as it is indexed.
type Doc struct {
	ID      string
	Title   string
	Tags    []string
	Outline []string // titles above it
	Body    string
	Stamp   [32]byte // changes when the text does; the zero value never equals
	Private bool     // must not leave the machine
}

// Options tune an [Index]. The zero value is right for a memex.
type Options struct {
	// Text is the text of a note, for phrases in quotes and for how near words
	// stand to each other; nil does without both. It is called while the index
	// is locked for reading and must not wait for a Put.
	Text func(id string) string
	// Parts are the title and the text of a note, for the vectors of a [Feed], and
	// whether that text must not leave the machine: the note may have changed since
	// it was put. The same rule holds.
	Parts func(id string) (title, body string, private bool)
	// Hashing also indexes the trigrams of every note, for [Hashing] searches.
	Hashing bool
}

// Index holds notes and finds them again. It is safe for concurrent use.
type Index struct {
	opt Options

	mu    sync.RWMutex
	words map[string]int32 // a folded word to its term, stopped for none
	terms []term
	grams gramIndex
	notes []note
	byID  map[string]uint32
	lens  []float32 // weighted length per note
	total float64   // sum of lens of live notes
	dead  int
	// compactions counts how often notes got new numbers.
	compactions uint64
	scan        scanner
	weights     []float32 // per term, of the note being put; zero between puts
	seen        []int32   // the terms that have one
	tri         trigrams
	space       *space // the dense signal; nil until there is one

	serving, coming *provided // vectors of a provider; nil for none

	learning sync.Mutex // held by Learn
	puts     atomic.Uint64
}

// A note is what the index remembers of a Doc.
type note struct {
	id      string
	stamp   [32]byte
	private bool
	gone    bool
}

// A term is a stem and where it occurs.
type term struct {
	text  string
	posts []post // ascending by note
}

// A post says how much of a note a term makes up.
type post struct {
	note uint32
	tf   float32
}

const stopped int32 = -1

// Weights of a word by where it stands.
const (
	inTitle   = 3
	inTags    = 2
	inOutline = 0.3
	inBody    = 1
)

// New returns an empty index.
func New(o Options) *Index {
	return &Index{
		opt: o, words: map[string]int32{}, byID: map[string]uint32{},
		grams: newGramIndex(), tri: newTrigrams(),
	}
}

// Len is the number of notes.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.byID)
}

// Stamp is the stamp the note was put with.
func (x *Index) Stamp(id string) (stamp [32]byte, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, ok := x.byID[id]
	if !ok {
		return stamp, false
	}
	return x.notes[n].stamp, true
}

// Put adds a note or replaces the one of the same ID. A note whose stamp is the
// one known is left alone.
func (x *Index) Put(d Doc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	former, known := x.byID[d.ID]
	if known {
		old := former
		if d.Stamp != [32]byte{} && x.notes[old].stamp == d.Stamp && x.notes[old].private == d.Private {
			return
		}
		x.bury(old)
	}
	x.puts.Add(1)
	n := uint32(len(x.notes))
	if known && !d.Private {
		x.serving.inherit(former, n)
		x.coming.inherit(former, n)
	}
	x.notes = append(x.notes, note{id: d.ID, stamp: d.Stamp, private: d.Private})
	x.byID[d.ID] = n
	x.seen = x.seen[:0]
	length := x.read(d.Title, inTitle)
	for _, t := range d.Tags {
		length += x.read(t, inTags)
	}
	for _, t := range d.Outline {
		length += x.read(t, inOutline)
	}
	length += x.read(d.Body, inBody)
	for _, t := range x.seen {
		x.terms[t].posts = append(x.terms[t].posts, post{n, x.weights[t]})
	}
	x.lens = append(x.lens, length)
	x.total += float64(length)
	if x.opt.Hashing {
		x.tri.add(n, d.Title+"\n"+d.Body)
	}
	x.space.fold(x, n)
	for _, t := range x.seen {
		x.weights[t] = 0
	}
	x.compact()
}

// Delete forgets a note.
func (x *Index) Delete(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n, ok := x.byID[id]; ok {
		delete(x.byID, id)
		x.bury(n)
		x.compact()
	}
}

// bury marks a note as gone; its posts stay until compact.
func (x *Index) bury(n uint32) {
	x.notes[n] = note{gone: true}
	x.total -= float64(x.lens[n])
	x.dead++
	x.puts.Add(1)
}

// compact rewrites the index without the notes that are gone, once they are many:
// until then they only cost room, and make common words look commoner.
func (x *Index) compact() {
	const least, share = 1024, 4
	if x.dead < least || x.dead*share < len(x.notes) {
		return
	}
	number := make([]uint32, len(x.notes))
	live := 0
	for i, n := range x.notes {
		if n.gone {
			number[i] = ^uint32(0)
			continue
		}
		number[i] = uint32(live)
		x.notes[live], x.lens[live] = n, x.lens[i]
		x.byID[n.id] = uint32(live)
		live++
	}
	clear(x.notes[live:])
	x.notes, x.lens = x.notes[:live], x.lens[:live]
	for i := range x.terms {
		kept := x.terms[i].posts[:0]
		for _, p := range x.terms[i].posts {
			if to := number[p.note]; to != ^uint32(0) {
				kept = append(kept, post{to, p.tf})
			}
		}
		x.terms[i].posts = kept
	}
	x.tri.renumber(number, live)
	x.space.renumber(number, live)
	x.serving.renumber(number, live)
	x.coming.renumber(number, live)
	x.dead = 0
	x.compactions++
}

// read adds the words of a field to the note being put and returns their weight.
func (x *Index) read(text string, weight float32) (length float32) {
	x.scan.words(text, func(w []byte, compound bool) {
		t, ok := x.words[string(w)]
		if !ok {
			t = x.learnWord(string(w))
		}
		if t == stopped {
			return
		}
		if x.weights[t] == 0 {
			x.seen = append(x.seen, t)
		}
		x.weights[t] += weight
		if !compound {
			length += weight
		}
	})
	return length
}

// learnWord enters a word that was not seen before.
func (x *Index) learnWord(w string) int32 {
	s := stem(w)
	if s == "" {
		x.words[w] = stopped
		return stopped
	}
	if s != w {
		if t, ok := x.words[s]; ok && t != stopped && x.terms[t].text == s {
			x.words[w] = t
			return t
		}
	}
	t := int32(len(x.terms))
	x.terms = append(x.terms, term{text: s})
	x.weights = append(x.weights, 0)
	x.grams.add(t, s)
	x.words[w] = t
	if _, ok := x.words[s]; !ok && stem(s) == s {
		x.words[s] = t
	}
	return t
}

// Size is how many bytes the index takes, roughly, and what for.
func (x *Index) Size() map[string]int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	size := map[string]int{"notes": cap(x.notes)*64 + cap(x.lens)*4}
	for i := range x.terms {
		size["posts"] += cap(x.terms[i].posts) * 8
		size["words"] += len(x.terms[i].text) + 40
	}
	size["words"] += len(x.words) * 32
	size["grams"] = x.grams.size()
	size["vectors"] = x.space.size()
	size["provided"] = x.serving.size() + x.coming.size()
	return size
}

// Hit is one result of a search.
type Hit struct {
	ID      string
	Score   float64 // 0 to 1 for Fused, else in the signal's own measure
	Lexical float64 // the share each signal had in it
	Spell   float64
	Dense   float64
	Near    float64
	Lent    float64 // of a provider's vectors
	// Alike is how near in meaning the note is, so that one threshold means the
	// same for every embedder: see threshold.go.
	Alike float64

	keep float64 // what is left of the other signals
}

// byScore orders hits, ties by ID, so that a ranking never depends on a map.
func byScore(a, b Hit) int {
	if c := cmp.Compare(b.Score, a.Score); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

func sortHits(hits []Hit, limit int) []Hit {
	slices.SortFunc(hits, byScore)
	return hits[:min(limit, len(hits))]
}
