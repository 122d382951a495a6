package proto

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"passepartout/internal/sexp"
)

// A Type is what an argument must be.
type Type uint8

// The argument types. The zero Type is invalid.
const (
	TypeInvalid Type = iota
	Text             // a string
	Number           // an integer that fits 64 bits
	Flag             // T or NIL
	Texts            // a list of strings
	Steps            // a list of further proposals, each of which is judged by itself
	Data             // any value; only for tools whose schema is not ours
)

func (t Type) String() string {
	switch t {
	case Text:
		return "a string"
	case Number:
		return "an integer"
	case Flag:
		return "T or NIL"
	case Texts:
		return "a list of strings"
	case Steps:
		return "a list of proposals"
	case Data:
		return "a value"
	case TypeInvalid:
	}
	return "nothing"
}

// A Meaning says what an argument stands for, so that gates look at every path,
// command and address because the verb declares it, never because of its name.
type Meaning uint8

// The meanings. Plain text is still scanned for secrets.
const (
	Plain Meaning = iota
	ReadPath
	WritePath
	Command   // a shell command line, or an argument vector for [Texts]
	URL       // an address to be fetched
	Content   // text that will be stored
	Outbound  // text that leaves for a person or a machine
	Recipient // who receives it
	Code      // Lisp to be evaluated in the jail
	Node      // an Org heading: its id
)

// A Param is one argument a verb takes.
type Param struct {
	Name     sexp.Keyword
	Type     Type
	Means    Meaning
	Required bool
	Doc      string
}

// A Verb is one thing an actuator can do. Effect is required: [NewVocabulary]
// refuses a verb that does not say what it does.
type Verb struct {
	Target string // lower case: "tool", "shell", "cli"
	Name   string // lower case: "read-file", "run", "message"
	Tool   string // name in the tool-call form, "" when it has none
	Doc    string
	Effect Effect
	Params []Param
}

func (v Verb) String() string { return v.Target + "." + v.Name }

// Param returns the declaration of an argument.
func (v Verb) Param(name sexp.Keyword) (Param, bool) {
	for _, p := range v.Params {
		if p.Name == name {
			return p, true
		}
	}
	return Param{}, false
}

// A Vocabulary is an immutable set of verbs: everything that can be proposed.
type Vocabulary struct {
	verbs map[[2]string]Verb
	tools map[string]Verb
}

// NewVocabulary checks the verbs: names present and distinct, effects known,
// parameters typed.
func NewVocabulary(verbs ...Verb) (*Vocabulary, error) {
	v := &Vocabulary{verbs: map[[2]string]Verb{}, tools: map[string]Verb{}}
	for _, verb := range verbs {
		if err := v.add(verb); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (v *Vocabulary) add(verb Verb) error {
	key := [2]string{verb.Target, verb.Name}
	if verb.Target == "" || verb.Name == "" || verb.Target != unfold(verb.Target) || verb.Name != unfold(verb.Name) {
		return fmt.Errorf("verb %q: want a lower-case target and name", verb)
	}
	if verb.Effect == EffectUnknown || verb.Effect > Rewrite {
		return fmt.Errorf("verb %s declares no effect", verb)
	}
	if _, dup := v.verbs[key]; dup {
		return fmt.Errorf("verb %s given twice", verb)
	}
	for _, p := range verb.Params {
		if p.Type == TypeInvalid || p.Type > Data || p.Name == "" || reserved[p.Name] {
			return fmt.Errorf("verb %s: parameter %s is reserved or has no type", verb, p.Name)
		}
	}
	verb.Params = slices.Clone(verb.Params)
	v.verbs[key] = verb
	if verb.Tool == "" {
		return nil
	}
	if _, dup := v.tools[verb.Tool]; dup || verb.Tool != unfold(verb.Tool) {
		return fmt.Errorf("tool name %q is not lower case or given twice", verb.Tool)
	}
	v.tools[verb.Tool] = verb
	return nil
}

// Verb returns the declaration of target.name.
func (v *Vocabulary) Verb(target, name string) (Verb, bool) {
	verb, ok := v.verbs[[2]string{target, name}]
	return verb, ok
}

// Verbs returns all verbs, sorted by target and name.
func (v *Vocabulary) Verbs() []Verb {
	return slices.SortedFunc(maps.Values(v.verbs), func(a, b Verb) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Name, b.Name))
	})
}

// Effect implements the gates' catalog: what the action can do according to this
// vocabulary, not according to the action.
func (v *Vocabulary) Effect(a Action) Effect {
	verb, ok := v.Verb(a.verb.Target, a.verb.Name)
	if !ok {
		return EffectUnknown
	}
	return verb.Effect
}

// ErrNotAction is returned by Decode for data that does not have the shape of a
// proposal at all, such as a reply in prose.
var ErrNotAction = errors.New("not an action")

