package recall

import (
	"cmp"
	"math"
	"slices"
	"unicode/utf8"
)

// Lengths of the character grams by which words are compared.
const shortestGram, longestGram = 3, 5

// gramIndex finds the terms that are spelt like a word.
type gramIndex struct {
	terms map[uint32][]int32 // a gram's hash to the terms it occurs in
	norms []float32          // grams per term
}

func newGramIndex() gramIndex { return gramIndex{terms: map[uint32][]int32{}} }

// spelt calls emit for each gram of the word between marks of its beginning and end.
func spelt(word string, emit func(uint32)) {
	var buf [longestWord*utf8.UTFMax + 2]byte
	b := append(append(append(buf[:0], '^'), word...), '$')
	for i := range b {
		if b[i]&0xC0 == 0x80 {
			continue // inside a letter
		}
		h, letters := uint32(2166136261), 0
		for j := i; j < len(b) && letters <= longestGram; j++ {
			if b[j]&0xC0 != 0x80 {
				if letters >= shortestGram {
					emit(h)
				}
				letters++
			}
			h = (h ^ uint32(b[j])) * 16777619
			if j == len(b)-1 && letters >= shortestGram && letters <= longestGram {
				emit(h)
			}
		}
	}
}

func (g *gramIndex) add(t int32, text string) {
	n := 0
	spelt(text, func(h uint32) {
		n++
		list := g.terms[h]
		if len(list) == 0 || list[len(list)-1] != t {
			g.terms[h] = append(list, t)
		}
	})
	g.norms = append(g.norms, float32(math.Sqrt(float64(max(n, 1)))))
}

func (g *gramIndex) size() int {
	n := 4 * cap(g.norms)
	for _, l := range g.terms {
		n += 4*cap(l) + 40
	}
	return n
}

// A likeness is a term and how much it is spelt like a word, up to 1.
type likeness struct {
	term int32
	sim  float32
}

// Bounds of a search for words spelt alike.
const (
	mostAlike   = 12
	leastAlike  = 0.45
	mostShared  = 20000 // a gram of more terms tells nothing apart
	shortestSim = 4     // letters below which a likeness is chance
)

// alike returns the terms spelt most like the word, without the word itself.
func (g *gramIndex) alike(word string, self int32) []likeness {
	if utf8.RuneCountInString(word) < shortestSim {
		return nil
	}
	shared := map[int32]float32{}
	n := 0
	spelt(word, func(h uint32) {
		n++
		if list := g.terms[h]; len(list) <= mostShared {
			for _, t := range list {
				shared[t]++
			}
		}
	})
	norm := float32(math.Sqrt(float64(n)))
	var out []likeness
	for t, c := range shared {
		if sim := c / (norm * g.norms[t]); sim >= leastAlike && t != self {
			out = append(out, likeness{t, sim})
		}
	}
	slices.SortFunc(out, func(a, b likeness) int {
		if c := cmp.Compare(b.sim, a.sim); c != 0 {
			return c
		}
		return cmp.Compare(a.term, b.term)
	})
	return out[:min(mostAlike, len(out))]
}
