package flight

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Defaults of learning.
const (
	LearnAfter = 3                   // answers of one class before a rule is proposed
	LearnFrom  = 30 * 24 * time.Hour // how far back is looked
	RuleLife   = 90 * 24 * time.Hour // how long a learnt rule holds
)

// A Miner finds rules in a journal.
type Miner struct {
	Vocabulary *proto.Vocabulary
	Policy     gate.Policy // in force; a proposal is tested under it
	Now        time.Time
	After      int           // answers of one class; 0: LearnAfter
	From       time.Duration // 0: LearnFrom
	Life       time.Duration // 0: RuleLife
}

// A Proposal is a rule nobody has agreed to yet.
type Proposal struct {
	Rule    gate.Rule // on trial, for an allow rule
	Answers int       // how often a person said so
	From    []string  // the tokens of those answers
	Would   []string  // what it would have answered in the time looked at, without the answers it comes from
	Scope   []string  // what else it admits, in words
	Problem string    // why it cannot be a rule; "" when it can
}

// An evidence is one asking ruling with its answer.
type evidence struct {
	id     string
	action proto.Action
	asked  []gate.Verdict
	body   sexp.Plist
	at     time.Time
	yes    bool
	heard  bool   // a person answered it, this very one
	answer string // what the answer was given to: the question, or the plan it was a step of
}

// Mine reads a journal and proposes, for every class a person has answered the
// same way often enough, the smallest rule that covers the answers.
func (m Miner) Mine(entries iter.Seq2[sexp.Plist, error]) ([]Proposal, error) {
	if m.After == 0 {
		m.After = LearnAfter
	}
	all, err := m.read(entries)
	if err != nil {
		return nil, err
	}
	classes := map[string][]*evidence{}
	for _, e := range all {
		if class, ok := Class(e.action); ok && e.heard && e.action.Cause().Origin.Role == proto.RoleOwner {
			classes[class] = append(classes[class], e)
		}
	}
	var out []Proposal
	for _, class := range slices.Sorted(maps.Keys(classes)) {
		if p, ok := m.propose(classes[class], m.rule); ok && !m.known(p.Rule) {
			out = append(out, p)
		}
	}
	for _, es := range widen(classes) {
		if p, ok := m.propose(es, m.wideRule); ok && p.Rule.Decision == gate.Allow && !m.known(p.Rule) {
			out = append(out, p)
		}
	}
	for i := range out {
		m.review(&out[i], all)
	}
	return out, nil
}

// Wanted proposes the rule for the class of one plan's action, and of every step that
// asked, without waiting for more answers: the person wants it.
func (m Miner) Wanted(p Plan) ([]Proposal, error) {
	m.After = 1
	asks := []Plan{p}
	if len(p.Steps) > 0 {
		asks = nil
		for i, s := range p.Steps {
			if s.Asks() {
				asks = append(asks, p.AsStep(i))
			}
		}
	}
	var out []Proposal
	for _, q := range asks {
		a, err := m.Vocabulary.Recorded(q.Action)
		if err != nil {
			return nil, err
		}
		if a.Digest().String() != q.Digest {
			return nil, fmt.Errorf("%s holds something that is not kept", q.Name())
		}
		if _, ok := Class(a); !ok {
			return nil, fmt.Errorf("%s is expanded when it runs, or holds what no rule can name", q.Name())
		}
		pr, _ := m.propose([]*evidence{{id: q.Token, answer: q.Token, action: a, asked: q.Asked(), yes: true}}, m.rule)
		if pr.Problem != "" {
			return nil, errors.New(pr.Problem)
		}
		known := func(o Proposal) bool { return o.Rule.Name == pr.Rule.Name }
		if !m.known(pr.Rule) && !slices.ContainsFunc(out, known) {
			out = append(out, pr)
		}
	}
	return out, nil
}

