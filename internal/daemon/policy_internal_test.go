package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// TestAPolicyThatIsBeingSavedIsNoEmptyPolicy: an editor that empties a file and then
// writes it must not lift the prohibitions in it for the moment between.
func TestAPolicyThatIsBeingSavedIsNoEmptyPolicy(t *testing.T) {
	verbs, err := proto.NewVocabulary(proto.Verb{Target: "shell", Name: "run", Tool: "shell", Effect: proto.Execute, Params: []proto.Param{{Name: "CMD", Type: proto.Text, Means: proto.Command, Required: true}}})
	if err != nil {
		t.Fatal(err)
	}
	memex := t.TempDir()
	path := filepath.Join(memex, filepath.FromSlash(rulesFile))
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rule = "* No pushing\n:PROPERTIES:\n:DECISION: deny\n:VERB: shell.run\n:WHEN-CMD: git push ...\n:END:\n- match :: =git push=\n"
	write("| shell | allow |\n")
	if err := os.Rename(path, filepath.Join(memex, filepath.FromSlash(permissionsFile))); err != nil {
		t.Fatal(err)
	}
	write(rule)
	waited := 0
	p := &policySource{memex: memex, vocabulary: verbs, log: slog.New(slog.DiscardHandler), record: func(sexp.Plist) error { return nil }}
	p.base.Home, p.base.Cwd = "/home/ada", "/home/ada"
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	before := p.now.Policy()
	write("")
	p.wait = func() { waited++; write(rule + "\n# saved\n") }
	if got := p.chain().Policy(); got != before || waited != 1 {
		t.Errorf("a rule that was being saved did not hold, or was not waited for: %d looks", waited)
	}
	write("")
	p.wait = func() { waited++ }
	if got := p.chain().Policy(); got == before || waited != 1+saveLooks {
		t.Errorf("a file that stays empty is an empty policy after %d looks, not %d", saveLooks, waited-1)
	}
}
