package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"passepartout/internal/memory"
)

// memexFlag is the memex a command works on, if not the configured one.
type memexFlag struct{ dir string }

// openMemory opens the memex without the daemon. Reading does not disturb a daemon
// that has it open; writing beside one is refused.
func (a *app) openMemory(ctx context.Context, m memexFlag, write bool) (*memory.Store, error) {
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	dir := m.dir
	if dir == "" {
		dir = cfg.MemexDir
	}
	var done, total atomic.Int64
	var s *memory.Store
	err = a.during(ctx, counting("reading", &done, &total), func(ctx context.Context) error {
		s, err = memory.Open(ctx, dir, memory.Options{
			State: filepath.Join(cfg.StateDir, "memory"), PrivacyTags: cfg.PrivacyTags, ReadOnly: !write,
			Progress: func(n, of int) { done.Store(int64(n)); total.Store(int64(of)) },
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, p := range s.Problems() {
		fmt.Fprintf(a.errw, "passepartout: %s: %s\n", printable(p.Path), printable(p.Err.Error()))
	}
	return s, nil
}

// withMemory opens the memex, runs fn and closes it.
func (a *app) withMemory(ctx context.Context, m memexFlag, write bool, fn func(*memory.Store) error) error {
	s, err := a.openMemory(ctx, m, write)
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// memoryCommand groups what looks into the memex and its history.
func (a *app) memoryCommand() *cobra.Command {
	var m memexFlag
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Find things in the memex, see their history, undo what the agent did",
		Args:  cobra.NoArgs,
	}
	cmd.PersistentFlags().StringVar(&m.dir, "memex", "", "the directory of Org files (default MEMEX_DIR)")
	cmd.AddCommand(
		a.memoryFind(&m), a.memoryShow(&m), a.memoryHistory(&m), a.memoryDiff(&m),
		a.memoryUndo(&m), a.memoryRedo(&m), a.memoryRewind(&m), a.memoryStats(&m), a.memoryVerify(&m), a.memoryImport(&m),
	)
	return cmd
}

func (a *app) memoryFind(m *memexFlag) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "find QUERY…",
		Short: "List headlines that match a query",
		Long: `List headlines that match a query.

A query is an Org match string (+work-@home/!TODO, EFFORT>"1:00"), words like
todo:NEXT is:open deadline:<+1w path:projects text:"two words" since:-3d,
all of which must hold, or an s-expression: (and (tag "work") (not (is "done"))).`,
		Example: `  passepartout memory find +project is:open
  passepartout memory find 'deadline:<=+7d /!'
  passepartout memory find '(or (todo "WAITING") (title "call"))'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				q, err := memory.ParseQuery(strings.Join(args, " "), time.Now())
				if err != nil {
					return &exitError{exitUsage, err}
				}
				var found []memory.Object
				for o := range s.View().Select(q) {
					if found = append(found, o); len(found) == limit {
						break
					}
				}
				if hint := s.View().Hint(q); len(found) == 0 && hint != "" {
					fmt.Fprintln(a.errw, "passepartout: "+printable(hint))
				}
				return a.printObjects(found)
			})
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "print at most this many (0: all)")
	return cmd
}

// objectJSON is an object as scripts see it.
type objectJSON struct {
	ID        memory.ID   `json:"id"`
	Parent    memory.ID   `json:"parent,omitempty"`
	File      string      `json:"file"`
	Line      int         `json:"line"`
	Level     int         `json:"level"`
	Title     string      `json:"title"`
	Todo      string      `json:"todo,omitempty"`
	Done      bool        `json:"done,omitempty"`
	Priority  string      `json:"priority,omitempty"`
	Tags      []string    `json:"tags,omitempty"`
	AllTags   []string    `json:"all_tags,omitempty"`
	Scheduled string      `json:"scheduled,omitempty"`
	Deadline  string      `json:"deadline,omitempty"`
	Closed    string      `json:"closed,omitempty"`
	Scope     string      `json:"scope"`
	Origin    string      `json:"origin,omitempty"`
	Version   int         `json:"version"`
	Changed   time.Time   `json:"changed"`
	Hash      memory.Hash `json:"hash"`
	Text      string      `json:"text,omitempty"`
}

func toJSON(o memory.Object) objectJSON {
	return objectJSON{
		ID: o.ID, Parent: o.Parent, File: o.File, Line: o.Line, Level: o.Level, Title: o.Title, Todo: o.Todo, Done: o.Done,
		Priority: o.Priority, Tags: o.Tags, AllTags: o.AllTags, Scheduled: o.Scheduled.Raw, Deadline: o.Deadline.Raw, Closed: o.Closed.Raw,
		Scope: o.Scope(), Origin: o.Origin(), Version: o.Version, Changed: o.Changed.UTC(), Hash: o.Hash,
	}
}

func (a *app) printObjects(os []memory.Object) error {
	if a.json {
		out := make([]objectJSON, len(os))
		for i, o := range os {
			out[i] = toJSON(o)
		}
		return a.printJSON(out)
	}
	for _, o := range os {
		if _, err := fmt.Fprintf(a.out, "%s:%d: %s\n", printable(o.File), o.Line, heading(o)); err != nil {
			return err
		}
	}
	return nil
}

// heading is an object in one line, as it stands in the file.
func heading(o memory.Object) string {
	var parts []string
	if o.Level > 0 {
		parts = append(parts, strings.Repeat("*", o.Level))
	}
	if o.Todo != "" {
		parts = append(parts, o.Todo)
	}
	if o.Priority != "" {
		parts = append(parts, "[#"+o.Priority+"]")
	}
	parts = append(parts, o.Title)
	if len(o.Tags) > 0 {
		parts = append(parts, ":"+strings.Join(o.Tags, ":")+":")
	}
	return printable(strings.Join(parts, " "))
}

// lookup finds an object by what a person would write.
func lookup(s *memory.Store, name string) (memory.Object, error) {
	o, ok := s.View().Lookup(name)
	if !ok {
		return o, fmt.Errorf("%s: want an identifier, a path or path:line of the memex: %w", name, memory.ErrNotFound)
	}
	return o, nil
}

func (a *app) memoryShow(m *memexFlag) *cobra.Command {
	var links bool
	cmd := &cobra.Command{
		Use: "show ID|PATH[:LINE]", Short: "Print an object with everything below it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				o, err := lookup(s, args[0])
				if err != nil {
					return err
				}
				if links {
					return a.showLinks(s.View(), o)
				}
				if a.json {
					j := toJSON(o)
					j.Text = o.Subtree()
					return a.printJSON(j)
				}
				fmt.Fprintf(a.errw, "%s:%d  id %s  version %d, %s  hash %.12s\n", printable(o.File), o.Line, o.ID, o.Version, o.Changed.Format(time.DateTime), o.Hash)
				_, err = fmt.Fprint(a.out, o.Subtree())
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&links, "links", false, "print the links from and to it instead")
	return cmd
}

func (a *app) showLinks(v *memory.View, o memory.Object) error {
	type linkJSON struct {
		Direction string    `json:"direction"`
		Target    string    `json:"target"`
		ID        memory.ID `json:"id,omitempty"`
		Title     string    `json:"title,omitempty"`
	}
	out := []linkJSON{}
	for _, l := range v.Links(o) {
		out = append(out, linkJSON{"to", l.Target, l.To.ID, l.To.Title})
	}
	for _, b := range v.Backlinks(o) {
		out = append(out, linkJSON{"from", b.File + ":" + strconv.Itoa(b.Line), b.ID, b.Title})
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, l := range out {
		fmt.Fprintf(a.out, "%-4s %s  %s\n", l.Direction, printable(l.Target), printable(l.Title))
	}
	return nil
}

func (a *app) memoryStats(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Count what the memex holds", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				st := s.View().Stats()
				if a.json {
					return a.printJSON(st)
				}
				_, err := fmt.Fprintf(a.out, "files       %d\nheadlines   %d\nbytes       %d\ntasks       %d, %d open\nwith an id  %d, %d twice\noperations  %d\nhash        %s\n",
					st.Files, st.Headlines, st.Bytes, st.Tasks, st.Open, st.WithID, st.Duplicates, len(s.History()), st.Hash)
				return err
			})
		},
	}
}

func (a *app) memoryVerify(m *memexFlag) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Recompute every hash and compare with the disk", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withMemory(cmd.Context(), *m, false, func(s *memory.Store) error {
				bad := s.Verify()
				if a.json {
					out := make([]map[string]string, len(bad))
					for i, p := range bad {
						out[i] = map[string]string{"path": p.Path, "problem": p.Err.Error()}
					}
					if err := a.printJSON(out); err != nil {
						return err
					}
				}
				for _, p := range bad {
					fmt.Fprintf(a.errw, "%s: %s\n", printable(p.Path), printable(p.Err.Error()))
				}
				if len(bad) > 0 {
					return &exitError{exitFailed, fmt.Errorf("%d things do not agree", len(bad))}
				}
				fmt.Fprintf(a.errw, "%d headlines agree with their hashes and the disk.\n", s.View().Len())
				return nil
			})
		},
	}
}

func (a *app) memoryImport(m *memexFlag) *cobra.Command {
	var into string
	cmd := &cobra.Command{
		Use: "import SNAPSHOT", Short: "Take over the ancestor's memory.snap, ids and all", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			return a.withMemory(cmd.Context(), *m, true, func(s *memory.Store) error {
				r, known, err := s.ImportSnapshot(cmd.Context(), b, into)
				if err != nil {
					return err
				}
				added := slices.DeleteFunc(r.Objects, func(c memory.ObjectChange) bool { return !c.Old.IsZero() })
				if a.json {
					return a.printJSON(map[string]any{"operation": r.Seq, "added": len(added), "known": len(known)})
				}
				fmt.Fprintf(a.errw, "%d objects added to %s, %d were known.\n", len(added), into, len(known))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&into, "into", "inbox/imported.org", "the file to add them to")
	return cmd
}

// unified prints the difference of two texts.
func unified(from, to string, before, after []byte) string {
	return udiff.Unified(from, to, string(before), string(after))
}
