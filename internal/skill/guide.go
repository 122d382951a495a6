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

// toolNames cuts a list at commas and spaces, except those in parentheses.
func toolNames(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',', ' ', '[', ']':
			return depth <= 0
		}
		return false
	})
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
			g.Tools = toolNames(value)
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

// elsewhere are names that other agents' tools have, which guides use.
var elsewhere = map[string]string{
	"bash": "shell", "read": "read-file", "write": "write-file", "edit": "replace-in-file", "multiedit": "replace-in-file",
	"grep": "search-files", "glob": "find-files", "ls": "list-directory", "webfetch": "web-fetch",
}

// Allowed are the tools the guide names, of those there are, each with what it says
// in parentheses about its command. Nil means that it does not say; a guide that
// names none that is here allows none.
func (g Guide) Allowed(there []string) []string {
	if len(g.Tools) == 0 {
		return nil
	}
	out := []string{}
	for _, t := range g.Tools {
		name, rest, narrowed := strings.Cut(t, "(") // as in Bash(git:*)
		name = strings.ToLower(name)
		if to, ok := elsewhere[name]; ok {
			name = to
		}
		if !slices.Contains(there, name) {
			continue
		}
		if narrowed {
			name += "(" + rest
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Told is the guide as a model reads it, with the tools it is held to while it
// follows it.
func (g Guide) Told(there []string) string {
	use := g.Allowed(there)
	switch {
	case use == nil:
		return g.Text
	case len(use) == 0:
		return g.Text + "\n\n[Until your answer use no tools: none of those this guide names is here.]"
	}
	return g.Text + "\n\n[Until your answer use only these tools: " + strings.Join(use, ", ") + ". What they may do is decided as always.]"
}