// read collects the asking rulings of the time looked at, and their answers.
func (m Miner) read(entries iter.Seq2[sexp.Plist, error]) ([]*evidence, error) {
	from := m.From
	if from == 0 {
		from = LearnFrom
	}
	var all []*evidence
	byID := map[string]*evidence{}
	for body, err := range entries {
		if err != nil {
			return nil, err
		}
		switch body.Word("KIND") {
		case "RULING":
			at, err := time.Parse(time.RFC3339Nano, body.Sub("FACTS").Text("NOW"))
			if err != nil || m.Now.Sub(at) > from || body.Sub("TRACE").Word("DECISION") != "ASK" {
				continue
			}
			a, err := m.Vocabulary.Recorded(body.Sub("ACTION"))
			if err != nil {
				continue // a verb of another version of this program
			}
			e := &evidence{id: body.Text("ID"), action: a, body: body, at: at}
			for _, v := range gate.VerdictsOf(body.Sub("TRACE")) {
				if v.Decision == gate.Ask {
					e.asked = append(e.asked, v)
				}
			}
			all = append(all, e)
			byID[e.id] = e
		case "ANSWER":
			if e, ok := byID[body.Text("TOKEN")]; ok && body.Text("GRANT") == "" && proto.OriginOf(body.Sub("BY")).Role == proto.RoleOwner {
				v, _ := body.Get("YES")
				e.heard, e.yes, e.answer = true, !sexp.IsNil(v), cmp.Or(body.Text("PLAN"), e.id)
			}
		}
	}
	return all, nil
}

// propose makes the rule of one class. Answers of both kinds teach nothing.
func (m Miner) propose(es []*evidence, make func([]*evidence, gate.Decision) gate.Rule) (Proposal, bool) {
	yes, answers := 0, map[string]bool{}
	for _, e := range es {
		if answers[e.answer] = true; e.yes {
			yes++
		}
	}
	var d gate.Decision
	switch {
	case len(answers) < m.After:
		return Proposal{}, false // ten steps of one plan are one answer
	case yes == len(es):
		d = gate.Allow
	case yes == 0:
		d = gate.Deny
	default:
		return Proposal{}, false
	}
	p := Proposal{Answers: len(answers), Rule: make(es, d)}
	for _, e := range es {
		p.From = append(p.From, e.id)
	}
	p.Scope = scope(p.Rule, es[0].action)
	if err := gate.TestRule(p.Rule, m.Policy, m.Vocabulary); err != nil {
		p.Problem = err.Error()
	} else if err := p.readable(m.Vocabulary); err != nil {
		p.Problem = err.Error()
	}
	if word, ok := starred(es); ok && p.Problem == "" {
		p.Problem = fmt.Sprintf("%q holds a *, which a rule reads as any text", word)
	}
	if d == gate.Allow {
		for _, e := range es {
			for _, v := range e.asked {
				if v.Bound != "" {
					p.Problem = "the answers were about the bytes of a file, which a rule cannot name"
				}
			}
		}
	}
	return p, true
}

// starred finds a word that all examples share and that would be a pattern if it
// stood in a rule.
func starred(es []*evidence) (string, bool) {
	first, _ := shapeOf(es[0].action)
	for i, p := range first {
		for j, w := range p.words {
			same := !p.exact && strings.Contains(w, "*")
			for _, e := range es[1:] {
				other, _ := shapeOf(e.action)
				same = same && len(other) > i && len(other[i].words) > j && (other[i].words[j] == w || p.means != proto.Content)
			}
			if same {
				return w, true
			}
		}
	}
	return "", false
}

// readable sees that the rule comes back from its file as it went in: a text that
// Org reads otherwise would be another rule.
func (p Proposal) readable(v *proto.Vocabulary) error {
	rules, err := gate.ParseRules("proposal", []byte(p.Org("nobody", p.Rule.Expires)), v)
	if err != nil {
		return err
	}
	want := p.Rule
	if len(rules) == 1 {
		want.Where = rules[0].Where
	}
	if len(rules) != 1 || rules[0].Plist().String() != want.Plist().String() {
		return errors.New("it cannot be written down in Org without becoming another rule")
	}
	return nil
}

// rule is the smallest one over the examples: what they have in common stays as it
// is, and what differs becomes the pattern of their class.
func (m Miner) rule(es []*evidence, d gate.Decision) gate.Rule {
	first, _ := shapeOf(es[0].action)
	r := gate.Rule{Decision: d, Verb: es[0].action.Name(), Shadow: d == gate.Allow, Where: "proposal"}
	for i, p := range first {
		for _, e := range es[1:] {
			other, _ := shapeOf(e.action)
			for j := range p.words {
				if other[i].words[j] != p.words[j] {
					p.words[j] = p.pattern(p.words[j])
				}
			}
		}
		if pat := strings.Join(p.words, " "); pat != "*" && pat != "" {
			r.When = append(r.When, gate.Condition{Arg: p.arg, Pattern: pat})
		}
	}
	return m.complete(r, es)
}

