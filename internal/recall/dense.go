package recall

import (
	"math"
	"math/bits"
	"sync"
)

// space is the dense signal: one vector per note, in bytes with a scale, and the
// signs of its components for a first look at many. It is guarded by the index.
type space struct {
	dims  int                 // a multiple of 64
	basis map[int32][]float32 // a term's vector, idf included
	bytes []int8              // dims per note
	scale []float32           // 0 for a note without a vector
	signs []uint64            // dims/64 per note: whether a component is above mid
	mid   []float32           // the middle of the notes' unit vectors; nil for 0
}

// manyNotes is from where signs are looked at first.
const manyNotes = 20_000

func newSpace(dims int) *space {
	return &space{dims: (dims + 63) / 64 * 64}
}

func (s *space) size() int {
	if s == nil {
		return 0
	}
	return cap(s.bytes) + 4*cap(s.scale) + 8*cap(s.signs) + len(s.basis)*(s.dims*4+40)
}

// grow makes room for n notes.
func (s *space) grow(n int) {
	for more := n - len(s.scale); more > 0; more = 0 {
		s.scale = append(s.scale, make([]float32, more)...)
		s.bytes = append(s.bytes, make([]int8, more*s.dims)...)
		s.signs = append(s.signs, make([]uint64, more*s.dims/64)...)
	}
}

// set stores a note's vector; a vector of zeros is none.
func (s *space) set(n uint32, v []float32) {
	var sum float64
	var most float32
	for _, f := range v {
		sum += float64(f) * float64(f)
		most = max(most, f, -f)
	}
	if s.scale[n] = 0; sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return
	}
	to := s.bytes[int(n)*s.dims : int(n+1)*s.dims]
	clear(to)
	step := 127 / most
	for i, f := range v[:min(len(v), s.dims)] {
		to[i] = int8(math.RoundToEven(float64(f * step)))
	}
	s.scale[n] = float32(1 / (float64(step) * math.Sqrt(sum)))
	s.sign(n)
}

// sign derives the signs of a note's vector.
func (s *space) sign(n uint32) {
	w := s.dims / 64
	signs := s.signs[int(n)*w : int(n+1)*w]
	clear(signs)
	for i, b := range s.bytes[int(n)*s.dims : int(n+1)*s.dims] {
		above := b > 0
		if s.mid != nil {
			above = float32(b)*s.scale[n] > s.mid[i]
		}
		if above {
			signs[i/64] |= 1 << (i % 64)
		}
	}
}

// centre finds the middle of the vectors and derives all signs again: models tend
// to put everything into one corner of the space, where plain signs say nothing.
func (s *space) centre() {
	const most = 8192
	mid := make([]float32, s.dims)
	every, seen := max(1, len(s.scale)/most), 0
	for n := 0; n < len(s.scale); n += every {
		if s.scale[n] == 0 {
			continue
		}
		seen++
		for i, b := range s.bytes[n*s.dims : (n+1)*s.dims] {
			mid[i] += float32(b) * s.scale[n]
		}
	}
	for i := range mid {
		mid[i] /= float32(max(seen, 1))
	}
	s.mid = mid
	for n := range s.scale {
		s.sign(uint32(n))
	}
}

// renumber follows a compaction of the index.
func (s *space) renumber(number []uint32, live int) {
	if s == nil {
		return
	}
	s.grow(len(number))
	w := s.dims / 64
	for i, to := range number {
		if to != ^uint32(0) {
			s.scale[to] = s.scale[i]
			copy(s.bytes[int(to)*s.dims:int(to+1)*s.dims], s.bytes[i*s.dims:])
			copy(s.signs[int(to)*w:int(to+1)*w], s.signs[i*w:])
		}
	}
	s.scale, s.bytes, s.signs = s.scale[:live], s.bytes[:live*s.dims], s.signs[:live*w]
}

// fold gives the note being put its vector.
func (s *space) fold(x *Index, n uint32) {
	if s == nil {
		return
	}
	s.grow(int(n) + 1)
	v := make([]float32, s.dims)
	sortTerms(x.seen) // sums of floats depend on the order
	for _, t := range x.seen {
		addScaled(v, s.basis[t], logTF(x.weights[t]))
	}
	s.set(n, v)
}

func logTF(tf float32) float32 { return float32(math.Log1p(float64(tf))) }

// addScaled adds k times row to v; a term without a vector adds nothing.
func addScaled(v, row []float32, k float32) {
	if len(row) == 0 {
		return
	}
	v = v[:len(row)]
	for i, f := range row {
		v[i] += k * f
	}
}

