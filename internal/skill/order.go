package skill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// An order is the skills sorted so that each comes after what it builds on, and
// what each of them builds on, directly or not, in that order.
type order struct {
	sorted []string
	below  map[string][]string
	failed map[string]error
}

// arrange sorts the sources. A skill in a circle, or one that builds on something
// missing or failed, is left out and has an error; the others are not affected.
func arrange(all map[string]*source) order {
	byID := map[string]string{}
	for _, n := range names(all) {
		if id := all[n].id; id != "" {
			byID[id] = n
		}
	}
	w := walk{all: all, byID: byID, state: map[string]int{}, order: order{below: map[string][]string{}, failed: map[string]error{}}}
	for _, n := range names(all) {
		w.visit(n)
	}
	return w.order
}

const (
	unseen = iota
	open
	closed
)

type walk struct {
	all   map[string]*source
	byID  map[string]string
	state map[string]int
	path  []string
	order
}

func (w *walk) visit(n string) {
	if w.state[n] != unseen {
		return
	}
	w.state[n] = open
	w.path = append(w.path, n)
	defer func() {
		w.state[n] = closed
		w.path = w.path[:len(w.path)-1]
	}()
	needs, err := w.all[n].resolve(w.byID, w.all)
	if err != nil {
		w.failed[n] = err
		return
	}
	var below []string
	for _, m := range needs {
		if w.state[m] == open {
			circle := append(slices.Clone(w.path[slices.Index(w.path, m):]), m)
			for _, c := range circle {
				w.failed[c] = fmt.Errorf("%s: depends on itself: %s", w.all[c].file, strings.Join(circle, " → "))
			}
			return
		}
		w.visit(m)
		if w.failed[m] != nil {
			if w.failed[n] == nil {
				w.failed[n] = fmt.Errorf("%s: builds on %s, which does not load", w.all[n].file, m)
			}
			return
		}
		for _, b := range append(slices.Clone(w.below[m]), m) {
			if !slices.Contains(below, b) {
				below = append(below, b)
			}
		}
	}
	if w.failed[n] == nil {
		w.below[n] = below
		w.sorted = append(w.sorted, n)
	}
}
