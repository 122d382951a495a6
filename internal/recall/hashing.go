package recall

import "strings"

// trigrams is the ancestor's measure: the Jaccard index of the sets of three
// letters that two texts hold. It is kept for comparison and is not learnt from.
type trigrams struct {
	notes  map[[3]rune][]uint32
	counts []uint32
}

func newTrigrams() trigrams { return trigrams{notes: map[[3]rune][]uint32{}} }

func triSet(text string) map[[3]rune]bool {
	set := map[[3]rune]bool{}
	var w [3]rune
	n := 0
	for _, r := range strings.ToLower(strings.Join(strings.Fields(text), " ")) {
		w[0], w[1], w[2] = w[1], w[2], r
		if n++; n >= len(w) {
			set[w] = true
		}
	}
	return set
}

func (t *trigrams) add(n uint32, text string) {
	set := triSet(text)
	for g := range set {
		t.notes[g] = append(t.notes[g], n)
	}
	t.counts = append(t.counts, uint32(len(set)))
}

func (t *trigrams) renumber(number []uint32, live int) {
	if len(t.counts) == 0 {
		return
	}
	for i, to := range number {
		if to != ^uint32(0) {
			t.counts[to] = t.counts[i]
		}
	}
	t.counts = t.counts[:live]
	for g, list := range t.notes {
		kept := list[:0]
		for _, n := range list {
			if to := number[n]; to != ^uint32(0) {
				kept = append(kept, to)
			}
		}
		t.notes[g] = kept
	}
}

// scores fills in the Jaccard index of the text with every note.
func (t *trigrams) scores(text string, into []float32) {
	set := triSet(text)
	for g := range set {
		for _, n := range t.notes[g] {
			into[n]++
		}
	}
	for n, c := range t.counts {
		if into[n] > 0 {
			into[n] /= float32(len(set)) + float32(c) - into[n]
		}
	}
}
