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
	lacks  map[string]error           // what a skill names and is not there
	asked  map[string]map[string]bool // of below, what a skill says it builds on, directly or not
}

// arrange sorts the sources. A skill in a circle, or one that builds on something
// failed, is left out and has an error; the others are not affected. One that builds on
// something missing is not: a gate that fails because of that refuses, and one that is
// left out would not.
func arrange(all map[string]*source) order {
	byID := map[string]string{}
	for _, n := range names(all) {
		if id := all[n].id; id != "" {
			byID[id] = n
		}
	}
	w := walk{all: all, byID: byID, state: map[string]int{}, order: order{below: map[string][]string{}, failed: map[string]error{}, lacks: map[string]error{}, asked: map[string]map[string]bool{}}}
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
	needs, missing := w.all[n].resolve(w.byID, w.all)
	if missing != nil {
		w.lacks[n] = missing
	}
	said := len(needs)
	for _, m := range names(w.all) {
		if m != n && !slices.Contains(needs, m) && w.all[n].uses(w.all[m]) {
			needs = append(needs, m)
		}
	}
	var below []string
	asked := map[string]bool{}
	for i, m := range needs {
		if i >= said { // nobody said so: what cannot be had is done without
			if w.state[m] == open {
				continue
			}
			if w.visit(m); w.failed[m] != nil {
				continue
			}
		}
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
			if i < said && (b == m || w.asked[m][b]) {
				asked[b] = true
			}
		}
	}
	if w.failed[n] == nil {
		w.below[n], w.asked[n] = below, asked
		w.sorted = append(w.sorted, n)
	}
}
