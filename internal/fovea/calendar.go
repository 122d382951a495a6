package fovea

import (
	"cmp"
	"slices"

	"passepartout/internal/memory"
)

// A calendar keeps deadlines in order while a few of very many change. The zero value
// is empty.
type calendar struct {
	of      map[memory.ID]deadline
	sorted  []deadline
	added   []deadline         // not in sorted yet
	dropped map[memory.ID]bool // in sorted still
}

// deadline is a date and when it is first warned of, in seconds since 1970.
type deadline struct {
	at, warn int64
	id       memory.ID
}

func (d deadline) compare(e deadline) int {
	return cmp.Or(cmp.Compare(d.at, e.at), cmp.Compare(d.id, e.id))
}

// add notes a task's deadline, in the place of the one it had.
func (c *calendar) add(d deadline) {
	if c.of == nil {
		c.of, c.dropped = map[memory.ID]deadline{}, map[memory.ID]bool{}
	}
	c.drop(d.id)
	c.of[d.id] = d
	c.added = append(c.added, d)
}

// drop forgets a task's deadline, if it has one.
func (c *calendar) drop(id memory.ID) {
	if _, ok := c.of[id]; ok {
		delete(c.of, id)
		c.dropped[id] = true
	}
}

// settle brings the order up to date: what is new is sorted and merged, which for a
// few changes among fifty thousand is a hundred times less than sorting all.
func (c *calendar) settle() {
	if len(c.added) == 0 && len(c.dropped) == 0 {
		return
	}
	slices.SortFunc(c.added, deadline.compare)
	out := make([]deadline, 0, len(c.of))
	put := func(d deadline) {
		if len(out) == 0 || out[len(out)-1] != d {
			out = append(out, d)
		}
	}
	old := c.sorted
	for _, d := range c.added {
		if c.of[d.id] != d {
			continue // it was changed again, or dropped
		}
		for len(old) > 0 && old[0].compare(d) < 0 {
			if !c.dropped[old[0].id] {
				put(old[0])
			}
			old = old[1:]
		}
		put(d)
	}
	for _, d := range old {
		if !c.dropped[d.id] {
			put(d)
		}
	}
	c.sorted, c.added = out, nil
	clear(c.dropped)
}

// after is the deadlines later than a moment, earliest first.
func (c *calendar) after(moment int64) []deadline {
	c.settle()
	i, _ := slices.BinarySearchFunc(c.sorted, moment, func(d deadline, t int64) int {
		if d.at > t {
			return 1
		}
		return -1
	})
	return c.sorted[i:]
}
