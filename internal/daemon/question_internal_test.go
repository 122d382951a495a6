package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheProtocolReferenceNamesEveryQuestion(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if !strings.Contains(string(doc), "`:"+strings.ToUpper(q.name)) {
			t.Errorf("docs/protocol.md does not say what :%s asks", strings.ToUpper(q.name))
		}
	}
}
