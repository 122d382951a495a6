package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Facts are everything a gate may look at besides the action.
type Facts struct {
	Now    time.Time
	Signal proto.Signal
	Said   []string // the requester's own words in this session, oldest first, without credentials
	Seen   []string // addresses the session has read in what tools returned, see [Links]
	Only   []string // tools this turn may use, because it follows a guide; nil: any
	World  World    // nil: nothing exists and nothing is known

	effect   proto.Effect // set by the chain from its catalog
	approval *approval    // set by the ledger
	answers  *answers     // what World said, for the record
	withheld []withheld   // arguments that held credentials and were taken out
	scratch  *scratch     // what the standard gates worked out in this round
}

// Effect is what carrying out the action can do.
func (f Facts) Effect() proto.Effect { return f.effect }

// World is the read-only outside. A negative answer is the zero one; positive
// answers are recorded with the ruling.
type World interface {
	// Real resolves symbolic links in an absolute path as far as it exists; ok
	// is false when that changes nothing.
	Real(path string) (real string, ok bool)
	// Read returns the text of a small regular file, such as a script.
	Read(path string) (text string, ok bool)
	// Glob lists the paths a pattern stands for; ok is false when none match.
	Glob(pattern string) (paths []string, ok bool)
	// Know returns what is known about a text. For "secret": the kinds of
	// credentials in it, a value of the vault as "vault:NAME". For "split": those
	// that only show when texts, separated by NUL, are put together. For "tags": the tags,
	// own and inherited, of a heading's id or of a path. For "vault": the text
	// itself when it names an entry of the vault. For "file": the files in
	// which the heading stands that an id, a title or a file's name means. For
	// "links": other names of the file at a path, and "" for names that are not known.
	// For "object" and "objects": what a skill's gate reads of the memex, see
	// package skill.
	Know(what, text string) []string
}

// answers is a World's positive answers by question. Gates run one after the
// other, so it needs no lock.
type answers struct {
	keys []string
	vals map[string][]string
}

func (a *answers) put(key string, val []string) {
	if a.vals == nil {
		a.vals = map[string][]string{}
	}
	if _, ok := a.vals[key]; !ok {
		a.keys = append(a.keys, key)
	}
	a.vals[key] = val
}

// recorder answers from a World and remembers; each question is put once, so a
// file that changes between two gates cannot be judged in two versions.
type recorder struct {
	World
	asked   map[string]bool // made when the first question is put
	answers answers
}

func record(f Facts) Facts {
	w := f.World
	if w == nil {
		w = void{}
	}
	r := &recorder{World: w}
	f.answers, f.World = &r.answers, r
	return f
}

func (r *recorder) once(key string, ask func() ([]string, bool)) ([]string, bool) {
	if r.asked == nil {
		r.asked = map[string]bool{}
	}
	if !r.asked[key] {
		r.asked[key] = true
		if val, ok := ask(); ok {
			r.answers.put(key, val)
		}
	}
	val, ok := r.answers.vals[key]
	return val, ok
}

func first(val []string, ok bool) (string, bool) {
	if !ok || len(val) == 0 {
		return "", false
	}
	return val[0], true
}

func (r *recorder) Real(path string) (string, bool) {
	return first(r.once("real "+path, func() ([]string, bool) {
		s, ok := r.World.Real(path)
		return []string{s}, ok
	}))
}

// Read treats a file that holds a credential as one that cannot be read: the
// record must not contain it.
func (r *recorder) Read(path string) (string, bool) {
	return first(r.once("read "+path, func() ([]string, bool) {
		s, ok := r.World.Read(path)
		return []string{s}, ok && len(r.World.Know("secret", s)) == 0
	}))
}

func (r *recorder) Glob(pattern string) ([]string, bool) {
	return r.once("glob "+pattern, func() ([]string, bool) { return r.World.Glob(pattern) })
}

// Know keys its answer by the text's digest: the text itself may be the secret.
func (r *recorder) Know(what, text string) []string {
	val, _ := r.once(knowKey(what, text), func() ([]string, bool) {
		names := r.World.Know(what, text)
		return names, len(names) > 0
	})
	return val
}

func knowKey(what, text string) string {
	return "know " + what + " " + sexp.Sum(sexp.String(text)).String()
}

// void is the World in which nothing exists.
type void struct{}

func (void) Real(string) (string, bool)   { return "", false }
func (void) Read(string) (string, bool)   { return "", false }
func (void) Glob(string) ([]string, bool) { return nil, false }
func (void) Know(string, string) []string { return nil }

