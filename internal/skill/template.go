package skill

import (
	"embed"
	"fmt"
	"strings"

	"passepartout/internal/sexp"
)

//go:embed templates/*.org
var templates embed.FS

// TemplateKinds are the kinds of skill a new one can begin as.
func TemplateKinds() []string { return []string{"gate", "prompt", "tool"} }

// Template is the text of a small working skill of that kind, under a name.
func Template(name, kind string) (string, error) {
	raw, err := templates.ReadFile("templates/" + kind + ".org")
	if err != nil {
		hint := ""
		if near, ok := sexp.Nearest(kind, TemplateKinds()); ok {
			hint = ", did you mean " + near + "?"
		}
		return "", fmt.Errorf("no kind of skill %q, want one of %s%s", kind, strings.Join(TemplateKinds(), ", "), hint)
	}
	return strings.ReplaceAll(string(raw), "NAME", name), nil
}
