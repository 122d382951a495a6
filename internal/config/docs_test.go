package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"passepartout/internal/config"
)

// form says how the text of a setting is written.
func form(s config.Setting) string {
	switch s.Kind {
	case config.Number:
		return fmt.Sprintf("number from %d to %d", s.Min, s.Max)
	case config.Duration:
		return fmt.Sprintf("duration from %s to %s", short(s.Min), short(s.Max))
	case config.Choice:
		return "one of `" + strings.Join(s.Choices, "` `") + "`"
	case config.Choices:
		return "some of `" + strings.Join(s.Choices, "` `") + "`, with commas"
	case config.Paths:
		return "paths, with colons"
	case config.Words, config.Hosts:
		return s.Kind.String() + ", with commas"
	}
	return s.Kind.String()
}

// short is a duration as people write it.
func short(seconds int) string {
	d := time.Duration(seconds) * time.Second
	if days := int(d / (24 * time.Hour)); days > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d days", days)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func reference() string {
	var b strings.Builder
	group := ""
	for _, s := range config.Settings() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| setting | written as | default | what it is for |\n|---|---|---|---|\n", group)
		}
		def := "none"
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		doc := s.Doc
		if s.Example != "" && s.Example != s.Default {
			doc += " For example `" + s.Example + "`."
		}
		if s.Secret {
			doc += " Better kept in the vault."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, form(s), def, doc)
	}
	return b.String()
}

func TestTheReferenceListsEverySettingAsItIs(t *testing.T) {
	const begin, end = "<!-- generated: go test ./internal/config -update -->\n", "<!-- end of the generated part -->\n"
	file := filepath.Join("..", "..", "docs", "settings.md")
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its markers", file)
	}
	now := reference() + "\n"
	if old == now {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: go test ./internal/config -update", file)
	}
	if err := os.WriteFile(file, []byte(head+begin+now+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}
