package recall

// provided is the dense signal of somebody else's model: one vector per note, made
// outside the index from the note's text. It is guarded by the index.
type provided struct {
	space
	name string
	raw  int       // components of a vector before padding
	keys []textKey // per note, what its vector was made from; zero for none
	cal  Calibration
}

// A textKey stands for a text: the beginning of its note's stamp.
type textKey [16]byte

func keyOf(stamp [32]byte) (k textKey) {
	copy(k[:], stamp[:])
	return k
}

// Calibration says how far a model's vectors can be trusted, as found out on the
// notes themselves ([Feed]).
type Calibration struct {
	Weight    float64 `json:"weight"`    // share in the fusion; 0 for a model that does not help
	Floor     float64 `json:"floor"`     // cosine of notes that have nothing to do with each other
	Gain      float64 `json:"gain"`      // mean reciprocal rank with the model, less that without
	Questions int     `json:"questions"` // it was tried on
	Notes     int     `json:"notes"`     // there were then
}

func newProvided(name string, dims int) *provided {
	return &provided{space: *newSpace(dims), name: name, raw: dims}
}

func (p *provided) grow(n int) {
	p.space.grow(n)
	if more := n - len(p.keys); more > 0 {
		p.keys = append(p.keys, make([]textKey, more)...)
	}
}

func (p *provided) put(n uint32, k textKey, v []float32) {
	p.grow(int(n) + 1)
	p.set(n, v)
	p.keys[n] = k
}

// putQuantised stores a vector as it was kept.
func (p *provided) putQuantised(n uint32, k textKey, v []int8, scale float32) {
	p.grow(int(n) + 1)
	to := p.bytes[int(n)*p.dims : int(n+1)*p.dims]
	clear(to[copy(to, v):])
	p.scale[n] = scale
	p.sign(n)
	p.keys[n] = k
}

// inherit gives a note that was put again the vector of its former text, which is
// nearer than none until a new one is made.
func (p *provided) inherit(from, to uint32) {
	if p == nil || int(from) >= len(p.keys) {
		return
	}
	p.grow(int(to) + 1)
	p.scale[to], p.keys[to] = p.scale[from], p.keys[from]
	copy(p.bytes[int(to)*p.dims:int(to+1)*p.dims], p.bytes[int(from)*p.dims:])
	w := p.dims / 64
	copy(p.signs[int(to)*w:int(to+1)*w], p.signs[int(from)*w:])
}

func (p *provided) renumber(number []uint32, live int) {
	if p == nil {
		return
	}
	p.grow(len(number))
	p.space.renumber(number, live)
	for i, to := range number {
		if to != ^uint32(0) {
			p.keys[to] = p.keys[i]
		}
	}
	p.keys = p.keys[:live]
}

func (p *provided) size() int {
	if p == nil {
		return 0
	}
	return p.space.size() + 16*cap(p.keys)
}

// probe is a question's vector among the notes'; the zero probe if the model is not
// trusted or the vector not one of its own.
func (p *provided) probe(v []float32) probe {
	if p == nil || len(v) == 0 || len(v) != p.raw {
		return probe{}
	}
	return p.ask(v)
}

// ask quantises a vector to compare it with the notes'.
func (s *space) ask(v []float32) probe {
	one := space{dims: s.dims, mid: s.mid}
	one.grow(1)
	one.set(0, v)
	return probe{s: s, bytes: one.bytes, scale: one.scale[0], signs: one.signs}
}

// has reports whether the note has a vector to compare.
func (p probe) has(n uint32) bool {
	return p.s != nil && p.scale != 0 && int(n) < len(p.s.scale) && p.s.scale[n] != 0
}

// A staleNote is one whose vector is to be made.
type staleNote struct {
	id  string
	key textKey
}

// count says how many notes may have a vector of the set, and how many have one of
// their present text.
func (x *Index) count(p *provided, local bool) (have, want, withheld int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for n := range x.notes {
		switch note := &x.notes[n]; {
		case note.gone, note.stamp == [32]byte{}:
		case note.private && !local:
			withheld++
		default:
			want++
			if n < len(p.keys) && p.keys[n] == keyOf(note.stamp) {
				have++
			}
		}
	}
	return have, want, withheld
}

// stale returns at most so many notes, from a number on, whose vector in the set is
// missing or of an earlier text, and where to go on.
func (x *Index) stale(p *provided, local bool, from uint32, most int) (out []staleNote, next uint32) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for n := from; int(n) < len(x.notes); n++ {
		if len(out) == most {
			return out, n
		}
		note := &x.notes[n]
		if note.gone || note.private && !local || note.stamp == [32]byte{} {
			continue
		}
		if k := keyOf(note.stamp); int(n) >= len(p.keys) || p.keys[n] != k {
			out = append(out, staleNote{note.id, k})
		}
	}
	return out, uint32(len(x.notes))
}

// accept enters vectors into a set, for the notes that still have that text.
func (x *Index) accept(p *provided, notes []staleNote, vectors [][]float32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, s := range notes {
		if n, ok := x.byID[s.id]; ok && vectors[i] != nil && keyOf(x.notes[n].stamp) == s.key {
			p.put(n, s.key, vectors[i])
		}
	}
}

// attach puts a set in place of the serving or of the coming one; nil takes it away.
func (x *Index) attach(serving, coming *provided) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range []*provided{serving, coming} {
		if p != nil {
			p.grow(len(x.notes))
		}
	}
	x.serving, x.coming = serving, coming
}
