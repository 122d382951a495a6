package pulse

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"passepartout/internal/memory"
)

// A Predicate says whether there is anything to do at a due time. It is asked
// before any model is; the zero Predicate always fires.
type Predicate struct {
	Kind string // "", "due", "changed", "query", "appeared", "mail", "lisp"
	Arg  string
}

// String is the predicate as it is written.
func (p Predicate) String() string { return strings.TrimSpace(p.Kind + " " + p.Arg) }

// ParsePredicate reads the value of a :WHEN: property.
//
//	due [2d]        a deadline or date is due, or will be within a time
//	changed [GLOB]  Org files of the memex changed since the last run
//	query QUERY     headings match that did not at the last run
//	appeared GLOB   files are there that were not at the last run
//	mail MAILDIR    new mail lies in a maildir
//	lisp SKILL FUNCTION
func ParsePredicate(text string) (Predicate, error) {
	kind, arg, _ := strings.Cut(strings.TrimSpace(text), " ")
	p := Predicate{Kind: strings.ToLower(kind), Arg: strings.TrimSpace(arg)}
	switch p.Kind {
	case "", "always":
		return Predicate{}, nil
	case "due":
		if p.Arg != "" {
			_, err := ParseSpan(p.Arg)
			return p, err
		}
	case "changed":
		if p.Arg == "" {
			p.Arg = "*"
		}
		_, err := path.Match(p.Arg, "")
		return p, err
	case "query":
		_, err := memory.ParseQuery(p.Arg, time.Unix(0, 0))
		if p.Arg == "" {
			err = errors.New("want a query")
		}
		return p, err
	case "appeared":
		if _, err := path.Match(p.Arg, ""); err != nil || p.Arg == "" {
			return p, fmt.Errorf("appeared %q: want a pattern of paths", p.Arg)
		}
	case "mail":
		if p.Arg == "" {
			return p, errors.New("mail: want a maildir")
		}
	case "lisp":
		if len(strings.Fields(p.Arg)) != 2 {
			return p, errors.New("lisp: want a skill and a function")
		}
	default:
		return p, fmt.Errorf("predicate %q: want always, due, changed, query, appeared, mail or lisp", p.Kind)
	}
	return p, nil
}

// ask evaluates the predicate. mark is what was seen; the next run gets it as seen.
// No mark is kept of what fires by itself.
func (p Predicate) ask(ctx context.Context, o *Options, now time.Time, seen string) (fires bool, mark string, err error) {
	switch p.Kind {
	case "":
		return true, "", nil
	case "due":
		fires, err = p.due(o.View(), now.In(o.Zone))
		return fires, "", err
	case "changed":
		mark = p.changed(o.View())
		return seen != "" && mark != seen, mark, nil
	case "query":
		return p.query(o.View(), now, seen)
	case "appeared", "mail":
		return p.appeared(o.Root, seen)
	case "lisp":
		if o.Ask == nil {
			return false, "", errors.New("there are no skills")
		}
		f := strings.Fields(p.Arg)
		fires, err = o.Ask(ctx, f[0], f[1])
		return fires, "", err
	}
	return false, "", fmt.Errorf("predicate %q is unknown", p.Kind)
}

// due looks at today's agenda, and at what enters it within a time.
func (p Predicate) due(v *memory.View, now time.Time) (bool, error) {
	ahead := time.Duration(0)
	if p.Arg != "" {
		var err error
		if ahead, err = ParseSpan(p.Arg); err != nil {
			return false, err
		}
	}
	items := v.Agenda(memory.AgendaQuery{From: now, To: now.Add(ahead), Now: now, Warning: max(1, int(ahead/(24*time.Hour)))})
	return slices.ContainsFunc(items, func(it memory.AgendaItem) bool {
		return !it.Object.Done && !slices.Contains(it.Object.Tags, jobTag)
	}), nil
}

// changed sums up the files that fit a pattern: their whole path, or their name.
func (p Predicate) changed(v *memory.View) string {
	var parts []string
	for f := range v.FileObjects() {
		if fits(p.Arg, f.File) && !strings.HasPrefix(f.File, systemDir) {
			parts = append(parts, f.File, f.Hash.String())
		}
	}
	return digest(parts...)
}

// fits matches a path, its name, or a folder above it.
func fits(pattern, file string) bool {
	if ok, err := path.Match(pattern, file); ok && err == nil {
		return true
	}
	if ok, err := path.Match(pattern, path.Base(file)); ok && err == nil {
		return true
	}
	return strings.HasSuffix(pattern, "/") && strings.HasPrefix(file, pattern)
}

// query fires when something matches that was not there before.
func (p Predicate) query(v *memory.View, now time.Time, seen string) (bool, string, error) {
	q, err := memory.ParseQuery(p.Arg, now)
	if err != nil {
		return false, "", err
	}
	var ids []string
	for o := range v.Select(q) {
		ids = append(ids, string(o.ID))
	}
	return news(ids, seen)
}

// appeared fires when there is a file that was not there before. Paths are below
// the memex unless they are absolute.
func (p Predicate) appeared(root, seen string) (bool, string, error) {
	pattern := filepath.FromSlash(p.Arg)
	if p.Kind == "mail" {
		pattern = filepath.Join(pattern, "new", "*")
	}
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(pattern, "~/") {
		pattern = filepath.Join(home, pattern[2:])
	}
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(root, pattern)
	}
	names, err := filepath.Glob(pattern)
	if err != nil {
		return false, "", err
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		_, err := os.Lstat(n)
		return errors.Is(err, fs.ErrNotExist)
	})
	return news(names, seen)
}

// news compares names with those seen before. The mark lists them, so that what
// went away is no news. At the first look everything is.
func news(names []string, seen string) (bool, string, error) {
	slices.Sort(names)
	if len(names) > maxNames { // too many to list: any difference is news
		mark := digest(names...)
		return mark != seen, mark, nil
	}
	short := make([]string, len(names))
	known := strings.Fields(seen)
	fresh := false
	for i, n := range names {
		short[i] = digest(n)[:8]
		if _, ok := slices.BinarySearch(known, short[i]); !ok {
			fresh = true
		}
	}
	slices.Sort(short)
	if len(short) == 0 {
		return false, "none", nil
	}
	return fresh, strings.Join(short, " "), nil
}

// maxNames is how many names a mark lists.
const maxNames = 1000
