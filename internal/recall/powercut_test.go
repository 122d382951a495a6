package recall_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"passepartout/internal/powercut"
	"passepartout/internal/recall"
)

// A counter is an embedder that counts the notes it is given.
type counter struct {
	name  string
	dims  int
	notes int
}

func (c *counter) Name() string { return c.name }
func (*counter) Local() bool    { return true }

func (c *counter) Embed(_ context.Context, texts []string, query bool) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = noise(c.dims)(c.name, t)
	}
	if !query {
		c.notes += len(texts)
	}
	return out, nil
}

// TestVectorsAreMadeOnceWheneverThePowerFails: a provider is not asked, and paid, again
// for what was said to be kept, and what is left of a set never stops the next.
func TestVectorsAreMadeOnceWheneverThePowerFails(t *testing.T) {
	before := stamped(invented(6, 1))
	after := stamped(invented(6, 1))
	after[3].Body += " changed"
	after = stamped(after)
	steps := []struct {
		with recall.Embedder
		docs []recall.Doc
	}{
		{&counter{name: "a/one", dims: 8}, before},
		{&counter{name: "a/one", dims: 8}, after},
		{&counter{name: "a/two", dims: 16}, after},
	}
	feed := func(dir string, i int, with recall.Embedder) *recall.Feed {
		return recall.NewFeed(library(steps[i].docs), recall.FeedOptions{Dir: filepath.Join(dir, "state", "vectors"), Embedder: with})
	}
	powercut.Run(t, powercut.Scenario{
		Work: func(dir string, mark func(string)) error {
			for i, s := range steps {
				if err := feed(dir, i, s.with).Drain(t.Context()); err != nil {
					return err
				}
				mark(s.with.Name())
			}
			return nil
		},
		Check: func(dir string, marks []string) error {
			i := max(len(marks)-1, 0)
			if next := min(i+1, len(steps)-1); steps[next].with.Name() != steps[i].with.Name() {
				f := feed(dir, next, steps[next].with)
				if err := f.Load(); err != nil {
					return err
				}
				if f.Progress().Serving == steps[next].with.Name() {
					i = next // it is whole already, and the one before may be gone
				}
			}
			with := *steps[i].with.(*counter)
			with.notes = 0
			f := feed(dir, i, &with)
			if err := f.Drain(t.Context()); err != nil {
				return err
			}
			p := f.Progress()
			if p.Have != len(before) || p.Serving != with.name {
				return fmt.Errorf("after %q: %+v", marks, p)
			}
			if len(marks) > 0 && with.notes > 0 {
				return fmt.Errorf("after %q: %d notes were embedded again", marks, with.notes)
			}
			return nil
		},
		Again: 2,
	})
}