// replayed is the World a ruling recorded.
type replayed map[string][]string

func (w replayed) Real(p string) (string, bool)    { v, ok := w["real "+p]; return first(v, ok) }
func (w replayed) Read(p string) (string, bool)    { v, ok := w["read "+p]; return first(v, ok) }
func (w replayed) Glob(p string) ([]string, bool)  { v, ok := w["glob "+p]; return v, ok }
func (w replayed) Know(what, text string) []string { return w[knowKey(what, text)] }

// Facts is what the ruling was based on, as the journal keeps it.
func (r Ruling) Facts() sexp.Plist {
	f := r.facts
	p := sexp.P(
		sexp.Keyword("NOW"), f.Now.UTC().Format(time.RFC3339Nano),
		sexp.Keyword("DEPTH"), f.Signal.Depth,
		sexp.Keyword("SENSOR"), f.Signal.Sensor(),
		sexp.Keyword("KIND"), f.Signal.Kind.Keyword(),
		sexp.Keyword("UNTRUSTED"), f.Signal.Taint.Untrusted,
		sexp.Keyword("PRIVATE"), f.Signal.Taint.Private)
	if len(f.Said) > 0 {
		p = p.With("SAID", sexp.Strings(f.Said))
	}
	if len(f.Seen) > 0 {
		p = p.With("SEEN", sexp.Strings(f.Seen))
	}
	if f.Only != nil {
		p = p.With("ONLY", sexp.Strings(f.Only))
	}
	if f.approval != nil {
		p = p.With("APPROVAL", f.approval.plist().List())
	}
	if len(f.withheld) > 0 {
		p = p.With("WITHHELD", withheldList(f.withheld))
	}
	if f.answers == nil || len(f.answers.keys) == 0 {
		return p
	}
	var world []sexp.Value
	for _, k := range f.answers.keys {
		world = append(world, sexp.NewList(sexp.String(k), sexp.Strings(f.answers.vals[k])))
	}
	return p.With("WORLD", sexp.NewList(world...))
}

// Replay judges a recorded action by its recorded facts. The ruling can be
// compared with the recorded one; it gives no permit.
func Replay(c *Chain, a proto.Action, facts sexp.Plist) (Ruling, error) {
	f, err := factsOf(facts)
	if err != nil {
		return Ruling{}, err
	}
	cause := a.Cause()
	f.Signal.ID, f.Signal.Session, f.Signal.Origin = cause.Signal, cause.Session, cause.Origin
	return c.decide(a, f), nil
}

func factsOf(p sexp.Plist) (Facts, error) {
	now, err := time.Parse(time.RFC3339Nano, p.Text("NOW"))
	if err != nil {
		return Facts{}, fmt.Errorf("recorded facts: %w", err)
	}
	f := Facts{Now: now, Said: texts(p, "SAID"), Seen: texts(p, "SEEN")}
	f.Signal.Kind, _ = proto.ParseKind(string(p.Word("KIND")))
	f.Signal.Body = sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword(strings.ToUpper(p.Text("SENSOR"))))
	if d, ok := p.Get("DEPTH"); ok {
		n, _ := d.(sexp.Int)
		small, _ := n.Int64()
		f.Signal.Depth = int(small)
	}
	u, _ := p.Get("UNTRUSTED")
	pr, _ := p.Get("PRIVATE")
	f.Signal.Taint = proto.Taint{Untrusted: !sexp.IsNil(u), Private: !sexp.IsNil(pr)}
	if _, ok := p.Get("ONLY"); ok {
		f.Only = append([]string{}, texts(p, "ONLY")...)
	}
	f.approval = approvalOf(p.Sub("APPROVAL"))
	if f.withheld, err = withheldOf(p); err != nil {
		return Facts{}, err
	}
	w := replayed{}
	v, _ := p.Get("WORLD")
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		pair, ok := item.(sexp.List)
		if !ok || pair.Len() != 2 {
			return Facts{}, fmt.Errorf("recorded facts: world answer %s is no pair", item)
		}
		k, _ := pair.At(0).(sexp.String)
		vals, _ := pair.At(1).(sexp.List)
		w[string(k)] = textItems(vals)
	}
	f.World = w
	return f, nil
}

func texts(p sexp.Plist, key sexp.Keyword) []string {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	return textItems(l)
}

func textItems(l sexp.List) []string {
	var out []string
	for _, v := range l.Items() {
		if s, ok := v.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return slices.Clip(out)
}
