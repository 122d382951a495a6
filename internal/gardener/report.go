package gardener

import (
	"fmt"
	"strings"
	"time"

	"passepartout/internal/memory"
	"passepartout/internal/pattern"
	"passepartout/internal/sexp"
)

var headings = map[Kind]string{
	BrokenID: "Links to identifiers that lead nowhere", BrokenFile: "Links to files that lead nowhere", BrokenHeading: "Links to headings that lead nowhere",
	DuplicateID: "Identifiers that are taken", Orphan: "Notes outside every web of links", StaleTask: "Tasks nobody has touched for long",
	OpenBelowDone: "Done, with open tasks below", ClosedOpen: "Open, with a closing date", EmptyHeading: "Headings that say nothing",
	TwinHeading: "Headings that stand there twice", TagVariant: "Tags written in several ways", ImpossibleDate: "Dates no calendar has",
	WrongDay: "Dates with another day's name", Spelling: "What the Org reader finds odd",
}

// Report is the list as an Org file. What was ticked before stays ticked.
func Report(ds []Defect, now time.Time, ticked map[string]bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#+TITLE: What the gardener found\n\n%s: %d places. Tick what is to be repaired ([X]), then: passepartout gardener apply\n", now.Format("2006-01-02 15:04"), len(ds))
	for _, k := range kinds {
		var lines []string
		for _, d := range ds {
			if d.Kind == k {
				lines = append(lines, line(d, ticked[d.Key]))
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(&b, "* %s (%d)\n%s", headings[k], len(lines), strings.Join(lines, ""))
		}
	}
	return b.String()
}

// line is a defect as an item of a list, on one line whatever is in it.
func line(d Defect, ticked bool) string {
	box := ""
	if d.Fix != nil {
		box = "[ ] "
		if ticked {
			box = "[X] "
		}
	}
	text := fmt.Sprintf("%s:%d %s: %s", d.File, d.Line, d.Title, d.Text)
	if d.Fix != nil {
		text += " → " + d.Fix.Text
	}
	return fmt.Sprintf("- %s%s =%s=\n", box, oneLine(text), d.Key)
}

func oneLine(s string) string {
	return strings.NewReplacer("[[", "[ [", "]]", "] ]", "<", "‹", ">", "›").Replace(strings.Join(strings.Fields(s), " "))
}

var tick = pattern.New(`(?m)^\s*- \[[xX]\] .*=([0-9a-f]{12})=\s*$`)

// Ticked are the keys of a report's ticked items.
func Ticked(report string) map[string]bool {
	out := map[string]bool{}
	for _, m := range tick.FindAllStringSubmatch(report, -1) {
		out[m[1]] = true
	}
	return out
}

// Action is the repair as a tool and its arguments, as the gates judge it.
func (f *Fix) Action() (tool string, args sexp.Plist) {
	if f.Capture != "" {
		return "capture", sexp.P(sexp.Keyword("TITLE"), f.Capture)
	}
	args = sexp.P(sexp.Keyword("ID"), string(f.Object))
	c := f.Change
	switch c.Kind {
	case memory.SetTodo:
		args = args.With("TODO", sexp.String(c.Value))
	case memory.SetTitle:
		args = args.With("TITLE", sexp.String(c.Value))
	case memory.SetBody:
		args = args.With("BODY", sexp.String(c.Value))
	case memory.SetTags:
		args = args.With("TAGS", sexp.Strings(c.Tags))
	case memory.RemoveProperty:
		args = args.With("PROPERTY", sexp.String(c.Key))
	case memory.Schedule, memory.SetDeadline:
		day := c.Value
		if len(day) > 11 {
			day = day[1:11]
		}
		key := sexp.Keyword("SCHEDULED")
		if c.Kind == memory.SetDeadline {
			key = "DEADLINE"
		}
		args = args.With(key, sexp.String(day))
	case memory.Archive:
		args = args.With("ARCHIVE", sexp.True)
	case memory.SetPriority, memory.SetProperty, memory.Insert, memory.Refile, memory.Delete:
	}
	return "org-edit", args
}
