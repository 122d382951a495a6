package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
)

// recallFlags are what a search of the memex can be told.
type recallFlags struct {
	memex   memexFlag
	queries string
	mode    string
	limit   int
}

// recallCommand finds notes by what they are about.
func (a *app) recallCommand() *cobra.Command {
	var f recallFlags
	cmd := &cobra.Command{
		Use:   "recall QUERY…",
		Short: "Find the notes a question is about, best first",
		Long: `Find the notes a question is about, best first. Words match in any inflection and
with typing errors; word* stands for all that begin so; "words in quotes" must
stand like that in the note. Nothing leaves the machine.`,
		Example: `  passepartout recall how do I renew the passport
  passepartout recall --mode lexical '"heat pump" offer*'
  passepartout recall --queries queries.jsonl --limit 100 --json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 0) == (f.queries == "") {
				return usageError("want words to look for, or --queries FILE")
			}
			mode, err := recall.ParseMode(f.mode)
			if err != nil {
				return usageError("--mode: %v", err)
			}
			if f.limit <= 0 {
				return usageError("--limit: want a number above 0, found %d", f.limit)
			}
			return a.withMemory(cmd.Context(), f.memex, false, func(s *memory.Store) error {
				m, err := mirror(cmd.Context(), s.View(), mode)
				if err != nil {
					return err
				}
				if f.queries != "" {
					return a.recallAll(m, f.queries, f.limit, mode)
				}
				return a.recallOne(s.View(), m, strings.Join(args, " "), f.limit, mode)
			})
		},
	}
	cmd.Flags().StringVar(&f.memex.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	cmd.Flags().StringVar(&f.queries, "queries", "", "a file of queries, one JSON object with _id and text a line")
	cmd.Flags().StringVar(&f.mode, "mode", "fused", "fused, lexical, vector or hashing")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 10, "print at most this many")
	return cmd
}

// mirror indexes a view for searches of one mode.
func mirror(ctx context.Context, v *memory.View, mode recall.Mode) (*fovea.Mirror, error) {
	m := fovea.NewMirror(recall.Options{Hashing: mode == recall.Hashing})
	m.Sync(v)
	if mode == recall.Fused || mode == recall.Vector {
		if err := m.Learn(ctx); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (a *app) recallOne(v *memory.View, m *fovea.Mirror, text string, limit int, mode recall.Mode) error {
	type found struct {
		objectJSON
		Score float64 `json:"score"`
	}
	out := []found{}
	for _, h := range m.Index().Search(text, limit, mode) {
		if o, ok := v.Get(memory.ID(h.ID)); ok {
			out = append(out, found{toJSON(o), h.Score})
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, f := range out {
		o, _ := v.Get(f.ID)
		if _, err := fmt.Fprintf(a.out, "%.3f  %s:%d: %s\n", f.Score, printable(o.File), o.Line, heading(o)); err != nil {
			return err
		}
	}
	return nil
}

// recallAll answers a file of queries, a line each, in the form the evaluation reads.
func (a *app) recallAll(m *fovea.Mirror, file string, limit int, mode recall.Mode) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	type hit struct {
		ID    string  `json:"id"`
		Score float64 `json:"score"`
	}
	type row struct {
		ID   string `json:"_id"`
		Hits []hit  `json:"hits"`
		NS   int64  `json:"ns"`
	}
	out := bufio.NewWriter(a.out)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for dec, n := json.NewDecoder(f), 1; dec.More(); n++ {
		var q struct {
			ID   string `json:"_id"`
			Text string `json:"text"`
		}
		if err := dec.Decode(&q); err != nil {
			return usageError("%s: query %d: %v", file, n, err)
		}
		start := time.Now()
		r := row{ID: q.ID, Hits: []hit{}}
		for _, h := range m.Index().Search(q.Text, limit, mode) {
			r.Hits = append(r.Hits, hit{h.ID, h.Score})
		}
		r.NS = time.Since(start).Nanoseconds()
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return out.Flush()
}
