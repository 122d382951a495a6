package acp

import (
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"passepartout/internal/sexp"
)

// kinds of tool calls by verb, for the editor's icons.
var kinds = map[string]sdk.ToolKind{
	"tool.read-file": sdk.ToolKindRead, "tool.list-directory": sdk.ToolKindRead, "tool.agenda": sdk.ToolKindRead,
	"tool.memory-search": sdk.ToolKindSearch, "tool.org-find-headline": sdk.ToolKindSearch,
	"tool.find-files": sdk.ToolKindSearch, "tool.search-files": sdk.ToolKindSearch,
	"tool.write-file": sdk.ToolKindEdit, "tool.replace-in-file": sdk.ToolKindEdit, "tool.write-note": sdk.ToolKindEdit,
	"tool.capture": sdk.ToolKindEdit, "tool.org-edit": sdk.ToolKindEdit, "tool.undo": sdk.ToolKindEdit, "tool.redo": sdk.ToolKindEdit,
	"shell.run": sdk.ToolKindExecute, "tests.run": sdk.ToolKindExecute, "tool.eval-form": sdk.ToolKindExecute,
	"tool.web-fetch": sdk.ToolKindFetch, "plan.steps": sdk.ToolKindThink,
}

func kind(name string) sdk.ToolKind {
	if k, ok := kinds[name]; ok {
		return k
	}
	return sdk.ToolKindOther
}

// title is an action on one line.
func title(name string, args sexp.Plist) string {
	const most = 120
	line := name
	for _, e := range args.Pairs() {
		if s, ok := e.Value.(sexp.String); ok {
			line += " " + string(s)
		}
	}
	r := []rune(strings.Join(strings.Fields(line), " "))
	if len(r) > most {
		return string(r[:most]) + "…"
	}
	return string(r)
}

// raw is a property list for programs: strings as they are, the rest printed.
func raw(args sexp.Plist) map[string]any {
	out := map[string]any{}
	for _, e := range args.Pairs() {
		name := strings.ToLower(string(e.Key))
		if s, ok := e.Value.(sexp.String); ok {
			out[name] = string(s)
		} else {
			out[name] = e.Value.String()
		}
	}
	return out
}

// verdicts say how the gates ruled, and how to learn more.
func verdicts(t sexp.Plist) string {
	line := "gates: " + strings.ToLower(string(t.Sub("TRACE").Word("DECISION")))
	for _, v := range rows(t.Sub("TRACE"), "VERDICTS") {
		if v.Word("DECISION") != "ALLOW" {
			line += fmt.Sprintf("\n%s (%s): %s", v.Text("GATE"), v.Text("CODE"), v.Text("REASON"))
		}
	}
	return line + "\npassepartout why " + t.Text("ID")
}

// question is what a person must know to decide.
func question(q sexp.Plist) string {
	var b strings.Builder
	b.WriteString(q.Text("WHY"))
	for _, e := range q.Sub("ARGS").Pairs() {
		fmt.Fprintf(&b, "\n%s: %s", strings.ToLower(string(e.Key)), e.Value)
	}
	for _, s := range rows(q, "STEPS") {
		fmt.Fprintf(&b, "\n- %s %s (%s)", s.Text("NAME"), s.Sub("ARGS"), strings.ToLower(string(s.Word("DECISION"))))
	}
	v, _ := q.Get("REASONS")
	l, _ := v.(sexp.List)
	for _, r := range l.Items() {
		if s, ok := r.(sexp.String); ok {
			fmt.Fprintf(&b, "\nasked because %s", string(s))
		}
	}
	fmt.Fprintf(&b, "\nuntil %s", q.Text("EXPIRES"))
	return b.String()
}

// A plan is the steps of a proposal and how far each is.
type plan struct {
	entries []sdk.PlanEntry
	args    []sexp.Plist
}

func newPlan(steps []sexp.Plist) plan {
	var p plan
	for _, s := range steps {
		name := s.Text("TOOL")
		if name == "" {
			name = strings.ToLower(string(s.Word("TARGET")))
		}
		p.entries = append(p.entries, sdk.PlanEntry{Content: title(name, s.Sub("ARGS")), Priority: sdk.PlanEntryPriorityMedium, Status: sdk.PlanEntryStatusPending})
		p.args = append(p.args, s.Sub("ARGS"))
	}
	return p
}

// begin notes that what has these arguments is being carried out, and reports
// whether it is the next step.
func (p plan) begin(args sexp.Plist) bool {
	for i, e := range p.entries {
		if e.Status != sdk.PlanEntryStatusPending {
			continue
		}
		if p.args[i].Len() == 0 || !sexp.Equal(p.args[i].List(), args.List()) {
			return false
		}
		p.entries[i].Status = sdk.PlanEntryStatusInProgress
		return true
	}
	return false
}

// end notes that the step which was being carried out is done, and reports whether
// one was.
func (p plan) end() (changed bool) {
	for i, e := range p.entries {
		if e.Status == sdk.PlanEntryStatusInProgress {
			p.entries[i].Status, changed = sdk.PlanEntryStatusCompleted, true
		}
	}
	return changed
}

func (p plan) show() sdk.SessionUpdate { return sdk.UpdatePlan(p.entries...) }
