package skill

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryHostFunctionNeedsACapability lists all a jail can reach in Go, so that a
// new power is a change of this test. Some give none: a program may know what it is
// run for, look through its own lists faster, and require what there is anyway.
func TestEveryHostFunctionNeedsACapability(t *testing.T) {
	want := map[string]string{
		"passepartout-host:lookup-object":          "memory",
		"passepartout-host:objects-with-attribute": "memory",
		"passepartout-host:all-objects":            "memory",
		"passepartout-host:unix-time":              "clock",
		"cl:get-universal-time":                    "clock",
		"passepartout-host:new-id":                 "random",
		"passepartout-host:journal-entries":        "journal",
		"passepartout-host:may-signal":             "signals",
		"passepartout-host:judging-p":              "",
		"passepartout-host:otherwise-spelled":      "",
		"cl:require":                               "",
	}
	for _, b := range newJail(Options{}).host() {
		if got := strings.Join(capWords(b.Needs), " "); got != want[b.Name] || got == "" && !slices.Contains([]string{"passepartout-host:judging-p", "passepartout-host:otherwise-spelled", "cl:require"}, b.Name) {
			t.Errorf("%s needs %q, want %q", b.Name, got, want[b.Name])
		}
		delete(want, b.Name)
	}
	for name := range want {
		t.Errorf("%s is gone", name)
	}
}

func TestEveryNameForSkillsIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/skills.md")
	if err != nil {
		t.Fatal(err)
	}
	exports, _, _ := strings.Cut(string(prelude), "#:kernel-log")
	for _, m := range regexp.MustCompile(`#:([a-z-]+)`).FindAllStringSubmatch(exports, -1) {
		name := m[1]
		if rest, ok := strings.CutPrefix(name, "org-object-"); ok {
			name = "-" + rest
		}
		if !strings.Contains(string(doc), name) {
			t.Errorf("docs/skills.md does not mention %s", m[1])
		}
	}
}