// A probe is a query's vector. The zero value is near to nothing.
type probe struct {
	s     *space
	bytes []int8
	scale float32
	signs []uint64
}

// probe makes the query's vector from its words; a word that taught nothing is
// replaced by those spelt most like it.
func (s *space) probe(x *Index, q query) probe {
	if s == nil {
		return probe{}
	}
	const replacements = 3
	vector := make([]float32, s.dims)
	for _, w := range q.words {
		if w.term != stopped && s.basis[w.term] != nil {
			addScaled(vector, s.basis[w.term], logTF(w.count))
			continue
		}
		like := x.grams.alike(w.stem, w.term)
		for _, l := range like[:min(replacements, len(like))] {
			addScaled(vector, s.basis[l.term], logTF(w.count)*l.sim*l.sim)
		}
	}
	return s.ask(vector)
}

// cosine is how near the note is.
func (p probe) cosine(n uint32) float32 {
	if !p.has(n) {
		return 0
	}
	d := p.s.dims
	return float32(dot(p.bytes, p.s.bytes[int(n)*d:int(n+1)*d])) * p.scale * p.s.scale[n]
}

// dot multiplies two vectors of equal length, a multiple of 64.
func dot(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += int32(a[0])*int32(b[0]) + int32(a[4])*int32(b[4])
		s1 += int32(a[1])*int32(b[1]) + int32(a[5])*int32(b[5])
		s2 += int32(a[2])*int32(b[2]) + int32(a[6])*int32(b[6])
		s3 += int32(a[3])*int32(b[3]) + int32(a[7])*int32(b[7])
		a, b = a[8:], b[8:]
	}
	return s0 + s1 + s2 + s3
}

// nearest returns the notes with the highest cosine above 0. With many notes only
// those are compared whose signs agree most.
func (p probe) nearest(x *Index, most int) []uint32 {
	if p.s == nil || p.scale == 0 {
		return nil
	}
	top := newTop(most)
	if len(p.s.scale) < manyNotes {
		for n := range p.s.scale {
			if c := p.cosine(uint32(n)); c > top.least && !x.notes[n].gone {
				top.add(uint32(n), c)
			}
		}
		return top.numbers()
	}
	for _, n := range p.agreeing(x, 8*most) {
		if c := p.cosine(n); c > top.least {
			top.add(n, c)
		}
	}
	return top.numbers()
}

// agreeing returns notes by how many signs they share with the probe. It counts
// first and collects then: the number of components is small.
func (p probe) agreeing(x *Index, most int) []uint32 {
	kept := differences.Get().(*[]uint16)
	defer differences.Put(kept)
	if cap(*kept) < len(p.s.scale) {
		*kept = make([]uint16, len(p.s.scale)+len(p.s.scale)/4)
	}
	differ := (*kept)[:len(p.s.scale)]
	counts := p.compare(differ)
	cut, sum := 0, 0
	for cut < p.s.dims/2 && sum+counts[cut] <= most {
		sum += counts[cut]
		cut++
	}
	out := make([]uint32, 0, sum)
	for n, d := range differ {
		if int(d) < cut && p.s.scale[n] != 0 && !x.notes[n].gone {
			out = append(out, uint32(n))
		}
	}
	return out
}

// differences are reused from search to search.
var differences = sync.Pool{New: func() any { return new([]uint16) }}

// compare notes of every vector in how many signs it differs from the probe, and
// returns how many differ in how many. It reads every sign once and should take
// little longer than that takes.
func (p probe) compare(differ []uint16) []int {
	counts := make([]int, p.s.dims+1)
	signs, w := p.s.signs, p.s.dims/64
	if w == 2 { // what many notes have
		more := make([]int, p.s.dims+1) // two lists: the same entry twice in a row is slow
		p0, p1 := p.signs[0], p.signs[1]
		for n := 0; n < len(differ); n++ {
			s := signs[2*n : 2*n+2 : 2*n+2]
			d := bits.OnesCount64(s[0]^p0) + bits.OnesCount64(s[1]^p1)
			differ[n] = uint16(d)
			if n&1 == 0 {
				counts[d]++
			} else {
				more[d]++
			}
		}
		for d, c := range more {
			counts[d] += c
		}
		return counts
	}
	for n := range differ {
		d := 0
		for i, s := range signs[n*w : n*w+w] {
			d += bits.OnesCount64(s ^ p.signs[i])
		}
		differ[n] = uint16(d)
		counts[d]++
	}
	return counts
}
