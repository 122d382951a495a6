package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"passepartout/internal/shell"
)

func FuzzAnalyzeNeverPanics(f *testing.F) {
	for _, tr := range tricks {
		f.Add(tr.cmd)
	}
	env := ann()
	f.Fuzz(func(t *testing.T, text string) {
		r := shell.Analyze(text, env)
		if r.Level == shell.Harmless && len(r.Findings) > 0 {
			t.Errorf("harmless with findings: %+v", r.Findings)
		}
		if r.Level != shell.Harmless && len(r.Codes()) == 0 {
			t.Errorf("%v without a reason", r.Level)
		}
		if len(text) > shell.MaxBytes && r.Level != shell.Forbidden {
			t.Errorf("%d bytes are %v", len(text), r.Level)
		}
	})
}

// FuzzBashSeesNoMoreThanWeDo runs texts in a real shell that has nothing to run: whenever bash reports a command it could not find, the analysis
// must have seen a command, or have refused.
func FuzzBashSeesNoMoreThanWeDo(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("bash is not here")
	}
	for _, tr := range tricks {
		f.Add(tr.cmd)
	}
	env := ann()
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || strings.ContainsRune(text, 0) {
			return
		}
		if !bashAccepts(t, bash, text) {
			return
		}
		r := shell.Analyze(text, env)
		if r.Level == shell.Harmless && r.Commands == 0 && strings.Trim(text, " \t\n") != "" && !onlyAssignments(text) {
			t.Errorf("%q: bash accepts it, and no command in it was judged", text)
		}
	})
}

// onlyAssignments reports texts that hold no simple command: assignments, comments, tests and arithmetic.
func onlyAssignments(text string) bool {
	return strings.ContainsAny(text, "=#([<>{") || strings.HasPrefix(strings.TrimSpace(text), "!") || strings.Contains(text, "time")
}
