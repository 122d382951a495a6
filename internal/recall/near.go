package recall

// window is how many words may lie between two that belong together.
const window = 8

// nearness is how close together the query's words stand in a text: for every pair
// of them, each meeting counts by the square of the distance, and many meetings
// count less than their number, as words do in BM25.
func (x *Index) nearness(q query, text string) float32 {
	if len(q.words) < 2 {
		return 0
	}
	slot := make(map[int32]int, len(q.words))
	idf := make([]float32, len(q.words))
	for i, w := range q.words {
		if w.term != stopped {
			slot[w.term], idf[i] = i, x.idf(w.term)
		}
	}
	k := len(q.words)
	last := make([]int, k)
	met := make([]float32, k*k)
	at := window + 1
	var s scanner
	s.words(text, func(word []byte, compound bool) {
		if !compound {
			at++
		}
		t, ok := x.words[string(word)]
		if !ok || t == stopped {
			return
		}
		i, ok := slot[t]
		if !ok {
			return
		}
		for j, p := range last {
			if d := at - p; p > 0 && j != i && d <= window {
				met[min(i, j)*k+max(i, j)] += 1 / float32(max(d, 1)*max(d, 1))
			}
		}
		last[i] = at
	})
	var sum float32
	for i := range k {
		for j := i + 1; j < k; j++ {
			if m := met[i*k+j]; m > 0 {
				sum += min(idf[i], idf[j]) * m * (bmK1 + 1) / (m + bmK1)
			}
		}
	}
	return sum
}

// Bounds of reading notes again for nearness.
const (
	mostReread = 30
	rereadText = 4 << 10
)

// reread adds the nearness of the query's words to the first of the hits.
func (x *Index) reread(q query, hits []Hit, of float64) {
	if x.opt.Text == nil || len(q.words) < 2 {
		return
	}
	hits = hits[:min(mostReread, len(hits))]
	near := make([]float32, len(hits))
	var best float32
	for i, h := range hits {
		text := x.opt.Text(h.ID)
		near[i] = x.nearness(q, text[:min(rereadText, len(text))])
		best = max(best, near[i])
	}
	for i := range hits {
		hits[i].Near = share(of, near[i], best) * hits[i].keep
		hits[i].Score += hits[i].Near
	}
}
