package skill

import (
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"passepartout/internal/lisp"
	"passepartout/internal/sexp"
)

//go:embed prelude.lisp
var prelude []byte

//go:embed json.lisp
var jsonLisp []byte

// Memory is what a skill with the capability "memory" sees of the memex. Each
// object is a property list with the keys :ID :TYPE :ATTRIBUTES :CONTENT
// :PARENT-ID and :CHILDREN. What is private must not be given out.
type Memory interface {
	Lookup(id string) (sexp.Plist, bool)
	WithAttribute(key, value string) []sexp.Plist
	All() []sexp.Plist
}

// A jail makes images: the language, the host's functions and the prelude.
type jail struct {
	memory  Memory
	journal func(limit int) []sexp.Plist
	now     func() time.Time
	image   func() (*lisp.Image, error)
}

func newJail(o Options) *jail {
	j := &jail{memory: o.Memory, journal: o.Journal, now: o.Now}
	j.image = sync.OnceValues(j.build)
	return j
}

func (j *jail) build() (*lisp.Image, error) {
	img, err := lisp.New(j.host())
	if err != nil {
		return nil, err
	}
	th := img.Thread(loadBudget)
	for _, f := range []struct {
		name string
		text []byte
	}{{"prelude.lisp", prelude}, {"json.lisp", jsonLisp}} {
		if _, err := th.Load("", f.text); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return th.Freeze()
}

// universal is the beginning of Lisp's time, 1900, in seconds before 1970.
const universal = 2208988800

// host lists the functions written in Go that a jail has beyond the language.
func (j *jail) host() []lisp.Builtin {
	return []lisp.Builtin{
		{
			Name: "passepartout-host:lookup-object", Usage: "(passepartout-host:lookup-object id)", Needs: memoryCap,
			Doc: "a heading or file of the memex as a property list", Fn: j.lookup,
		},
		{
			Name: "passepartout-host:objects-with-attribute", Usage: "(passepartout-host:objects-with-attribute key value)", Needs: memoryCap,
			Doc: "the headings whose attribute has that value", Fn: j.withAttribute,
		},
		{
			Name: "passepartout-host:all-objects", Usage: "(passepartout-host:all-objects)", Needs: memoryCap,
			Doc: "all headings and files of the memex", Fn: j.all,
		},
		{
			Name: "passepartout-host:unix-time", Usage: "(passepartout-host:unix-time)", Needs: clockCap,
			Doc: "seconds since 1970; for a gate, when the decision is made", Fn: func(th *lisp.Thread, _ []lisp.Value) (lisp.Value, error) {
				return lisp.Int(j.time(th).Unix()), nil
			},
		},
		{
			Name: "cl:get-universal-time", Usage: "(get-universal-time)", Needs: clockCap,
			Doc: "seconds since 1900; for a gate, when the decision is made", Fn: func(th *lisp.Thread, _ []lisp.Value) (lisp.Value, error) {
				return lisp.Int(j.time(th).Unix() + universal), nil
			},
		},
		{
			Name: "passepartout-host:judging-p", Usage: "(passepartout-host:judging-p)",
			Doc: "true in a gate", Fn: func(th *lisp.Thread, _ []lisp.Value) (lisp.Value, error) {
				if _, ok := th.Attached().(*judging); ok {
					return lisp.Int(1), nil
				}
				return lisp.Nil, nil
			},
		},
		{
			Name: "passepartout-host:otherwise-spelled", Usage: "(passepartout-host:otherwise-spelled plist key)",
			Doc: "the value of a key that is written in other letters, as a string or a plain symbol", Fn: otherwiseSpelled,
		},
		{
			Name: "cl:require", Usage: "(require name &optional where)",
			Doc: "nothing to do: what there is of libraries is loaded", Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) { return lisp.Nil, nil },
		},
		{
			Name: "passepartout-host:new-id", Usage: "(passepartout-host:new-id)", Needs: randomCap,
			Doc: "a random id", Fn: newID,
		},
		{
			Name: "passepartout-host:journal-entries", Usage: "(passepartout-host:journal-entries limit)", Needs: journalCap,
			Doc: "the last entries of the journal, newest first", Fn: j.entries,
		},
		{
			Name: "passepartout-host:may-signal", Usage: "(passepartout-host:may-signal)", Needs: signalsCap,
			Doc: "true: what is injected reaches the agent, as signals and proposals", Fn: func(*lisp.Thread, []lisp.Value) (lisp.Value, error) { return lisp.Int(1), nil },
		},
	}
}

// otherwiseSpelled computes and has no power; most messages pass it many times.
func otherwiseSpelled(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
	want, ok := lisp.Text(a[1])
	if !ok {
		return nil, errors.New("a key is a symbol or a string")
	}
	for k, v := range th.Pairs(a[0]) {
		if name, ok := lisp.Text(k); ok && len(name) == len(want) && !lisp.IsNil(v) && strings.EqualFold(name, want) {
			return v, nil
		}
	}
	return lisp.Nil, nil
}

var errNoMemory = errors.New("there is no memex here")

func (j *jail) lookup(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
	id, ok := lisp.Text(a[0])
	if !ok {
		return nil, errors.New("lookup-object wants an id")
	}
	return j.see(th, func(m Memory) (lisp.Value, error) {
		o, found := m.Lookup(id)
		if !found {
			return lisp.Nil, nil
		}
		return th.FromData(o.List())
	})
}

func (j *jail) withAttribute(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
	key, ok := lisp.Text(a[0])
	value, ok2 := lisp.Text(a[1])
	if !ok || !ok2 {
		return nil, errors.New("list-objects-with-attribute wants a name and a value")
	}
	return j.see(th, func(m Memory) (lisp.Value, error) { return plists(th, m.WithAttribute(key, value)) })
}

func (j *jail) all(th *lisp.Thread, _ []lisp.Value) (lisp.Value, error) {
	return j.see(th, func(m Memory) (lisp.Value, error) { return plists(th, m.All()) })
}

// maxEntries bounds how much of the journal is read at once.
const maxEntries = 1000

func (j *jail) entries(th *lisp.Thread, a []lisp.Value) (lisp.Value, error) {
	n, ok := a[0].(lisp.Int)
	if !ok || n < 1 || n > maxEntries {
		return nil, fmt.Errorf("journal-entries wants a number of entries from 1 to %d", maxEntries)
	}
	if j.journal == nil {
		return nil, errors.New("there is no journal here")
	}
	return plists(th, j.journal(int(n)))
}

func plists(th *lisp.Thread, ps []sexp.Plist) (lisp.Value, error) {
	out := make([]sexp.Value, len(ps))
	for i, p := range ps {
		out[i] = p.List()
	}
	return th.FromData(sexp.NewList(out...))
}

// newID is a random UUID, version 4.
func newID(*lisp.Thread, []lisp.Value) (lisp.Value, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return lisp.String(fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])), nil
}
