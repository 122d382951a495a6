package fovea

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"passepartout/internal/memory"
)

// TestACalendarAgreesWithSortingEverything changes deadlines at random and compares
// with a map that is sorted anew each time.
func TestACalendarAgreesWithSortingEverything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	var c calendar
	naive := map[memory.ID]deadline{}
	for step := range 5000 {
		id := memory.ID(fmt.Sprint("n", r.IntN(60)))
		switch r.IntN(5) {
		case 0:
			c.drop(id)
			delete(naive, id)
		case 1: // look
			moment := r.Int64N(40)
			want := slices.DeleteFunc(slices.SortedFunc(maps.Values(naive), deadline.compare), func(d deadline) bool { return d.at <= moment })
			if got := c.after(moment); !slices.Equal(got, want) {
				t.Fatalf("step %d: after %d are %v, want %v", step, moment, got, want)
			}
		default:
			d := deadline{at: r.Int64N(40), warn: r.Int64N(40), id: id}
			c.add(d)
			naive[id] = d
		}
	}
	if len(c.sorted) > len(naive)+60 || len(c.added) > 5000 {
		t.Errorf("%d deadlines are kept as %d", len(naive), len(c.sorted))
	}
}
