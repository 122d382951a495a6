package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"passepartout/internal/gate"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// MaxOutput is how much text a tool may return, in bytes.
const MaxOutput = 100_000

// defaultTimeout is how long a tool may run when it does not say.
const defaultTimeout = 120 * time.Second

// A Call is one use of a tool: the judged arguments and on whose behalf.
type Call struct {
	Args    sexp.Plist
	Session string
	Origin  proto.Origin

	permit gate.Permit
}

// Path is where a path argument leads, as the gates judged it.
func (c Call) Path(k sexp.Keyword) (string, error) {
	abs, ok := c.permit.Path(k)
	if !ok {
		return "", fmt.Errorf("no gate has judged the path in :%s", k)
	}
	return abs, nil
}

// Text returns a string argument, "" when it was not given.
func (c Call) Text(k sexp.Keyword) string { return c.Args.Text(k) }

// Int returns a number argument, or fallback when it was not given.
func (c Call) Int(k sexp.Keyword, fallback int) int {
	v, _ := c.Args.Get(k)
	n, ok := v.(sexp.Int)
	if !ok {
		return fallback
	}
	small, _ := n.Int64()
	return int(small)
}

// Flag returns a T-or-NIL argument.
func (c Call) Flag(k sexp.Keyword) bool { return c.Args.Flag(k) }

// Texts returns a list-of-strings argument.
func (c Call) Texts(k sexp.Keyword) []string {
	v, _ := c.Args.Get(k)
	l, _ := v.(sexp.List)
	var out []string
	for _, x := range l.Items() {
		if s, ok := x.(sexp.String); ok {
			out = append(out, string(s))
		}
	}
	return out
}

// Has reports whether the argument was given at all.
func (c Call) Has(k sexp.Keyword) bool {
	_, ok := c.Args.Get(k)
	return ok
}

// A Tool is a declared capability and the function behind it.
type Tool struct {
	Name    string
	Doc     string
	Effect  proto.Effect
	Params  []proto.Param
	Timeout time.Duration // 0: two minutes
	// Guard is a last check of the arguments against the state of now; an error
	// refuses the call. It may be nil.
	Guard func(Call) error
	Run   func(context.Context, Call) (Outcome, error)
}

func (t Tool) verb() proto.Verb {
	return proto.Verb{Target: "tool", Name: t.Name, Tool: t.Name, Doc: t.Doc, Effect: t.Effect, Params: t.Params}
}

// Toolbox is the actuator behind the target "tool".
type Toolbox struct{ tools map[string]Tool }

var _ Actuator = (*Toolbox)(nil)

// NewToolbox returns the actuator of those tools.
func NewToolbox(tools ...Tool) (*Toolbox, error) {
	b := &Toolbox{tools: map[string]Tool{}}
	for _, t := range tools {
		if _, dup := b.tools[t.Name]; dup || t.Run == nil {
			return nil, fmt.Errorf("tool %q is given twice or does nothing", t.Name)
		}
		b.tools[t.Name] = t
	}
	return b, nil
}

// Target implements [Actuator].
func (b *Toolbox) Target() string { return "tool" }

// Verbs implements [Actuator].
func (b *Toolbox) Verbs() []proto.Verb {
	verbs := make([]proto.Verb, 0, len(b.tools))
	for _, t := range b.tools {
		verbs = append(verbs, t.verb())
	}
	slices.SortFunc(verbs, func(a, b proto.Verb) int { return cmp.Compare(a.Name, b.Name) })
	return verbs
}

// Act implements [Actuator]. The tool runs under its own deadline; a panic in it
// is its failure, not the daemon's.
func (b *Toolbox) Act(ctx context.Context, p gate.Permit) (Outcome, error) {
	a, err := p.Redeem()
	if err != nil {
		return Outcome{}, err
	}
	t, ok := b.tools[a.Verb()]
	if !ok {
		return Outcome{}, fmt.Errorf("%w: tool %q", ErrNoActuator, a.Verb())
	}
	call := Call{Args: a.Args(), Session: a.Cause().Session, Origin: a.Cause().Origin, permit: p}
	if t.Guard != nil {
		if err := t.Guard(call); err != nil {
			return Failed("%s refused its arguments: %v", t.Name, err), nil
		}
	}
	limit := t.Timeout
	if limit == 0 {
		limit = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return t.run(ctx, call, limit), nil
}

func (t Tool) run(ctx context.Context, call Call, limit time.Duration) (o Outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = Failed("%s crashed: %v", t.Name, p)
		}
		o.Text, o.Truncated = clip(o.Text, MaxOutput, o.Truncated)
	}()
	o, err := t.Run(ctx, call)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Failed("%s did not finish within %v", t.Name, limit)
	case err != nil:
		return Failed("%s: %v", t.Name, err)
	}
	return o
}

// clip cuts text to most bytes at a rune boundary and says so.
func clip(s string, most int, already bool) (string, bool) {
	if len(s) <= most {
		return s, already
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + fmt.Sprintf("\n[cut: %d of %d bytes shown]", cut, len(s)), true
}
