package gate

import (
	"fmt"
	"slices"
	"strings"

	"passepartout/internal/shell"
)

// judgeShell is check 9 of the dispatcher: what running the command would do. It
// maps the report of package shell; the strictest of several commands counts.
func judgeShell(v *view) Verdict {
	worst := Pass()
	for _, r := range v.commands() {
		if one := shellVerdict(r); one.Decision < worst.Decision {
			worst = one
		}
	}
	return worst
}

func shellVerdict(r shell.Report) Verdict {
	var out Verdict
	switch r.Level {
	case shell.Harmless:
		return Pass()
	case shell.Question:
		out.Decision = Ask
	case shell.Forbidden:
	}
	codes, reasons := []string{}, []string{}
	for _, f := range r.Findings {
		if f.Level != r.Level {
			continue
		}
		if !slices.Contains(codes, f.Code) {
			codes = append(codes, f.Code)
		}
		if s := findingText(f); !slices.Contains(reasons, s) {
			reasons = append(reasons, s)
		}
	}
	if len(codes) == 0 {
		return Verdict{Code: "shell.silent", Reason: "the command was refused without a reason"}
	}
	const most = 4
	if len(reasons) > most {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more", len(reasons)-most))
	}
	out.Code, out.Also = codes[0], strings.Join(codes[1:], " ")
	out.Reason = strings.Join(reasons, "; ")
	bound := make([]string, len(r.Scripts))
	for i, s := range r.Scripts {
		bound[i] = s.Path + "=" + s.Digest
	}
	slices.Sort(bound)
	out.Bound = strings.Join(bound, " ")
	return out
}

func findingText(f shell.Finding) string {
	if f.Command == "" {
		return f.Reason
	}
	return f.Command + ": " + f.Reason
}