// complete gives a rule that has its conditions the rest: what it answers, its
// examples, its end, its name.
func (m Miner) complete(r gate.Rule, es []*evidence) gate.Rule {
	for _, e := range es {
		for _, v := range e.asked {
			r.Lifts = append(append(r.Lifts, v.Code), strings.Fields(v.Also)...)
		}
		if text := m.example(r, e.action.Args()); !slices.Contains(r.Match, text) && len(r.Match) < 5 {
			r.Match = append(r.Match, text)
		}
	}
	slices.Sort(r.Lifts)
	r.Lifts = slices.Compact(r.Lifts)
	if r.Decision != gate.Allow {
		r.Lifts = nil
	}
	life := m.Life
	if life == 0 {
		life = RuleLife
	}
	r.Expires = m.Now.Add(life).UTC().Truncate(24 * time.Hour)
	r.NoMatch = m.counterexamples(r, es[0].action)
	r.Name = name(r)
	return r
}

// example is an action's arguments as the rule's file gives them.
func (m Miner) example(r gate.Rule, args sexp.Plist) string {
	if len(r.When) == 1 && args.Len() == 1 {
		if text := args.Text(r.When[0].Arg); text != "" && !strings.HasPrefix(text, "(") {
			return text
		}
	}
	return args.String()
}

// counterexamples are neighbours the rule must not cover: one more command, an
// option nobody agreed to, a way upwards, another host.
func (m Miner) counterexamples(r gate.Rule, a proto.Action) []string {
	var candidates []string
	for _, c := range r.When {
		spec, _ := a.Spec().Param(c.Arg)
		text := a.Args().Text(c.Arg)
		if text == "" {
			continue
		}
		var others []string
		if spec.Means == proto.Command {
			others = []string{text + " ; id", text + " --an-option-nobody-agreed-to"}
			if r.Decision != gate.Allow { // which covers it wherever it stands
				others = []string{"a-program-nobody-spoke-of"}
			}
		} else {
			others = []string{text + "-and-something-else", "something else"}
		}
		for _, o := range others {
			candidates = append(candidates, m.example(r, a.Args().With(c.Arg, sexp.String(o))))
		}
	}
	holds := func(no string) bool { return gate.TestRule(trial(r, no), m.Policy, m.Vocabulary) == nil }
	if out := slices.DeleteFunc(slices.Clone(candidates), func(no string) bool { return !holds(no) }); len(out) > 0 {
		return out
	}
	return candidates // the rule is wrong in another way, and testing it will say how
}

// trial is the rule with one counterexample, to see whether it is one.
func trial(r gate.Rule, no string) gate.Rule {
	r.Name, r.NoMatch = "trial", []string{no}
	return r
}

// name is what the rule is called: short, and the same for the same rule.
func name(r gate.Rule) string {
	var parts []string
	for _, c := range r.When {
		parts = append(parts, c.Pattern)
	}
	text := r.Decision.String() + " " + r.Verb + " " + strings.Join(parts, " ")
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "")
	}
	key := r
	key.Name, key.Match, key.NoMatch, key.Expires, key.Shadow = "", nil, nil, time.Time{}, false
	return fmt.Sprintf("%s %s", oneLine(text), sexp.Sum(key.Plist().List()).String()[:6])
}

// known reports whether there is such a rule already.
func (m Miner) known(r gate.Rule) bool {
	return slices.ContainsFunc(m.Policy.Rules, func(o gate.Rule) bool { return o.Name == r.Name })
}

