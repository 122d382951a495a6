package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
	"passepartout/internal/shell"
)

// A Rule is one decision a person wrote down beforehand. A deny or ask rule
// objects to what it matches; an allow rule answers the questions whose codes it
// names, and nothing else: no deny, no floor, no command that is not plain words
// or the very command line it names.
type Rule struct {
	Name     string
	Decision Decision
	Verb     string      // a tool's name, or "target.verb"
	Role     proto.Role  // whose actions; RoleNone: anybody's for deny and ask, the owner's for allow
	When     []Condition // all must hold
	Lifts    []string    // codes of the questions an allow rule answers
	Shadow   bool        // an allow rule on trial: it only says what it would have done
	Match    []string    // examples that must match, as commands or argument lists
	NoMatch  []string    // examples that must not
	Expires  time.Time   // from then on it matches nothing; zero: never
	Where    string      // file:line
}

// A Condition is a pattern for one argument. What the pattern means depends on
// what the argument is: words of a command, a path with * and **, a host, or text
// with *.
type Condition struct {
	Arg     sexp.Keyword
	Pattern string
}

// Plist is the rule as a policy records it.
func (r Rule) Plist() sexp.Plist {
	when := make([]sexp.Value, len(r.When))
	for i, c := range r.When {
		when[i] = sexp.NewList(c.Arg, sexp.String(c.Pattern))
	}
	p := sexp.P(
		sexp.Keyword("NAME"), r.Name, sexp.Keyword("DECISION"), r.Decision.String(), sexp.Keyword("VERB"), r.Verb,
		sexp.Keyword("ROLE"), r.Role.String(), sexp.Keyword("WHEN"), sexp.NewList(when...), sexp.Keyword("LIFTS"), r.Lifts,
		sexp.Keyword("SHADOW"), r.Shadow, sexp.Keyword("MATCH"), r.Match, sexp.Keyword("NO-MATCH"), r.NoMatch,
		sexp.Keyword("WHERE"), r.Where)
	if !r.Expires.IsZero() {
		p = p.With("EXPIRES", sexp.String(r.Expires.UTC().Format(time.RFC3339)))
	}
	return p
}

func ruleOf(p sexp.Plist) (Rule, error) {
	r := Rule{
		Name: p.Text("NAME"), Verb: p.Text("VERB"), Role: proto.ParseRole(p.Text("ROLE")), Where: p.Text("WHERE"),
		Lifts: texts(p, "LIFTS"), Match: texts(p, "MATCH"), NoMatch: texts(p, "NO-MATCH"),
	}
	d, ok := ParseDecision(p.Text("DECISION"))
	if !ok {
		return Rule{}, fmt.Errorf("rule %q: decision %q, want allow, ask or deny", r.Name, p.Text("DECISION"))
	}
	r.Decision = d
	if text := p.Text("EXPIRES"); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return Rule{}, fmt.Errorf("rule %q: expiry: %w", r.Name, err)
		}
		r.Expires = at
	}
	shadow, _ := p.Get("SHADOW")
	r.Shadow = !sexp.IsNil(shadow)
	v, _ := p.Get("WHEN")
	l, _ := v.(sexp.List)
	for _, item := range l.Items() {
		pair, _ := item.(sexp.List)
		if pair.Len() != 2 {
			return Rule{}, fmt.Errorf("rule %q: condition %s is no pair", r.Name, item)
		}
		key, _ := pair.At(0).(sexp.Keyword)
		pat, _ := pair.At(1).(sexp.String)
		r.When = append(r.When, Condition{key, string(pat)})
	}
	return r, nil
}

// check refuses a rule that could not mean anything, or means too much.
func (r Rule) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: rule %q: %s", r.Where, r.Name, fmt.Sprintf(format, args...))
	}
	if r.Name == "" || r.Verb == "" {
		return fail("want a name and a verb")
	}
	if r.Decision != Allow {
		if len(r.Lifts) > 0 || r.Shadow {
			return fail("only an allow rule lifts questions or is on trial")
		}
		return nil
	}
	if len(r.When) == 0 {
		return fail("an allow rule needs at least one condition")
	}
	if len(r.Lifts) == 0 {
		return fail("an allow rule names the codes it answers, such as %q", "permissions.ask")
	}
	if len(r.Match) == 0 || len(r.NoMatch) == 0 {
		return fail("an allow rule needs an example of either kind")
	}
	for _, c := range r.When {
		words := strings.Fields(c.Pattern)
		if len(words) == 0 {
			continue
		}
		if _, ok := anyCall(words[len(words)-1]); ok && !slices.Equal(r.Lifts, []string{shell.NeedsService}) {
			return fail("%q lets any words and options follow, so it may answer %s only, which asks what a program that reads connects to", c.Pattern, shell.NeedsService)
		}
	}
	for _, code := range r.Lifts {
		if why := whyNotLiftable(code); why != "" {
			return fail("%q cannot be lifted: %s", code, why)
		}
	}
	return nil
}

