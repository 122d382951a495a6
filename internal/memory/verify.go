package memory

import (
	"bytes"
	"fmt"
	"os"
)

// Stats counts what a view holds.
type Stats struct {
	Files, Headlines int
	Bytes            int64
	Tasks, Open      int
	Todo             map[string]int
	Tags             map[string]int
	Scopes           map[string]int
	WithID           int
	Duplicates       int // identifiers written in more than one file
	Unsaved          int // files shown from a client's buffer
	Hash             Hash
}

// Stats counts what the view holds.
func (v *View) Stats() Stats {
	st := Stats{Files: len(v.sorted), Headlines: v.count, Todo: map[string]int{}, Tags: map[string]int{}, Scopes: map[string]int{}, Duplicates: len(v.ids.twins), Hash: v.Hash()}
	for _, k := range v.sorted {
		n := v.files[k]
		st.Bytes += int64(len(n.of.Bytes()))
		if n.unsaved {
			st.Unsaved++
		}
		for i := range n.recs {
			o := v.object(n, i)
			st.Scopes[o.Scope()]++
			for _, t := range o.Tags {
				st.Tags[t]++
			}
			if o.Todo != "" {
				st.Tasks++
				st.Todo[o.Todo]++
				if !o.Done {
					st.Open++
				}
			}
			if !o.ID.Derived() {
				st.WithID++
			}
		}
	}
	return st
}

// Verify recomputes every hash from the text, compares the text with the disk and
// the index of identifiers with the objects. It returns what does not agree.
func (s *Store) Verify() []Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.View()
	ps := v.verify()
	for _, k := range v.sorted {
		n := s.diskNode(v.files[k].path)
		if n == nil {
			continue
		}
		b, err := os.ReadFile(s.abs(n.path))
		if err != nil {
			ps = append(ps, Problem{n.path, err})
		} else if !bytes.Equal(b, n.of.Bytes()) {
			ps = append(ps, Problem{n.path, fmt.Errorf("differs from the disk: refresh")})
		}
	}
	return ps
}

// verify checks a view against itself.
func (v *View) verify() []Problem {
	var ps []Problem
	bad := func(p, format string, args ...any) { ps = append(ps, Problem{p, fmt.Errorf(format, args...)}) }
	count := 0
	for _, k := range v.sorted {
		n := v.files[k]
		count += len(n.recs)
		if fresh := buildNode(n.path, n.of, n.stat, nil); fresh.sum != n.sum {
			bad(n.path, "merkle hash: want %s, found %s", fresh.sum, n.sum)
		}
		for i := -1; i < len(n.recs); i++ {
			id := v.idOf(n, i)
			o, ok := v.Get(id)
			if !ok || o.n != n || o.i != i {
				bad(n.path, "identifier %s of section %d leads elsewhere", id, i)
			}
		}
	}
	if count != v.count {
		bad("", "want %d headlines, counted %d", v.count, count)
	}
	ids := 0
	for _, m := range v.ids.shards {
		ids += len(m)
	}
	if want := count + len(v.sorted); ids+len(v.ids.demoted) != want {
		bad("", "want %d identifiers, found %d and %d demoted", want, ids, len(v.ids.demoted))
	}
	return ps
}
