package recall

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
)

// Bounds of what is learnt from. Beyond them a sample says as much.
const (
	mostSampled  = 12_000
	mostTerms    = 24_000
	mostDims     = 256
	largeDims    = 128 // from largeNotes on, where room counts
	largeNotes   = 100_000
	leastNotes   = 64 // fewer teach nothing
	rounds       = 3  // of subspace iteration
	learnSeed    = 0x9E3779B97F4A7C15
	foldAtOnce   = 1024 // notes, for which the index is locked against changes
	breath       = 256  // rows, after which others may go first
	leastInNotes = 2    // a term of one note relates to nothing
)

// Learn makes the dense signal from the notes themselves: words that occur in
// similar notes get similar vectors. It works beside searches and puts, on a
// sample when there are many notes, and always with the same result for the same
// notes. With too few notes it does nothing.
func (x *Index) Learn(ctx context.Context) error {
	x.learning.Lock()
	defer x.learning.Unlock()
	m, number := x.sample()
	if m == nil {
		return nil
	}
	dims := mostDims
	if number >= largeNotes {
		dims = largeDims
	}
	dims = max(min(dims, len(m.rows)/5, len(m.terms)/4), 2) // as many as there are notes would tell nothing new
	q, err := m.subspace(ctx, dims)
	if err != nil {
		return err
	}
	s := newSpace(dims)
	s.basis = make(map[int32][]float32, len(m.terms))
	for j, t := range m.terms {
		row := q.row(j)
		for i := range row {
			row[i] *= m.idf[j]
		}
		s.basis[t] = row
	}
	return x.install(ctx, s)
}

// install gives every note its vector and puts the space in place.
func (x *Index) install(ctx context.Context, s *space) error {
	terms := make([]int32, 0, len(s.basis))
	for t := range s.basis {
		terms = append(terms, t)
	}
	sortTerms(terms)
	compactions := uint64(0)
	for from := 0; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		x.mu.RLock()
		if x.compactions != compactions { // notes have new numbers
			from, compactions = 0, x.compactions
			s.scale, s.bytes, s.signs = nil, nil, nil
		}
		to := min(from+foldAtOnce, len(x.notes))
		s.grow(to)
		x.foldRange(s, terms, from, to)
		done := to == len(x.notes)
		x.mu.RUnlock()
		from = to
		if done {
			x.mu.Lock()
			if from == len(x.notes) && x.compactions == compactions {
				x.space = s
				x.mu.Unlock()
				return nil
			}
			x.mu.Unlock()
		}
	}
}

// foldRange makes the vectors of a range of notes out of their words.
func (x *Index) foldRange(s *space, terms []int32, from, to int) {
	sums := make([]float32, (to-from)*s.dims)
	for _, t := range terms {
		row, posts := s.basis[t], x.terms[t].posts
		at, _ := slices.BinarySearchFunc(posts, uint32(from), func(p post, n uint32) int { return cmp.Compare(p.note, n) })
		for _, p := range posts[at:] {
			if int(p.note) >= to {
				break
			}
			i := int(p.note) - from
			addScaled(sums[i*s.dims:(i+1)*s.dims], row, logTF(p.tf))
		}
	}
	for n := from; n < to; n++ {
		s.set(uint32(n), sums[(n-from)*s.dims:(n-from+1)*s.dims])
	}
}

func sortTerms(t []int32) { slices.Sort(t) }

// cells is a sparse matrix of sampled notes by terms, in both orders.
type cells struct {
	terms []int32 // column to term
	idf   []float32
	rows  [][]cell // by note
	cols  [][]cell // by term
}

type cell struct {
	at int32 // column of a row, row of a column
	w  float32
}

// sample takes the matrix to learn from, nil when there is too little. It also
// returns the number of notes there are.
func (x *Index) sample() (*cells, int) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	live := len(x.notes) - x.dead
	if live < leastNotes {
		return nil, live
	}
	row := make([]int32, len(x.notes)) // note to row, -1 for not sampled
	every := max(1, (live+mostSampled-1)/mostSampled)
	m, alive := &cells{}, 0
	for n := range row {
		row[n] = -1
		if x.notes[n].gone {
			continue
		}
		if alive%every == 0 {
			row[n] = int32(len(m.rows))
			m.rows = append(m.rows, nil)
		}
		alive++
	}
	byUse := make([]int32, 0, len(x.terms))
	for t := range x.terms {
		if df := len(x.terms[t].posts); df >= leastInNotes && df <= live/2 {
			byUse = append(byUse, int32(t))
		}
	}
	slices.SortStableFunc(byUse, func(a, b int32) int { return cmp.Compare(len(x.terms[b].posts), len(x.terms[a].posts)) })
	m.terms = byUse[:min(mostTerms, len(byUse))]
	sortTerms(m.terms)
	for j, t := range m.terms {
		idf := x.idf(t)
		m.idf = append(m.idf, idf)
		for _, p := range x.terms[t].posts {
			if r := row[p.note]; r >= 0 {
				m.rows[r] = append(m.rows[r], cell{int32(j), logTF(p.tf) * idf})
			}
		}
	}
	m.normalise()
	return m, live
}