// matches reports whether the action is one the rule speaks about.
func (r Rule) matches(v *view) bool {
	if !r.Expires.IsZero() && !v.facts.Now.Before(r.Expires) {
		return false
	}
	spec := v.action.Spec()
	if r.Verb != spec.String() && (r.Verb != spec.Tool || spec.Tool == "") {
		return false
	}
	role := v.action.Cause().Origin.Role
	switch {
	case r.Role != proto.RoleNone:
		if role != r.Role {
			return false
		}
	case r.Decision == Allow && role != proto.RoleOwner:
		return false
	}
	for _, c := range r.When {
		if !c.holds(v, r.Decision == Allow) {
			return false
		}
	}
	return true
}

// holds reports whether the argument fits. Where there are several texts an allow
// rule wants all of them to fit; a stricter rule is content with one.
func (c Condition) holds(v *view, strict bool) bool {
	p, ok := v.action.Spec().Param(c.Arg)
	if !ok {
		return false
	}
	if p.Means == proto.Command {
		val, _ := v.action.Args().Get(c.Arg)
		return commandFits(c.Pattern, val, strict)
	}
	if val, _ := v.action.Args().Get(c.Arg); p.Type != proto.Data && len(leaves(val, nil)) == 0 && !sexp.IsNil(val) {
		return glob(c.Pattern, strings.ToLower(val.String()), 0) // a number, or t
	}
	found := false
	for _, a := range v.args {
		if a.name != c.Arg {
			continue
		}
		fits := c.fits(v, a, strict)
		if fits != strict {
			return fits
		}
		found = true
	}
	return found && strict
}

func (c Condition) fits(v *view, a arg, strict bool) bool {
	switch a.means {
	case proto.ReadPath, proto.WritePath:
		pattern := v.setting.layout.Resolve(v.policy.Cwd, c.Pattern)
		return glob(pattern, v.layout.Resolve(v.policy.Cwd, a.text), '/')
	case proto.URL:
		return addressFits(c.Pattern, a.text, strict)
	default:
		return glob(c.Pattern, a.text, 0)
	}
}

// A waiver is a matching allow rule, ready to answer questions.
type waiver struct {
	codes  []string
	name   string
	where  string
	shadow bool
}

// ruleset is the allow rules of a policy.
type ruleset struct {
	setting *setting
	rules   []Rule
}

func newRuleset(p Policy) (*ruleset, error) {
	seen := map[string]bool{}
	rs := &ruleset{setting: newSetting(p)}
	for _, r := range p.Rules {
		if err := r.check(); err != nil {
			return nil, err
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("%s: rule %q is given twice", r.Where, r.Name)
		}
		seen[r.Name] = true
		if r.Decision == Allow {
			rs.rules = append(rs.rules, r)
		}
	}
	return rs, nil
}

// waivers finds the allow rules that speak about the action.
func (rs *ruleset) waivers(a proto.Action, f Facts) []waiver {
	if rs == nil || len(rs.rules) == 0 {
		return nil
	}
	if f.scratch.view == nil {
		f.scratch.view = rs.setting.view(a, f)
	}
	var out []waiver
	for _, r := range rs.rules {
		if r.matches(f.scratch.view) {
			out = append(out, waiver{r.Lifts, r.Name, r.Where, r.Shadow})
		}
	}
	return out
}

// lift answers a question by the first rule that names all of its codes.
func lift(v *Verdict, ws []waiver) {
	codes := append([]string{v.Code}, strings.Fields(v.Also)...)
	for _, w := range ws {
		if slices.ContainsFunc(codes, func(c string) bool { return !slices.Contains(w.codes, c) }) {
			continue
		}
		if w.shadow {
			v.Reason += fmt.Sprintf(" (the rule %s, on trial, would allow it)", quote(w.name))
			continue
		}
		v.Decision, v.Rule = Allow, w.where
		v.Code += "+rule"
		return
	}
}

