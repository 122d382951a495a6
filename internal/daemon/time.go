package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
	"weak"

	"passepartout/internal/durable"
	"passepartout/internal/memory"
	"passepartout/internal/pulse"
	"passepartout/internal/sexp"
)

// Times by which something is soon.
const (
	appointment = 15 * time.Minute // before which an appointment is announced
	dayAhead    = 24 * time.Hour   // what a prompt is told of
	maxSoon     = 8                // headings a prompt is told of
	maxTold     = 10               // headings one announcement names
)

// announcedFile holds the digests of what has been announced, in the state
// directory.
const announcedFile = "pulse/announced"

// A coming thing is a date that has entered its time.
type coming struct {
	key, text string
	far       string // of the text what may leave the machine
	object    memory.Object
	private   bool
}

// comes are deadlines inside their warning time and appointments about to begin.
func comes(v *memory.View, now time.Time) []coming {
	var out []coming
	for _, it := range v.Agenda(memory.AgendaQuery{From: now, To: now, Now: now}) {
		o := it.Object
		if o.Done || slices.Contains(o.Tags, "job") {
			continue
		}
		when := ""
		switch it.Kind {
		case "upcoming":
			when = fmt.Sprintf("due in %d days", it.Days)
		case "deadline":
			when = "due today"
		case "scheduled", "date":
			at := time.Date(now.Year(), now.Month(), now.Day(), it.Stamp.Start.Hour(), it.Stamp.Start.Minute(), 0, 0, now.Location())
			if !it.Timed || now.Before(at.Add(-appointment)) || now.After(at) {
				continue
			}
			when = "at " + at.Format("15:04")
		default:
			continue
		}
		c := coming{object: o, private: v.PrivateObject(o), text: fmt.Sprintf("%s: %s (%s:%d)", when, o.Title, o.File, o.Line)}
		if c.private {
			c.text = fmt.Sprintf("%s: a private heading (%s:%d)", when, o.File, o.Line)
		}
		c.far = when + ": " + o.Title
		if c.private {
			c.far = when + ": a private heading"
		}
		stage := it.Kind
		if it.Kind == "upcoming" {
			stage = "warning"
		}
		c.key = sexp.Sum(sexp.Strings([]string{string(o.ID), it.Stamp.Raw, stage})).String()[:16]
		out = append(out, c)
	}
	return out
}

// checkDeadlines announces what has entered its time, once. What had entered it
// before anybody was there to announce is only remembered.
func (d *Daemon) checkDeadlines(context.Context) (string, error) {
	raw, err := os.ReadFile(d.statePath(announcedFile))
	first := errors.Is(err, fs.ErrNotExist)
	if err != nil && !first {
		return "", err
	}
	told := map[string]bool{}
	for line := range bytes.Lines(raw) {
		told[strings.TrimSpace(string(line))] = true
	}
	now := comes(d.memory.View(), d.now().In(time.Local))
	var fresh []coming
	var keep strings.Builder // what is over is forgotten with its key
	for _, c := range now {
		keep.WriteString(c.key + "\n")
		if !told[c.key] {
			fresh = append(fresh, c)
		}
	}
	if !first { // before it counts as announced, or a crash in between would lose it
		if err := d.tellDates(fresh); err != nil {
			return "", err
		}
	}
	if len(fresh) > 0 || len(told) != len(now) || first {
		path := d.statePath(announcedFile)
		if err := durable.Replace(path, []byte(keep.String()), 0o600); err != nil {
			return "", err
		}
	}
	if !first && len(fresh) > 0 {
		if err := d.announce(fresh); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d dates in their time", len(now)), nil
}

// announce makes a signal of what has entered its time: it is recorded, told to
// whoever is there, and an event for hooks. No model hears of it.
func (d *Daemon) announce(fresh []coming) error {
	var lines []string
	for _, c := range fresh[:min(len(fresh), maxTold)] {
		lines = append(lines, c.text)
	}
	if n := len(fresh) - maxTold; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", n))
	}
	text := d.redact(strings.Join(lines, "\n"))
	id := string(d.newID("s"))
	_, err := d.journal.AppendLazy(sexp.P(
		sexp.Keyword("KIND"), sexp.Keyword("SIGNAL"), sexp.Keyword("ID"), id, sexp.Keyword("AT"), d.now().UTC().Format(time.RFC3339Nano),
		sexp.Keyword("SESSION"), defaultSession, sexp.Keyword("TYPE"), sexp.Keyword("EVENT"),
		sexp.Keyword("BODY"), sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("DEADLINE"), sexp.Keyword("TEXT"), text)))
	d.hear(id, text)
	d.pulse.Notify(pulse.Event{Kind: "signal", What: "deadline", Turn: id, Text: text})
	return err
}

// soon is what a prompt is told about the hours ahead: the person's own headings
// that are not private.
func (d *Daemon) soon(now time.Time) string {
	if !d.asksModels(context.Background()) {
		return "" // rules do not read it
	}
	v := d.memory.View()
	now = now.In(time.Local)
	is := outlook{of: weak.Make(v), day: now.Format(time.DateOnly)}
	if was := d.outlook.Load(); was != nil && was.of == is.of && was.day == is.day {
		return was.text
	}
	is.text = ahead(v, now)
	d.outlook.Store(&is)
	return is.text
}

// An outlook is what [ahead] said about a memex on a day. An agenda knows days, no
// hours, so that it says the same again.
type outlook struct {
	of   weak.Pointer[memory.View] // weak: what is no longer in use need not be kept for it
	day  string
	text string
}

// ahead lists the headings that a prompt is told of.
func ahead(v *memory.View, now time.Time) string {
	var lines []string
	for _, it := range v.Agenda(memory.AgendaQuery{From: now, To: now.Add(dayAhead), Now: now, Warning: 1}) {
		if len(lines) == maxSoon {
			break
		}
		o := it.Object
		if o.Done || it.Kind == "overdue" || it.Kind == "late" || !shown(v, o) {
			continue
		}
		line := it.Day.Format("Monday")
		if it.Timed {
			line += it.Stamp.Start.Format(" 15:04")
		}
		lines = append(lines, fmt.Sprintf("%s: %s (%s)", line, o.Title, it.Kind))
	}
	return strings.Join(lines, "\n")
}
