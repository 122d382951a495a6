package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"passepartout/internal/sexp"
)

// A verdict is one gate's answer as the daemon reports it.
type verdict struct {
	gate, decision, code, reason, rule string
}

// A trace is how the gates ruled on one action.
type trace struct {
	id, name, args   string
	decision, policy string
	verdicts         []verdict
	output           string   // the end of what the command printed so far
	ended            []string // its lines, and
	begun            string   // the one that has not ended, as it came
}

// What is kept of a running command's output: lines that are shown, and bytes of one
// that has not ended.
const (
	maxPrinted = 8
	maxBegun   = 4096
)

// printed takes a piece of a running command's output and keeps the end of it all.
func (t *trace) printed(piece string) {
	lines := strings.Split(t.begun+piece, "\n")
	last := len(lines) - 1
	t.begun = lines[last][max(0, len(lines[last])-maxBegun):]
	for _, line := range lines[:last] {
		t.ended = append(t.ended, written(line))
	}
	t.ended = t.ended[max(0, len(t.ended)-maxPrinted):]
	t.output = strings.Join(append(slices.Clone(t.ended), written(t.begun)), "\n")
}

// written is a line as it stands on a terminal: what was written over is gone, and so
// are colours.
func written(line string) string {
	line = strings.TrimRight(line, "\r")
	return clean(ansi.Strip(line[strings.LastIndexByte(line, '\r')+1:]))
}

// readTrace takes a :GATE-TRACE event's payload. Everything in it is revealed:
// a person judges by it.
func readTrace(p sexp.Plist) *trace {
	tp := p.Sub("TRACE")
	t := &trace{
		id: reveal(p.Text("ID")), name: reveal(p.Text("NAME")), args: reveal(p.Sub("ARGS").String()),
		decision: decisionOf(tp), policy: reveal(tp.Text("POLICY")),
	}
	for _, v := range plists(tp, "VERDICTS") {
		t.verdicts = append(t.verdicts, verdict{
			gate: reveal(v.Text("GATE")), decision: decisionOf(v), code: reveal(v.Text("CODE")),
			reason: reveal(v.Text("REASON")), rule: reveal(v.Text("RULE")),
		})
	}
	return t
}

// decisionOf is a decision in lower case. What is neither of the three is shown
// as a denial, as the daemon would treat it.
func decisionOf(p sexp.Plist) string {
	switch w := p.Word("DECISION"); w {
	case "ALLOW", "ASK":
		return strings.ToLower(string(w))
	}
	return "deny"
}

// plists are the property lists in the list under a key.
func plists(p sexp.Plist, key sexp.Keyword) []sexp.Plist {
	v, _ := p.Get(key)
	l, _ := v.(sexp.List)
	out := make([]sexp.Plist, 0, l.Len())
	for _, item := range l.Items() {
		il, ok := item.(sexp.List)
		if !ok {
			continue
		}
		if ip, err := sexp.AsPlist(il); err == nil {
			out = append(out, ip)
		}
	}
	return out
}

// speaks reports whether the action only says something to who asked.
func (t *trace) speaks() bool { return strings.HasSuffix(t.name, "message") }

// gates counts the gates that answered; a replaced action is judged again by the
// same ones.
func (t *trace) gates() int {
	var names []string
	for _, v := range t.verdicts {
		if !slices.Contains(names, v.gate) {
			names = append(names, v.gate)
		}
	}
	return len(names)
}

// decided is a decision as a word of a sentence.
func decided(d string) string {
	switch d {
	case "allow":
		return "allowed"
	case "ask":
		return "asked"
	}
	return "denied"
}

// layout is the trace on one line, or with every gate below it.
func (t *trace) layout(l look, width int, open bool) []string {
	fold := l.fold
	if open {
		fold = l.unfold
	}
	g, r := l.sign(t.decision)
	head := "  " + l.paint(roleDim, fold) + " " + l.paint(r, g+" "+decided(t.decision)) + " " + l.paint(roleStrong, l.short(t.name, width-14))
	tail := t.summary()
	if room := width - ansiWidth(head) - ansiWidth(tail) - 3; t.args != "NIL" && room > 8 {
		head += " " + l.paint(roleCode, l.short(t.args, room))
	}
	if room := width - ansiWidth(head) - 2; room > 8 {
		head += "  " + l.paint(roleDim, l.short(tail, room))
	}
	lines := []string{pad(head, min(width, ansiWidth(head)))}
	if open {
		lines = append(lines, t.detail(l, width)...)
	}
	if out := strings.TrimRight(t.output, "\n"); out != "" {
		for line := range strings.SplitSeq(out, "\n") {
			if l.plain {
				line = ascii(line)
			}
			lines = append(lines, "    "+l.paint(roleDim, truncate(line, max(1, width-4), l.dots)))
		}
	}
	return lines
}

// summary says who objected, or how many agreed.
func (t *trace) summary() string {
	for _, v := range t.verdicts {
		if v.decision == t.decision && v.decision != "allow" {
			return fmt.Sprintf("%s (%s)", v.gate, v.code)
		}
	}
	return t.count()
}

// count says how many gates answered.
func (t *trace) count() string {
	if n := t.gates(); n != 1 {
		return fmt.Sprintf("%d gates", n)
	}
	return "1 gate"
}

// detail is every gate's verdict. Gates that agreed without a word share a line.
func (t *trace) detail(l look, width int) []string {
	const indent = "      "
	var lines, silent []string
	add := func(hang string, spans ...span) {
		lines = append(lines, wrap(l, width, indent, indent+hang, spans)...)
	}
	if t.args != "NIL" && !t.speaks() { // what was said stands below
		add("  ", span{"args ", roleDim}, span{oneLine(t.args), roleCode})
	}
	for _, v := range t.verdicts {
		if v.decision == "allow" && v.reason == "" {
			silent = append(silent, v.gate)
			continue
		}
		g, r := l.sign(v.decision)
		spans := []span{{g + " ", r}, {v.gate, roleStrong}, {" " + v.decision, r}}
		if v.code != "" {
			spans = append(spans, span{" " + v.code, roleCode})
		}
		if v.reason != "" {
			spans = append(spans, span{"  " + oneLine(v.reason), rolePlain})
		}
		if v.rule != "" {
			spans = append(spans, span{"  rule " + v.rule, roleDim})
		}
		add("  ", spans...)
	}
	if len(silent) > 0 {
		add("  ", span{l.ok + " ", roleOK}, span{"allow ", roleOK}, span{strings.Join(silent, ", "), roleDim})
	}
	foot := t.id
	if t.policy != "" {
		foot += "  policy " + fit(t.policy, 12)
	}
	add("  ", span{foot, roleDim})
	return lines
}