// judgeRules (550) makes the objections a person wrote down.
func judgeRules(v *view) Verdict {
	verdict := Pass()
	for _, r := range v.policy.Rules {
		if r.Decision < verdict.Decision && r.matches(v) {
			verdict = Verdict{Decision: r.Decision, Code: "rule." + r.Decision.String(), Reason: fmt.Sprintf("the rule %s speaks about this", quote(r.Name)), Rule: r.Where}
		}
	}
	return verdict
}

// TestRule runs a rule's examples under a policy: each must match or not match as
// it says, and what an allow rule matches must not be refused by a gate, because
// then the rule promises what nobody may have.
func TestRule(r Rule, p Policy, v *proto.Vocabulary, extra ...Gate) error {
	p.Rules = []Rule{r}
	rules, err := newRuleset(p)
	if err != nil {
		return err
	}
	c, err := New(v, p.Digest(), nil, append(standardGates(p, v), extra...)...)
	if err != nil {
		return err
	}
	c.rules = rules
	for _, want := range [...]bool{true, false} {
		examples := r.Match
		if !want {
			examples = r.NoMatch
		}
		for _, text := range examples {
			if err := r.try(text, want, c, rules.setting, v); err != nil {
				return fmt.Errorf("%s: rule %q: %w", r.Where, r.Name, err)
			}
		}
	}
	return nil
}

func (r Rule) try(text string, want bool, c *Chain, s *setting, v *proto.Vocabulary) error {
	a, f, err := r.example(text, v)
	if err != nil {
		return fmt.Errorf("example %s: %w", quote(text), err)
	}
	if got := r.matches(s.view(a, f)); got != want {
		if want {
			return fmt.Errorf("the example %s does not match", quote(text))
		}
		return fmt.Errorf("the example %s matches and should not", quote(text))
	}
	if !want || r.Decision != Allow {
		return nil
	}
	if ruling := c.Decide(a, f); ruling.Decision() == Deny {
		o := ruling.Objections()[0]
		return fmt.Errorf("the example %s is refused by %s, which no rule can lift: %s", quote(text), o.Gate, o.Reason)
	}
	return nil
}

// example makes the action an example speaks of: an argument list in
// parentheses, or the text of the one argument the rule has a condition for.
func (r Rule) example(text string, v *proto.Vocabulary) (proto.Action, Facts, error) {
	spec, ok := findVerb(v, r.Verb)
	if !ok {
		return proto.Action{}, Facts{}, fmt.Errorf("there is no verb %q", r.Verb)
	}
	args := sexp.Plist{}
	if strings.HasPrefix(text, "(") {
		p, err := sexp.ReadPlist([]byte(text), sexp.Limits{})
		if err != nil {
			return proto.Action{}, Facts{}, err
		}
		args = p
	} else if len(r.When) != 1 {
		return proto.Action{}, Facts{}, fmt.Errorf("the rule has %d conditions, so an example gives its arguments in parentheses", len(r.When))
	} else {
		args = args.With(r.When[0].Arg, sexp.String(text))
	}
	role := r.Role
	if role == proto.RoleNone {
		role = proto.RoleOwner
	}
	cause := proto.Cause{Signal: "example", Session: "example", Origin: proto.Origin{Role: role, Channel: "example"}, Proposer: "rules"}
	payload := args.With("ACTION", sexp.Keyword(strings.ToUpper(spec.Name))).With("EXPLANATION", sexp.String("an example of the rule "+r.Name))
	a, err := v.Decode(sexp.P(sexp.Keyword("TARGET"), sexp.Keyword(strings.ToUpper(spec.Target)), sexp.Keyword("PAYLOAD"), payload).List(), cause)
	f := Facts{Signal: proto.Signal{ID: cause.Signal, Session: cause.Session, Origin: cause.Origin, Kind: proto.Event}}
	return a, f, err
}

// findVerb finds a verb by its full name or its tool's.
func findVerb(v *proto.Vocabulary, name string) (proto.Verb, bool) {
	for _, verb := range v.Verbs() {
		if verb.String() == name || verb.Tool == name && name != "" {
			return verb, true
		}
	}
	return proto.Verb{}, false
}