// scope says what a rule admits besides its examples.
func scope(r gate.Rule, a proto.Action) []string {
	var out []string
	for _, c := range r.When {
		if head, options, ok := strings.Cut(c.Pattern, " ..."); ok {
			out = append(out, fmt.Sprintf("%s: %q and any words after it, with no options but %s, no address and no way upwards",
				strings.ToLower(string(c.Arg)), head, cmp.Or(strings.Trim(options, "{}"), "none")))
			continue
		}
		if !strings.Contains(c.Pattern, "*") {
			out = append(out, fmt.Sprintf("%s: exactly %q", strings.ToLower(string(c.Arg)), c.Pattern))
			continue
		}
		star := "any text"
		switch p, _ := a.Spec().Param(c.Arg); p.Means {
		case proto.Command:
			star = "any text, deeper directories too, that does not begin with - and does not lead upwards"
		case proto.ReadPath, proto.WritePath:
			star = "any name in that directory"
		default:
		}
		out = append(out, fmt.Sprintf("%s: %q, where * is %s", strings.ToLower(string(c.Arg)), c.Pattern, star))
	}
	for _, p := range a.Spec().Params {
		if !slices.ContainsFunc(r.When, func(c gate.Condition) bool { return c.Arg == p.Name }) {
			out = append(out, strings.ToLower(string(p.Name))+": anything, or nothing")
		}
	}
	if r.Decision == gate.Allow {
		out = append(out, "it answers only "+strings.Join(r.Lifts, ", ")+"; every other question is still asked, and every refusal stands")
	}
	return out
}

// review finds what the rule would have answered: every asking ruling of the time
// looked at is decided again with the rule in force.
func (m Miner) review(p *Proposal, all []*evidence) {
	if p.Problem != "" || p.Rule.Decision != gate.Allow {
		return
	}
	r := p.Rule
	r.Shadow = false
	pol := m.Policy
	pol.Rules = append(slices.Clone(pol.Rules), r)
	c, err := gate.Standard(pol, m.Vocabulary)
	if err != nil {
		p.Problem = err.Error()
		return
	}
	for _, e := range all {
		again, err := gate.Replay(c, e.action, e.body.Sub("FACTS"))
		if err != nil || e.heard && e.yes || again.Decision() != gate.Allow {
			continue
		}
		p.Would = append(p.Would, fmt.Sprintf("%s  %s %s", e.id, e.action.Name(), e.action.Args()))
	}
}

// Org is the rule as a heading of the rules' file.
func (p Proposal) Org(author string, at time.Time) string {
	var b strings.Builder
	r := p.Rule
	fmt.Fprintf(&b, "* %s\n:PROPERTIES:\n:DECISION: %s\n:VERB: %s\n", r.Name, r.Decision, r.Verb)
	for _, c := range r.When {
		fmt.Fprintf(&b, ":WHEN-%s: %s\n", string(c.Arg), c.Pattern)
	}
	if len(r.Lifts) > 0 {
		fmt.Fprintf(&b, ":LIFTS: %s\n", strings.Join(r.Lifts, " "))
	}
	if r.Shadow {
		b.WriteString(":SHADOW: t\n")
	}
	fmt.Fprintf(&b, ":AUTHOR: %s\n:LEARNT: %s\n:EXPIRES: %s\n:HITS: 0\n:END:\n", oneLine(author), at.Format("[2006-01-02 Mon]"), r.Expires.Format(time.DateOnly))
	fmt.Fprintf(&b, "Learnt from %d answers.\n", p.Answers)
	for _, s := range p.Scope {
		fmt.Fprintf(&b, "  %s\n", s)
	}
	for _, e := range r.Match {
		fmt.Fprintf(&b, "- match :: =%s=\n", e)
	}
	for _, e := range r.NoMatch {
		fmt.Fprintf(&b, "- no-match :: =%s=\n", e)
	}
	return b.String()
}

// Hits counts what each rule has answered, and what those on trial would have, by
// the rule's name.
func Hits(entries iter.Seq2[sexp.Plist, error]) (map[string]int, error) {
	hits := map[string]int{}
	places := map[string]string{} // policy and place → name
	for body, err := range entries {
		if err != nil {
			return nil, err
		}
		switch body.Word("KIND") {
		case "POLICY":
			p, err := gate.ParsePolicy(body.Sub("POLICY"))
			if err != nil {
				continue
			}
			for _, r := range p.Rules {
				places[body.Text("DIGEST")+" "+r.Where] = r.Name
			}
		case "RULING":
			trace := body.Sub("TRACE")
			seen := map[string]bool{}
			for _, v := range gate.VerdictsOf(trace) {
				if n, ok := places[trace.Text("POLICY")+" "+v.Rule]; ok && v.Rule != "" {
					seen[n] = true
				}
				if _, rest, ok := strings.Cut(v.Reason, " (the rule "); ok {
					n, _, _ := strings.Cut(rest, ", on trial, would allow it)")
					seen[strings.Trim(n, `"“”`)] = true
				}
			}
			for n := range seen {
				hits[n]++
			}
		}
	}
	return hits, nil
}
