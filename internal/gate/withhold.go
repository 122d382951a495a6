package gate

import (
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// withheld says that an argument held credentials of these kinds. The argument
// itself is replaced before anything else happens, so that no gate can quote it
// and no journal can keep it; the ruling is a deny whatever the rest says.
type withheld struct {
	arg   string // the argument's name, or "EXPLANATION"
	kinds []string
}

// explanationArg names the explanation among the arguments.
const explanationArg = "EXPLANATION"

// A rebuilder makes an action from its record, which is the only way to change
// its explanation. A vocabulary is one.
type rebuilder interface {
	Recorded(sexp.Plist) (proto.Action, error)
}

// withhold looks for credentials in every text of an action, also in the texts
// put together, and returns the action without them. When that cannot be done it
// returns the zero action, which every chain denies.
func withhold(a proto.Action, w World, c Catalog) (proto.Action, []withheld) {
	if w == nil {
		return a, nil
	}
	var found []withheld
	var parts []string
	note := func(name string, texts []string) {
		var kinds []string
		for _, t := range texts {
			kinds = append(kinds, w.Know("secret", t)...)
		}
		if len(kinds) > 0 {
			slices.Sort(kinds)
			found = append(found, withheld{name, slices.Compact(kinds)})
		}
	}
	for _, e := range a.Args().Pairs() {
		texts := leaves(e.Value, nil)
		note(string(e.Key), texts)
		parts = append(parts, texts...)
	}
	if len(found) == 0 {
		if kinds := split(w, parts); len(kinds) > 0 {
			for _, e := range a.Args().Pairs() {
				if len(leaves(e.Value, nil)) > 0 {
					found = append(found, withheld{string(e.Key), kinds})
				}
			}
		}
	}
	note(explanationArg, []string{a.Why()})
	if len(found) == 0 {
		return a, nil
	}
	return strip(a, found, c), found
}

// split finds a credential that was cut into several arguments.
func split(w World, parts []string) []string {
	if len(parts) < 2 {
		return nil
	}
	return w.Know("split", strings.Join(parts, "\x00"))
}

// strip replaces the arguments that were found to hold credentials.
func strip(a proto.Action, found []withheld, c Catalog) proto.Action {
	args, why := a.Args(), a.Why()
	for _, h := range found {
		text := "withheld: " + strings.Join(h.kinds, ", ")
		if h.arg == explanationArg {
			why = text
			continue
		}
		p, _ := a.Spec().Param(sexp.Keyword(h.arg))
		if p.Means == proto.Command {
			text = ": withheld"
		}
		if p.Type == proto.Texts {
			args = args.With(p.Name, sexp.NewList(sexp.String(text)))
		} else {
			args = args.With(p.Name, sexp.String(text))
		}
	}
	clean, err := a.Replace(args)
	if err != nil {
		return proto.Action{}
	}
	if why == a.Why() {
		return clean
	}
	r, ok := c.(rebuilder)
	if !ok {
		return proto.Action{}
	}
	clean, err = r.Recorded(clean.Plist().With("WHY", sexp.String(why)))
	if err != nil {
		return proto.Action{}
	}
	return clean
}

// leaves appends every text in a value: strings, and the names of symbols, which
// spell just as well.
func leaves(v sexp.Value, out []string) []string {
	switch v := v.(type) {
	case sexp.String:
		return append(out, string(v))
	case sexp.Symbol:
		if sexp.IsNil(v) || v == sexp.True {
			return out
		}
		return append(out, v.Name)
	case sexp.Keyword:
		return append(out, string(v))
	case sexp.List:
		for _, item := range v.Items() {
			out = leaves(item, out)
		}
		if v.Tail() != nil {
			out = leaves(v.Tail(), out)
		}
	case sexp.Vector:
		for _, item := range v.Items() {
			out = leaves(item, out)
		}
	default:
	}
	return out
}

func withheldList(hs []withheld) sexp.List {
	items := make([]sexp.Value, len(hs))
	for i, h := range hs {
		items[i] = sexp.NewList(sexp.String(h.arg), sexp.Strings(h.kinds))
	}
	return sexp.NewList(items...)
}

func withheldOf(facts sexp.Plist) ([]withheld, error) {
	v, _ := facts.Get("WITHHELD")
	l, _ := v.(sexp.List)
	var out []withheld
	for _, item := range l.Items() {
		pair, ok := item.(sexp.List)
		if !ok || pair.Len() != 2 {
			return nil, fmt.Errorf("recorded facts: withheld argument %s is no pair", item)
		}
		name, _ := pair.At(0).(sexp.String)
		kinds, _ := pair.At(1).(sexp.List)
		out = append(out, withheld{string(name), textItems(kinds)})
	}
	return out, nil
}
