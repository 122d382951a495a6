package recall

import "math/rand/v2"

// VectorOf is the learnt vector of any text, for tests that need an embedder with
// some sense of meaning.
func (x *Index) VectorOf(text string) []float32 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	v := make([]float32, x.space.dims)
	for _, w := range x.parse(text).words {
		if w.term != stopped {
			addScaled(v, x.space.basis[w.term], logTF(w.count))
		}
	}
	return v
}

// AlikeAt are the scales of the built-in embedders.
func AlikeAt() (learnt, hashing struct{ Floor, Alike float64 }) {
	learnt.Floor, learnt.Alike = learntAlike.floor, learntAlike.alike
	hashing.Floor, hashing.Alike = hashingAlike.floor, hashingAlike.alike
	return learnt, hashing
}

// Mute makes questions possible again at once.
func (f *Feed) Unmute() { f.mu.Lock(); defer f.mu.Unlock(); f.mute = f.mute.AddDate(-1, 0, 0) }

// A Scan is a look at the signs of many vectors.
type Scan struct {
	p      probe
	differ []uint16
}

// NewScan makes random vectors to look at.
func NewScan(notes, dims int) *Scan {
	r := rand.New(rand.NewPCG(1, 2))
	s := newSpace(dims)
	s.scale, s.signs = make([]float32, notes), make([]uint64, notes*s.dims/64)
	for i := range s.signs {
		s.signs[i] = r.Uint64()
	}
	return &Scan{probe{s: s, signs: s.signs[:s.dims/64]}, make([]uint16, notes)}
}

// Run looks at all of them.
func (s *Scan) Run() int { return len(s.p.compare(s.differ)) }

// Bytes are what is read and written by one Run.
func (s *Scan) Bytes() int { return 8*len(s.p.s.signs) + 2*len(s.differ) }

// Read reads as much memory and does nothing with it.
func (s *Scan) Read() (sum uint64) {
	v := s.p.s.signs
	var a, b, c, d uint64
	for len(v) >= 4 {
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
		v = v[4:]
	}
	var e uint16
	for i := range s.differ {
		s.differ[i] = e
	}
	return a + b + c + d
}

// Dot is the product of two vectors as they are kept, which is their likeness but for
// a factor.
var Dot = dot
