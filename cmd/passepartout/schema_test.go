package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documented finds a command and the JSON it is said to print.
var documented = regexp.MustCompile("(?s)\n`passepartout (--json [^`]*)`\n\n```json\n(.*?)\n```\n")

// mayBeAbsent are keys that are there only when there is something to say.
var mayBeAbsent = []string{"fix", "more", "note", "modified", "problem"}

func TestJSONIsAsDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	if err != nil {
		t.Fatal(err)
	}
	cases := documented.FindAllStringSubmatch(string(raw), -1)
	if len(cases) < 10 {
		t.Fatalf("docs/cli.md documents %d commands", len(cases))
	}
	h := bareHome(t, "PROVIDER_CASCADE=reflex", "LANG=C.UTF-8")
	h.file("memex/inbox.org", "* TODO Buy a ladder\n", 0o600)
	h.file("note.md", "# A note\n", 0o600)
	if out, code := h.call("sk-canary-22222222", "vault", "set", "OPENAI_API_KEY", "--guard", "file"); code != 0 {
		t.Fatal(out)
	}
	for _, c := range cases {
		out, code := h.callOut(splitWords(c[1])...)
		if code != 0 {
			t.Errorf("%s: exit %d", c[1], code)
			continue
		}
		var want, got any
		if err := json.Unmarshal([]byte(c[2]), &want); err != nil {
			t.Errorf("%s: the documented JSON: %v", c[1], err)
			continue
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Errorf("%s: printed %q: %v", c[1], out, err)
			continue
		}
		for _, d := range differences("", want, got) {
			t.Errorf("%s: %s", c[1], d)
		}
	}
}

// splitWords splits a command line whose only quotes are double ones.
func splitWords(s string) []string {
	var out []string
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 1 {
			out = append(out, part)
			continue
		}
		out = append(out, strings.Fields(part)...)
	}
	return out
}

// differences compares the shapes of two JSON values: keys and types.
func differences(at string, want, got any) (out []string) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, want an object", at, got)}
		}
		for key, v := range w {
			if _, there := g[key]; !there {
				out = append(out, fmt.Sprintf("%s.%s is documented and not printed", at, key))
				continue
			}
			out = append(out, differences(at+"."+key, v, g[key])...)
		}
		for key := range g {
			if _, there := w[key]; !there && !slices.Contains(mayBeAbsent, key) {
				out = append(out, fmt.Sprintf("%s.%s is printed and not documented", at, key))
			}
		}
	case []any:
		g, ok := got.([]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %T, want a list", at, got)}
		}
		if len(w) > 0 && len(g) == 0 {
			return []string{fmt.Sprintf("%s is empty, so its entries cannot be compared", at)}
		}
		for i := range g {
			if len(w) > 0 {
				out = append(out, differences(fmt.Sprintf("%s[%d]", at, i), w[0], g[i])...)
			}
		}
	default:
		if fmt.Sprintf("%T", want) != fmt.Sprintf("%T", got) {
			return []string{fmt.Sprintf("%s is %T, want %T", at, got, want)}
		}
	}
	return out
}
