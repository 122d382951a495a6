package skill

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

// gateCaps are the powers a gate keeps of those its skill was granted. Both only
// read, and what they read is part of the decision's facts: the time it was made at,
// and objects asked of its World, which are recorded with the ruling.
const gateCaps = memoryCap | clockCap

// The questions a gate puts to a World about the memex. The text of the first is an
// id, of the second NAME=VALUE; the answers are printed property lists.
const (
	KnowObject  = "object"
	KnowObjects = "objects" // the text "" means all
)

// MaxKnown is how much of the memex one answer may hold, in bytes: it will be
// recorded with every ruling it was given for.
const MaxKnown = 256 << 10

// TooMuch is the answer of a World when there is more than MaxKnown.
const TooMuch = "(:too-much)"

// errTooMuch refuses: judging by a part could pass what the whole would not.
var errTooMuch = fmt.Errorf("that is more of the memex than a gate may read for one decision, which is %d KiB", MaxKnown>>10)

// judging is the memex and the clock as the gate of one decision sees them.
type judging struct {
	facts gate.Facts
	err   error // of the last question
}

func (q *judging) ask(what, text string) []sexp.Plist {
	q.err = nil
	if q.facts.World == nil {
		return nil
	}
	said := q.facts.World.Know(what, text)
	if slices.Contains(said, TooMuch) {
		q.err = errTooMuch
		return nil
	}
	out := make([]sexp.Plist, 0, len(said))
	for _, s := range said {
		p, err := sexp.ReadPlist([]byte(s), sexp.Limits{})
		if err != nil {
			q.err = fmt.Errorf("what is recorded of the memex cannot be read: %w", err)
			return nil
		}
		out = append(out, p)
	}
	return out
}

func (q *judging) Lookup(id string) (sexp.Plist, bool) {
	found := q.ask(KnowObject, id)
	if len(found) == 0 {
		return sexp.Plist{}, false
	}
	return found[0], true
}

func (q *judging) WithAttribute(key, value string) []sexp.Plist {
	return q.ask(KnowObjects, key+"="+value)
}

func (q *judging) All() []sexp.Plist { return q.ask(KnowObjects, "") }

// Known prints objects as a World answers with them. It stops when they are too many.
func Known(objects iter.Seq[sexp.Plist]) []string {
	var out []string
	size := 0
	for o := range objects {
		text := o.String()
		if size += len(text); size > MaxKnown {
			return []string{TooMuch}
		}
		out = append(out, text)
	}
	return out
}

// see is the memex as this run may see it.
func (j *jail) see(th *lisp.Thread, ask func(Memory) (lisp.Value, error)) (lisp.Value, error) {
	if q, ok := th.Attached().(*judging); ok {
		v, err := ask(q)
		return v, errors.Join(q.err, err)
	}
	if j.memory == nil {
		return nil, errNoMemory
	}
	return ask(j.memory)
}

// time is when this run takes place: for a gate, when its decision is made.
func (j *jail) time(th *lisp.Thread) time.Time {
	if q, ok := th.Attached().(*judging); ok {
		return q.facts.Now
	}
	return j.now()
}

// uses are names that tell which capability a skill needs that asks for none: skills
// for the ancestor do not know that they have to.
var uses = map[string]lisp.Caps{
	"lookup-object": memoryCap, "list-objects-with-attribute": memoryCap, "*memory*": memoryCap, "*object-store*": memoryCap,
	"get-universal-time": clockCap, "unix-time": clockCap, "org-id-new": randomCap, "make-v4-uuid": randomCap,
	"inject-stimulus": signalsCap, "stimulus-inject": signalsCap, "propose": signalsCap, "journal-entries": journalCap,
}

// ungranted says what of the capabilities a gate may have was asked for and not
// granted, "" for none: that is often why it fails.
func (s *Skill) ungranted() string {
	wants, err := parseCaps(s.Wants)
	lacks := capWords(wants & gateCaps &^ s.caps)
	if err != nil || len(lacks) == 0 {
		return ""
	}
	return fmt.Sprintf(" (not granted: passepartout skill grant %s %s)", s.Name, strings.Join(lacks, " "))
}

// guessCaps lists the capabilities whose functions the code names.
func guessCaps(code []byte) []string {
	var c lisp.Caps
	for _, w := range words(string(code)) {
		c |= uses[strings.ToLower(w)]
	}
	return capWords(c)
}
