package gate

import (
	"bytes"
	"fmt"
	"strings"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A Permission is one row of the table of tools: what the user lets the agent
// propose at all. An allow here only means that this gate has no objection.
type Permission struct {
	Name     string // a tool's name, or "target.verb", or "*" for the rest
	Decision Decision
	Rule     string // where it is written, file:line
}

// permissionsGate (600) is the table of tools: allow, ask or deny, by default ask.
type permissionsGate struct{ table map[string]Permission }

func newPermissions(rows []Permission) permissionsGate {
	g := permissionsGate{map[string]Permission{}}
	for _, r := range rows {
		g.table[r.Name] = r
	}
	return g
}

func (permissionsGate) Name() string  { return "permissions" }
func (permissionsGate) Priority() int { return 600 }

func (g permissionsGate) Check(a proto.Action, _ Facts) Verdict {
	row, ok := g.lookup(a.Spec())
	if !ok {
		row = Permission{Decision: Ask, Rule: "default"}
	}
	if row.Decision == Allow {
		return Verdict{Decision: Allow, Code: "pass", Rule: row.Rule}
	}
	v := Verdict{Decision: row.Decision, Code: "permissions." + row.Decision.String(), Rule: row.Rule}
	switch {
	case !ok:
		v.Reason = fmt.Sprintf("no permission is written for %s, so a person must agree", a.Name())
	case row.Decision == Ask:
		v.Reason = fmt.Sprintf("the permissions say to ask before %s", a.Name())
	default:
		v.Reason = fmt.Sprintf("the permissions forbid %s", a.Name())
	}
	return v
}

// lookup prefers the full name to the tool's, and both to the catch-all.
func (g permissionsGate) lookup(v proto.Verb) (Permission, bool) {
	for _, name := range []string{v.String(), v.Tool, "*"} {
		if row, ok := g.table[name]; ok && name != "" {
			return row, true
		}
	}
	return Permission{}, false
}

// ParsePermissions reads the table out of an Org file: rows of two or more cells
// whose first two are a name and a level. Rows inside blocks do not count. Every
// name must be known to the vocabulary, so that a typing mistake cannot leave a
// tool at its default unnoticed.
func ParsePermissions(file string, src []byte, v *proto.Vocabulary) ([]Permission, error) {
	names := permissionNames(v)
	var rows []Permission
	seen := map[string]bool{}
	inBlock := 0 // the line it begins at
	for i, raw := range bytes.Split(src, []byte("\n")) {
		line := strings.TrimSpace(string(raw))
		switch low := strings.ToLower(line); {
		case strings.HasPrefix(low, "#+begin_"):
			inBlock = i + 1
		case strings.HasPrefix(low, "#+end_"):
			inBlock = 0
		}
		if inBlock > 0 || !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-") {
			continue
		}
		row, skip, err := permissionRow(line, names)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		if skip {
			continue
		}
		if seen[row.Name] {
			return nil, fmt.Errorf("%s:%d: %q is given twice", file, i+1, row.Name)
		}
		seen[row.Name] = true
		row.Rule = fmt.Sprintf("%s:%d", file, i+1)
		rows = append(rows, row)
	}
	if inBlock > 0 {
		return nil, fmt.Errorf("%s:%d: the block is not closed, so the rows behind it would not count", file, inBlock)
	}
	return rows, nil
}

func permissionNames(v *proto.Vocabulary) []string {
	names := []string{"*"}
	for _, verb := range v.Verbs() {
		names = append(names, verb.String())
		if verb.Tool != "" {
			names = append(names, verb.Tool)
		}
	}
	return names
}

func permissionRow(line string, names []string) (row Permission, skip bool, err error) {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	if len(cells) < 2 {
		return row, false, fmt.Errorf("row %q: want a tool and a level", line)
	}
	name := strings.ToLower(strings.Trim(strings.TrimSpace(cells[0]), "=~"))
	level := strings.ToLower(strings.Trim(strings.TrimSpace(cells[1]), "=~"))
	if name == "tool" && level == "level" {
		return row, true, nil
	}
	d, ok := ParseDecision(level)
	if !ok {
		return row, false, fmt.Errorf("level %q of %q: want allow, ask or deny", level, name)
	}
	for _, n := range names {
		if n == name {
			return Permission{Name: name, Decision: d}, false, nil
		}
	}
	if near, ok := sexp.Nearest(name, names); ok {
		return row, false, fmt.Errorf("unknown tool %q: did you mean %q?", name, near)
	}
	return row, false, fmt.Errorf("unknown tool %q", name)
}
