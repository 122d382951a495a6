package tui

import (
	"strings"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// candidates are the completions of the input: of a command's name, or of its
// argument. from is where the word that is completed begins.
func (m *Model) candidates(line string) (words []string, from int) {
	if !strings.HasPrefix(line, "/") || strings.Contains(line, "\n") {
		return nil, 0
	}
	name, rest, spaced := strings.Cut(line[1:], " ")
	if !spaced {
		return prefixed(commandNames(m), strings.ToLower(name)), 1
	}
	for _, c := range commands() {
		if c.name == name && c.words != nil && !strings.Contains(rest, " ") {
			return prefixed(c.words(m), rest), len(name) + 2
		}
	}
	return nil, 0
}

func prefixed(words []string, prefix string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	return out
}

// complete extends the input as far as all candidates agree. What the client does
// not know itself, files and nodes and sessions, it asks the daemon for.
func (m *Model) complete() {
	line := m.in.Value()
	if words, from := m.candidates(line); len(words) > 0 {
		m.extend(line, words, from)
		return
	}
	kind, last := "FILE", line[wordAt(line):]
	if name, _, ok := slash(line); ok {
		kind = ""
		for _, c := range commands() {
			if c.name == name {
				kind = c.takes
			}
		}
	}
	if last == "" || kind == "" {
		return
	}
	m.send(proto.Message{Kind: proto.Request, Payload: sexp.P(word("ACTION"), word("COMPLETE"), word("KIND"), word(kind), word("TEXT"), last)},
		request{what: "complete", line: line})
}

// wordAt is where the last word of a line begins.
func wordAt(line string) int { return strings.LastIndexAny(line, " \n\t") + 1 }

// completed takes how a word could go on, unless the input has changed meanwhile.
func (m *Model) completed(line string, p sexp.Plist) {
	words := texts(p, "WORDS")
	if m.in.Value() != line || m.mode != chatting {
		return
	}
	if len(words) == 0 {
		m.hint = "Nothing begins like that"
		return
	}
	m.extend(line, words, wordAt(line))
}

// extend puts what all words agree on into the input, from a place on.
func (m *Model) extend(line string, words []string, from int) {
	common := words[0]
	for _, w := range words[1:] {
		for !strings.HasPrefix(w, common) {
			common = common[:len(common)-1]
		}
	}
	if len(words) == 1 {
		common += " "
	} else {
		m.hint = strings.Join(words, "  ")
	}
	if len(common) < len(line)-from { // they differ in letter case only
		return
	}
	m.in.SetValue(line[:from] + common)
	m.in.MoveToEnd()
}
