package skill

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// A Guide is an Agent Skill: a folder with a SKILL.md. Its description is told to
// a model; its text is read only when the model asks for it.
type Guide struct {
	Name        string
	Description string
	File        string
	Text        string
	Tools       []string // the only ones it means to use; empty: it does not say
}

// maxDescription is how much of a guide is told without being asked for.
const maxDescription = 1024

// parseGuide reads a SKILL.md: front matter between lines of three hyphens, then
// text. Of the front matter only plain "key: value" lines are understood.
func parseGuide(folder, file string, raw []byte) (Guide, error) {
	g := Guide{Name: path.Base(folder), File: file}
	if len(raw) > maxSource {
		return g, fmt.Errorf("%s: %d bytes are too many, want at most %d", file, len(raw), maxSource)
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	head, body, ok2 := strings.Cut(rest, "\n---\n")
	if !ok || !ok2 {
		return g, fmt.Errorf("%s:1: want front matter between two lines of ---", file)
	}
	g.Text = strings.TrimSpace(body)
	for i, line := range strings.Split(head, "\n") {
		key, value, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "#") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch strings.TrimSpace(key) {
		case "name":
			if value != g.Name {
				return g, fmt.Errorf("%s:%d: want the name of the folder, %s, found %s", file, i+2, g.Name, value)
			}
		case "description":
			g.Description = value
		case "allowed-tools":
			g.Tools = strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' || r == '[' || r == ']' })
		}
	}
	if !namePattern.MatchString(g.Name) {
		return g, fmt.Errorf("%s: want a folder named with small letters, digits and hyphens", file)
	}
	if g.Description == "" || len(g.Description) > maxDescription {
		return g, fmt.Errorf("%s: want a description of 1 to %d bytes, found %d", file, maxDescription, len(g.Description))
	}
	return g, nil
}

// Told is the guide as a model reads it. Tools it names are those it means to use,
// of those there are: following it takes fewer, and permits none that the gates
// would not.
func (g Guide) Told(there []string) string {
	if len(g.Tools) == 0 {
		return g.Text
	}
	var use []string
	for _, t := range g.Tools {
		name, _, _ := strings.Cut(strings.ToLower(t), "(") // as in Bash(git:*)
		if slices.Contains(there, name) && !slices.Contains(use, name) {
			use = append(use, name)
		}
	}
	if len(use) == 0 {
		return g.Text + "\n\n[While you follow this guide, use no tools: none of those it names is here.]"
	}
	return g.Text + "\n\n[While you follow this guide, use only these tools: " + strings.Join(use, ", ") + ". What they may do is decided as always.]"
}
