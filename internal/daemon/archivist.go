package daemon

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"passepartout/internal/durable"
	"passepartout/internal/gardener"
	"passepartout/internal/llm"
	"passepartout/internal/scribe"
	"passepartout/internal/sexp"
)

// Where reports lie, relative to the memex.
const (
	gardenFile = "system/gardener.org"
	scribeFile = "system/scribe.org"
)

// inspect is what the gardener finds now.
func (d *Daemon) inspect() []gardener.Defect {
	return gardener.Inspect(d.memory.View(), gardener.Options{Now: d.now(), Inbox: inbox, Exists: func(name string) bool {
		_, err := os.Stat(filepath.Join(d.s.MemexDir, filepath.FromSlash(name)))
		return err == nil
	}})
}

// readReport is a report as the person left it, "" when there is none.
func (d *Daemon) readReport(name string) string {
	raw, err := os.ReadFile(filepath.Join(d.s.MemexDir, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	return string(raw)
}

// writeReport replaces a report whole. It is the daemon's own file; what the
// person ticked in it was read before.
func (d *Daemon) writeReport(ctx context.Context, name, text string) error {
	path := filepath.Join(d.s.MemexDir, filepath.FromSlash(name))
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := durable.Replace(path, []byte(text), 0o600); err != nil {
		return err
	}
	return d.memory.Refresh(ctx)
}

// callGardener writes the gardener's report.
func (d *Daemon) callGardener(ctx context.Context) (string, error) {
	ds := d.inspect()
	text := gardener.Report(ds, d.now(), gardener.Ticked(d.readReport(gardenFile)))
	return fmt.Sprintf("%d places to look at: %s", len(ds), gardenFile), d.writeReport(ctx, gardenFile, text)
}

// callScribe distils what was logged before today, with a model for the last day if
// there is one, and writes the proposals.
func (d *Daemon) callScribe(ctx context.Context) (string, error) {
	if err := d.consult(ctx); err != nil {
		d.log.Warn("scribe: no model distilled the day", "error", err)
	}
	notes, err := d.proposals()
	if err != nil {
		return "", err
	}
	text := scribe.Report(notes, d.now(), scribe.Ticked(d.readReport(scribeFile)))
	return fmt.Sprintf("%d notes proposed: %s", len(notes), scribeFile), d.writeReport(ctx, scribeFile, text)
}

// An answered day is what a model made of a log. The answer is kept, so that the
// same day is not asked about twice and proposals stay what they are.
type answered struct {
	Day    string `json:"day"`
	Prompt string `json:"prompt"` // digest of what was asked
	Answer string `json:"answer"`
}

// answersFile lies in the state directory.
const answersFile = "pulse/scribe.jsonl"

func (d *Daemon) answers() (map[string]answered, error) {
	raw, err := os.ReadFile(d.statePath(answersFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	out := map[string]answered{}
	for line := range bytes.Lines(raw) {
		var a answered
		if err := json.Unmarshal(line, &a); err != nil {
			d.log.Warn("scribe: what a model said of some day cannot be read, and is forgotten", "file", answersFile, "error", err)
			continue
		}
		out[a.Day] = a
	}
	return out, nil
}

// proposals are the notes to be made from all days before today.
func (d *Daemon) proposals() ([]scribe.Note, error) {
	v := d.memory.View()
	days := scribe.Days(v, d.now())
	known, err := d.answers()
	notes := scribe.Extract(v, days)
	for _, day := range days {
		if a, ok := known[day.Date]; ok {
			notes = append(notes, scribe.Read(v, day, a.Answer)...)
		}
	}
	slices.SortStableFunc(notes, func(a, b scribe.Note) int { return cmp.Compare(a.Date, b.Date) })
	return notes, err
}

// consult asks a model about the last day before today, unless it was asked the
// same already.
func (d *Daemon) consult(ctx context.Context) error {
	days := scribe.Days(d.memory.View(), d.now())
	if len(days) == 0 || !d.asksModels(ctx) {
		return nil
	}
	day := days[len(days)-1]
	prompt := scribe.Prompt(day, d.redact)
	if prompt == "" {
		return nil
	}
	known, err := d.answers()
	if err != nil {
		return err
	}
	sum := sexp.Sum(sexp.String(prompt)).String()
	if known[day.Date].Prompt == sum {
		return nil
	}
	reply, err := llm.Guard(ctx, d.engine, llm.Request{
		System: "You distil notes.", Messages: []llm.Message{{Role: llm.User, Text: prompt}}, Now: d.now(),
		Purpose: llm.Purpose{Tier: llm.Cognition, Slot: llm.Background, Session: "job/scribe", Turn: "scribe-" + day.Date, Job: true},
	}, func(string) {})
	if err != nil {
		return err
	}
	if reply.Model == "reflex" {
		return errors.New("no model answered")
	}
	known[day.Date] = answered{day.Date, sum, d.redact(reply.Text)}
	return d.keepAnswers(known)
}

// keepAnswers replaces the file, so that a power cut leaves the old one or the new.
func (d *Daemon) keepAnswers(known map[string]answered) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	for _, day := range slices.Sorted(maps.Keys(known)) {
		if err := lines.Encode(known[day]); err != nil {
			return err
		}
	}
	return durable.Replace(d.statePath(answersFile), b.Bytes(), 0o600)
}

// answerGarden gives the gardener's report and the repairs that were ticked, as
// actions the asker may propose.
func answerGarden(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	if err := d.memory.Refresh(ctx); err != nil { // what was just written counts
		return sexp.Plist{}, err
	}
	ds := d.inspect()
	ticked := gardener.Ticked(d.readReport(gardenFile))
	text := gardener.Report(ds, d.now(), ticked)
	if a.wants("WRITE") {
		if err := d.writeReport(ctx, gardenFile, text); err != nil {
			return sexp.Plist{}, err
		}
	}
	var found, todo []sexp.Value
	for _, x := range ds {
		row := sexp.P(sexp.Keyword("KIND"), string(x.Kind), sexp.Keyword("KEY"), x.Key, sexp.Keyword("FILE"), x.File, sexp.Keyword("LINE"), x.Line,
			sexp.Keyword("TITLE"), x.Title, sexp.Keyword("TEXT"), x.Text)
		if x.Fix != nil {
			row = row.With("FIX", sexp.String(x.Fix.Text))
			if ticked[x.Key] {
				tool, args := x.Fix.Action()
				todo = append(todo, action(x.Key, tool, args, "the gardener found: "+x.Text))
			}
		}
		if len(found) < maxShown {
			found = append(found, row.List())
		}
	}
	return sexp.P(sexp.Keyword("TEXT"), text, sexp.Keyword("COUNT"), len(ds), sexp.Keyword("FOUND"), sexp.NewList(found...), sexp.Keyword("TODO"), sexp.NewList(todo...)), nil
}

// answerScribe gives the scribe's proposals, and those that were ticked as actions.
func answerScribe(ctx context.Context, d *Daemon, a asking) (sexp.Plist, error) {
	if err := d.memory.Refresh(ctx); err != nil { // what was just written counts
		return sexp.Plist{}, err
	}
	notes, err := d.proposals()
	if err != nil {
		return sexp.Plist{}, err
	}
	ticked := scribe.Ticked(d.readReport(scribeFile))
	text := scribe.Report(notes, d.now(), ticked)
	if a.wants("WRITE") {
		if err := d.writeReport(ctx, scribeFile, text); err != nil {
			return sexp.Plist{}, err
		}
	}
	var found, todo []sexp.Value
	for _, n := range notes {
		if len(found) < maxShown {
			found = append(found, sexp.P(sexp.Keyword("KIND"), string(n.Kind), sexp.Keyword("KEY"), n.Key, sexp.Keyword("FILE"), n.File,
				sexp.Keyword("TITLE"), n.Title, sexp.Keyword("DAY"), n.Date, sexp.Keyword("TEXT"), n.Body).List())
		}
		if !ticked[n.Key] {
			continue
		}
		if n.Source.Write {
			todo = append(todo, action(n.Key+" id", "org-edit", sexp.P(sexp.Keyword("ID"), string(n.Source.Object.ID), sexp.Keyword("PROPERTY"), "ID", sexp.Keyword("VALUE"), n.Source.ID),
				"a note will link back to this heading"))
		}
		todo = append(todo, action(n.Key, "write-note", sexp.P(sexp.Keyword("FILEPATH"), n.File, sexp.Keyword("CONTENT"), n.Text()), "the scribe distilled this from "+n.Source.Object.File))
	}
	return sexp.P(sexp.Keyword("TEXT"), text, sexp.Keyword("COUNT"), len(notes), sexp.Keyword("FOUND"), sexp.NewList(found...), sexp.Keyword("TODO"), sexp.NewList(todo...)), nil
}

func action(key, tool string, args sexp.Plist, why string) sexp.Value {
	return sexp.P(sexp.Keyword("KEY"), key, sexp.Keyword("TOOL"), tool, sexp.Keyword("ARGS"), args.List(), sexp.Keyword("WHY"), why).List()
}

// wants reports whether the asker set a flag.
func (a asking) wants(key sexp.Keyword) bool { return a.message.Payload.Flag(key) }
