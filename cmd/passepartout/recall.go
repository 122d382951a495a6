package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"passepartout/internal/daemon"
	"passepartout/internal/fovea"
	"passepartout/internal/memory"
	"passepartout/internal/recall"
	"passepartout/internal/sexp"
)

// recallFlags are what a search of the memex can be told.
type recallFlags struct {
	memex   memexFlag
	queries string
	mode    string
	limit   int
	embed   bool
	status  bool
}

// recallCommand finds notes by what they are about.
func (a *app) recallCommand() *cobra.Command {
	var f recallFlags
	cmd := &cobra.Command{
		Use:   "recall QUERY…",
		Short: "Find the notes a question is about, best first",
		Long: `Find the notes a question is about, best first. Words match in any inflection and
with typing errors; word* stands for all that begin so; "words in quotes" must
stand like that in the note. Nothing leaves the machine, unless EMBEDDING_PROVIDER
names somebody elsewhere: then the question does. The daemon lets that provider
make the vectors of the notes; --embed does it here and now, and --status says how
far it is and how much it helps.`,
		Example: `  passepartout recall how do I renew the passport
  passepartout recall --mode lexical '"heat pump" offer*'
  passepartout recall --queries queries.jsonl --limit 100 --json
  passepartout recall --status`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.status {
				return a.recallStatus(cmd.Context())
			}
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
				x, err := a.indexed(cmd.Context(), s.View(), f, mode)
				if err != nil {
					return err
				}
				if f.queries != "" {
					err = a.recallAll(x, f)
				} else {
					err = a.recallOne(s.View(), x, strings.Join(args, " "), f.limit)
				}
				return errors.Join(err, x.done())
			})
		},
	}
	cmd.Flags().StringVar(&f.memex.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	cmd.Flags().StringVar(&f.queries, "queries", "", "a file of queries, one JSON object with _id and text a line")
	cmd.Flags().StringVar(&f.mode, "mode", "fused", "fused, lexical, vector or hashing")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 10, "print at most this many")
	cmd.Flags().BoolVar(&f.embed, "embed", false, "let the embedding provider make missing vectors first")
	cmd.Flags().BoolVar(&f.status, "status", false, "say how far the daemon is with vectors instead")
	return cmd
}

// An indexed memex answers searches of one mode.
type indexed struct {
	*fovea.Mirror
	ctx  context.Context
	mode recall.Mode
	feed *recall.Feed // nil without a provider of vectors
	done func() error
}

// indexed indexes a view, with the vectors of a provider as far as they are there.
func (a *app) indexed(ctx context.Context, v *memory.View, f recallFlags, mode recall.Mode) (*indexed, error) {
	x := &indexed{Mirror: fovea.NewMirror(recall.Options{Hashing: mode == recall.Hashing}), ctx: ctx, mode: mode, done: func() error { return nil }}
	dense := mode == recall.Fused || mode == recall.Vector
	if dense {
		if err := a.lend(x, f.memex.dir); err != nil {
			return nil, err
		}
	}
	err := a.during(ctx, func() daemon.Work {
		have, want := x.Indexing()
		return daemon.Work{What: "indexing", Have: have, Want: want}
	}, func(context.Context) error { x.Sync(v); return nil })
	if err != nil {
		return nil, errors.Join(err, x.done())
	}
	if dense {
		if err := x.Learn(ctx); err != nil {
			return nil, errors.Join(err, x.done())
		}
	}
	if x.feed == nil {
		return x, nil
	}
	if !f.embed {
		err = x.feed.Load()
	} else {
		err = a.during(ctx, func() daemon.Work {
			p := x.feed.Progress()
			return daemon.Work{What: "embedding", Have: p.Have, Want: p.Want}
		}, x.feed.Drain)
	}
	if err != nil {
		return nil, errors.Join(err, x.done())
	}
	return x, nil
}

// lend gives the memex the vectors of the provider the settings name.
func (a *app) lend(x *indexed, memex string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if embedding(cfg).Name == "" {
		return nil
	}
	settings := a.settings(cfg, 0)
	if settings.Models, err = modelSettings(cfg); err != nil {
		return err
	}
	e, done, err := daemon.OpenEmbedder(settings)
	if err != nil {
		return err
	}
	x.done = done
	x.feed = x.Lend(recall.FeedOptions{Dir: settings.VectorDir(memex), Embedder: e})
	return nil
}

// find searches; the question is the person's own.
func (x *indexed) find(text string, limit int) []recall.Hit {
	var vector []float32
	if x.feed != nil {
		vector = x.feed.Question(x.ctx, text, true)
	}
	return x.Index().SearchNear(text, vector, limit, x.mode)
}

// recallStatus asks the daemon how far it is.
func (a *app) recallStatus(ctx context.Context) error {
	p, err := a.inquire(ctx, "", sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("RECALL-STATUS")))
	if err != nil {
		return err
	}
	s := struct {
		Notes     int    `json:"notes"`
		Embedder  string `json:"embedder"`
		Serving   string `json:"serving,omitempty"`
		Have      int    `json:"have"`
		Want      int    `json:"want"`
		Withheld  int    `json:"withheld"`
		Refused   int    `json:"refused"`
		Weight    string `json:"weight,omitempty"`
		Gain      string `json:"gain,omitempty"`
		Questions int    `json:"questions"`
		Problem   string `json:"problem,omitempty"`
	}{
		p.Number("NOTES"), p.Text("EMBEDDER"), p.Text("SERVING"), p.Number("HAVE"), p.Number("WANT"), p.Number("WITHHELD"), p.Number("REFUSED"),
		p.Text("WEIGHT"), p.Text("GAIN"), p.Number("QUESTIONS"), p.Text("PROBLEM"),
	}
	if a.json {
		return a.printJSON(s)
	}
	fmt.Fprintf(a.out, "%d notes, vectors by %s\n", s.Notes, printable(s.Embedder))
	if s.Weight == "" {
		return nil
	}
	fmt.Fprintf(a.out, "%d of %d have one; %d are private and not sent, %d were refused\n", s.Have, s.Want, s.Withheld, s.Refused)
	if s.Serving == "" {
		fmt.Fprintln(a.out, "they serve when all are there")
	} else {
		fmt.Fprintf(a.out, "%s serves with a share of %s (%s in reciprocal rank on %d questions)\n", printable(s.Serving), s.Weight, s.Gain, s.Questions)
	}
	if s.Problem != "" {
		fmt.Fprintf(a.out, "problem: %s\n", printable(s.Problem))
	}
	return nil
}

func (a *app) recallOne(v *memory.View, x *indexed, text string, limit int) error {
	type found struct {
		objectJSON
		Score float64 `json:"score"`
	}
	out := []found{}
	for _, h := range x.find(text, limit) {
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
func (a *app) recallAll(x *indexed, flags recallFlags) error {
	f, err := os.Open(flags.queries)
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
			return usageError("%s: query %d: %v", flags.queries, n, err)
		}
		start := time.Now()
		r := row{ID: q.ID, Hits: []hit{}}
		for _, h := range x.find(q.Text, flags.limit) {
			r.Hits = append(r.Hits, hit{h.ID, h.Score})
		}
		r.NS = time.Since(start).Nanoseconds()
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return out.Flush()
}