// normalise makes every row a unit vector, so that long notes do not teach more,
// and derives the columns.
func (m *cells) normalise() {
	m.cols = make([][]cell, len(m.terms))
	for i, r := range m.rows {
		var sum float64
		for _, c := range r {
			sum += float64(c.w) * float64(c.w)
		}
		k := float32(1 / math.Sqrt(max(sum, 1e-12)))
		for j := range r {
			r[j].w *= k
			m.cols[r[j].at] = append(m.cols[r[j].at], cell{int32(i), r[j].w})
		}
	}
}

// matrix is dense, row by row.
type matrix struct {
	n, k int
	v    []float32
}

func newMatrix(n, k int) matrix { return matrix{n, k, make([]float32, n*k)} }

func (a matrix) row(i int) []float32 { return a.v[i*a.k : (i+1)*a.k] }

// subspace returns an orthonormal basis, one row per term, of the directions in
// which notes differ most: randomised subspace iteration.
func (m *cells) subspace(ctx context.Context, k int) (matrix, error) {
	q := newMatrix(len(m.terms), k)
	seed := uint64(learnSeed)
	for i := range q.v {
		seed ^= seed << 13
		seed ^= seed >> 7
		seed ^= seed << 17
		q.v[i] = float32(int64(seed)>>62) + 0.5
	}
	b := newMatrix(len(m.rows), k)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return q, err
		}
		multiply(b, m.rows, q)
		b.orthonormalise()
		multiply(q, m.cols, b)
	}
	q.orthonormalise()
	return q, nil
}

// multiply sets out to the product of a sparse and a dense matrix.
func multiply(out matrix, sparse [][]cell, dense matrix) {
	inParallel(out.n, func(i int) {
		row := out.row(i)
		clear(row)
		for _, c := range sparse[i] {
			addScaled(row, dense.row(int(c.at)), c.w)
		}
	})
}

// inParallel calls f for 0 to n-1. Each call must write to its own place only, so
// that the result does not depend on the number of processors. Whoever wants to run
// meanwhile runs first: somebody waits for a turn, nobody for what is learnt.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	// Somebody may be waiting for an answer meanwhile: one processor is left to it.
	workers := min(max(runtime.GOMAXPROCS(0)-1, 1), max(n/64, 1))
	for w := range workers {
		wg.Go(func() {
			for i := n * w / workers; i < n*(w+1)/workers; i++ {
				f(i)
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
}

// orthonormalise makes the columns orthonormal by the Cholesky factor of their
// products. A ridge keeps columns that depend on each other from dividing by zero.
func (a matrix) orthonormalise() {
	k := a.k
	g := a.products()
	var trace float64
	for i := range k {
		trace += g[i*k+i]
	}
	ridge := trace/float64(k)*1e-7 + 1e-30
	for i := range k {
		g[i*k+i] += ridge
		for j := range i + 1 {
			sum := g[i*k+j]
			for p := range j {
				sum -= g[i*k+p] * g[j*k+p]
			}
			if i == j {
				g[i*k+i] = math.Sqrt(max(sum, ridge))
			} else {
				g[i*k+j] = sum / g[j*k+j]
			}
		}
	}
	inParallel(a.n, func(r int) {
		row := a.row(r)
		for i := range k {
			sum := float64(row[i])
			l := g[i*k : i*k+i]
			for p, f := range l {
				sum -= f * float64(row[p])
			}
			row[i] = float32(sum / g[i*k+i])
		}
	})
}

// products returns the lower half of the products of the columns with each other.
func (a matrix) products() []float64 {
	k := a.k
	g := make([]float64, k*k)
	inParallel(k, func(i int) {
		to := g[i*k : i*k+i+1]
		for r := range a.n {
			if r%breath == breath-1 {
				runtime.Gosched()
			}
			row := a.v[r*k : r*k+i+1]
			f := float64(row[i])
			if f == 0 {
				continue
			}
			for j, v := range row {
				to[j] += f * float64(v)
			}
		}
	})
	return g
}