// reserved are the keys with a meaning of their own; no verb may use them for an
// argument.
var reserved = map[sexp.Keyword]bool{
	"TYPE": true, "TARGET": true, "PAYLOAD": true, "ACTION": true, "TOOL": true, "ARGS": true, "EXPLANATION": true,
}

// Decode turns data into one action, strictly. The accepted forms are those of
// the seeds:
//
//	(:TYPE :REQUEST :TARGET :CLI :PAYLOAD (:ACTION :MESSAGE :TEXT "…" :EXPLANATION "…"))
//	(:TYPE :REQUEST :TARGET :TOOL :PAYLOAD (:TOOL "read-file" :ARGS (:FILEPATH "…") :EXPLANATION "…"))
//	(:TARGET :SHELL :PAYLOAD (:CMD "ls" :EXPLANATION "…"))
//
// Names fold once, here: :shell, "SHELL" and the tool "Shell" all become the same
// verb. Every key must be known; the error names the nearest one.
func (v *Vocabulary) Decode(data sexp.Value, c Cause) (Action, error) {
	top, err := plist(data)
	if err != nil {
		return Action{}, fmt.Errorf("%w: %w", ErrNotAction, err)
	}
	if _, ok := top.Get("TARGET"); !ok {
		return Action{}, fmt.Errorf("%w: want a :TARGET", ErrNotAction)
	}
	if err := known(top, "TYPE", "TARGET", "PAYLOAD"); err != nil {
		return Action{}, fmt.Errorf("proposal: %w", err)
	}
	if t, ok := top.Get("TYPE"); ok && !strings.EqualFold(word(t), "REQUEST") {
		return Action{}, fmt.Errorf("proposal of type %s: want :REQUEST", t)
	}
	body, ok := top.Get("PAYLOAD")
	if !ok {
		return Action{}, errors.New("proposal has no :PAYLOAD")
	}
	payload, err := plist(body)
	if err != nil {
		return Action{}, fmt.Errorf(":PAYLOAD: %w", err)
	}
	target, _ := top.Get("TARGET")
	verb, args, err := v.resolve(unfold(word(target)), payload)
	if err != nil {
		return Action{}, err
	}
	checked, err := verb.check(args)
	if err != nil {
		return Action{}, fmt.Errorf("%s: %w", verb, err)
	}
	why, err := explanation(payload)
	if err != nil {
		return Action{}, fmt.Errorf("%s: %w", verb, err)
	}
	return Action{
		cause: c.Signal, session: c.Session, origin: c.Origin, proposer: c.Proposer,
		verb: verb, args: checked, why: why,
	}, nil
}

// resolve finds the verb a payload names, and the part of it that is arguments.
func (v *Vocabulary) resolve(target string, payload sexp.Plist) (Verb, sexp.Plist, error) {
	if tool, ok := payload.Get("TOOL"); ok {
		return v.resolveTool(target, tool, payload)
	}
	name, given := payload.Get("ACTION")
	if !given {
		return v.only(target, payload)
	}
	verb, ok := v.Verb(target, unfold(word(name)))
	if !ok {
		return Verb{}, sexp.Plist{}, v.noVerb(target, word(name))
	}
	return verb, payload.Without("ACTION").Without("EXPLANATION"), nil
}

func (v *Vocabulary) resolveTool(target string, tool sexp.Value, payload sexp.Plist) (Verb, sexp.Plist, error) {
	if target != "tool" {
		return Verb{}, sexp.Plist{}, fmt.Errorf("tool call addressed to %q: want :TARGET :TOOL", target)
	}
	if a, ok := payload.Get("ACTION"); ok && !strings.EqualFold(word(a), "CALL") {
		return Verb{}, sexp.Plist{}, fmt.Errorf("tool call with :ACTION %s: want :CALL or none", a)
	}
	if err := known(payload, "ACTION", "TOOL", "ARGS", "EXPLANATION"); err != nil {
		return Verb{}, sexp.Plist{}, fmt.Errorf("tool call: %w", err)
	}
	verb, ok := v.tools[unfold(word(tool))]
	if !ok {
		return Verb{}, sexp.Plist{}, unknown("tool", unfold(word(tool)), slices.Collect(maps.Keys(v.tools)))
	}
	raw, ok := payload.Get("ARGS")
	if !ok {
		return verb, sexp.Plist{}, nil
	}
	args, err := plist(raw)
	if err != nil {
		return Verb{}, sexp.Plist{}, fmt.Errorf("arguments of %s: %w", verb.Tool, err)
	}
	return verb, args, nil
}

// only finds the verb of a target that has just one, such as :shell.
func (v *Vocabulary) only(target string, payload sexp.Plist) (Verb, sexp.Plist, error) {
	var found []Verb
	for _, verb := range v.Verbs() {
		if verb.Target == target {
			found = append(found, verb)
		}
	}
	if len(found) != 1 || target == "tool" {
		return Verb{}, sexp.Plist{}, v.noVerb(target, "")
	}
	return found[0], payload.Without("EXPLANATION"), nil
}

func (v *Vocabulary) noVerb(target, name string) error {
	var targets, names []string
	for _, verb := range v.Verbs() {
		targets = append(targets, verb.Target)
		if verb.Target == target {
			names = append(names, verb.Name)
		}
	}
	if len(names) == 0 {
		return unknown("target", target, slices.Compact(targets))
	}
	if name == "" {
		return fmt.Errorf("%s: want an :ACTION, one of %s", target, strings.Join(names, ", "))
	}
	return unknown("action of "+target, unfold(name), names)
}

// check returns the arguments sorted, with defaults left out, after seeing that
// each is declared and of its type.
func (v Verb) check(args sexp.Plist) (sexp.Plist, error) {
	names := make([]sexp.Keyword, len(v.Params))
	for i, p := range v.Params {
		names[i] = p.Name
	}
	if err := known(args, names...); err != nil {
		return sexp.Plist{}, err
	}
	for _, p := range v.Params {
		val, ok := args.Get(p.Name)
		if !ok {
			if p.Required {
				return sexp.Plist{}, fmt.Errorf("argument %s is missing", p.Name)
			}
			continue
		}
		if !p.Type.fits(val) {
			return sexp.Plist{}, fmt.Errorf("argument %s is %s: want %s", p.Name, brief(val), p.Type)
		}
	}
	return args.Sorted(), nil
}

func (t Type) fits(v sexp.Value) bool {
	switch t {
	case Text:
		_, ok := v.(sexp.String)
		return ok
	case Number:
		n, ok := v.(sexp.Int)
		if !ok {
			return false
		}
		_, ok = n.Int64()
		return ok
	case Flag:
		return sexp.IsNil(v) || v == sexp.Value(sexp.True)
	case Texts:
		l, ok := v.(sexp.List)
		return ok && l.Tail() == nil && !slices.ContainsFunc(l.Items(), func(v sexp.Value) bool { return !Text.fits(v) })
	case Steps:
		l, ok := v.(sexp.List)
		return ok && l.Len() > 0 && l.Tail() == nil && !slices.ContainsFunc(l.Items(), func(v sexp.Value) bool {
			_, err := plist(v)
			return err != nil
		})
	case Data:
		return true
	case TypeInvalid:
	}
	return false
}

func explanation(payload sexp.Plist) (string, error) {
	v, ok := payload.Get("EXPLANATION")
	if !ok {
		return "", nil // the policy gate refuses it, with a reason for the model
	}
	s, ok := v.(sexp.String)
	if !ok {
		return "", fmt.Errorf(":EXPLANATION is %s: want a string", brief(v))
	}
	if len(s) > MaxWhy {
		return "", fmt.Errorf(":EXPLANATION is %d bytes: want at most %d", len(s), MaxWhy)
	}
	return string(s), nil
}

// plist reads a value as a property list, folding unprefixed keys to keywords:
// (target tool …) means (:TARGET :TOOL …).
func plist(v sexp.Value) (sexp.Plist, error) {
	l, ok := v.(sexp.List)
	if !ok {
		return sexp.Plist{}, fmt.Errorf("found %s: want a property list", brief(v))
	}
	if l.Tail() != nil {
		return sexp.AsPlist(l)
	}
	items := slices.Clone(l.Items())
	for i := 0; i < len(items); i += 2 {
		if s, ok := items[i].(sexp.Symbol); ok && s.Pkg == "" {
			items[i] = sexp.Keyword(s.Name)
		}
		if k, ok := items[i].(sexp.Keyword); ok {
			items[i] = sexp.Keyword(fold(string(k)))
		}
	}
	return sexp.AsPlist(sexp.NewList(items...))
}

func known(p sexp.Plist, keys ...sexp.Keyword) error {
	for _, e := range p.Pairs() {
		if slices.Contains(keys, e.Key) {
			continue
		}
		names := make([]string, len(keys))
		for i, k := range keys {
			names[i] = string(k)
		}
		return unknown("key", string(e.Key), names)
	}
	return nil
}

func unknown(what, found string, names []string) error {
	slices.Sort(names)
	if near, ok := sexp.Nearest(found, names); ok {
		return fmt.Errorf("unknown %s %q: did you mean %q?", what, found, near)
	}
	if len(names) == 0 {
		return fmt.Errorf("unknown %s %q: none is known", what, found)
	}
	return fmt.Errorf("unknown %s %q: want one of %s", what, found, strings.Join(names, ", "))
}

// word is the name a symbol, keyword or string spells; "" for anything else.
func word(v sexp.Value) string {
	switch v := v.(type) {
	case sexp.Keyword:
		return string(v)
	case sexp.Symbol:
		return v.Name
	case sexp.String:
		return string(v)
	default:
		return ""
	}
}

func brief(v sexp.Value) string {
	const most = 60
	s := v.String()
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func fold(s string) string   { return strings.ToUpper(s) }
func unfold(s string) string { return strings.ToLower(s) }
