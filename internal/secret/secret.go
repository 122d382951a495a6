// Package secret finds credentials in text: in messages, commands, file contents, URLs, logs and prompts.
//
// A [Scanner] is immutable and safe to share. [Default] knows the world's credentials: vendors' token formats (formats.go), things with a
// structure such as PEM blocks, JSON web tokens and URLs with passwords (shapes.go), and assignments of anything random to anything
// called a key, token or password (naming.go says what a name claims, assign.go finds the value, judge.go decides).
// [Scanner.WithValues] returns one that also knows this user's own secrets, in the spellings in which they leak. [Scanner.Scan] reports
// spans; [Scanner.Redact] removes them.
//
// How it stays fast: one pass of an automaton (automaton.go) finds the few places where a rule could apply, and each rule looks only at
// its own neighbourhood, within fixed bounds. There is no regular expression and no rule that reads the whole text. What is hidden by
// an encoding (base64, hexadecimal, percent, backslash escapes, entities, gzip) is decoded within fixed limits and scanned again
// (decode.go). What was cut into pieces by line ends, quotes or blanks is put together again (squeeze.go).
//
// The rule a newcomer will break: a rule must say no to placeholders, code and hashes as firmly as it says yes to secrets (value.go).
// A scanner that cries wolf is switched off.
package secret

import (
	"cmp"
	"slices"
	"strings"
)

// Class is the kind of evidence a match rests on.
type Class uint8

// The classes. None is the zero value and never reported.
const (
	None       Class = iota
	Known            // a value the user told us to protect
	PrivateKey       // key material in PEM, PGP, DER, JWK or a wallet's format
	Token            // a vendor's format
	URL              // a password inside an address
	Password         // assigned to something called a password
	Generic          // random text assigned to something called a key, token or secret
)

var classNames = [...]string{"none", "known", "private-key", "token", "url", "password", "generic"}

// String returns the class in lower case.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "none"
}

// Match is one credential found. Start and End are byte offsets of what must not be shown; for an encoded credential they span the
// encoded text.
type Match struct {
	Rule       string
	Class      Class
	Start, End int
}

// Limits on the work done for one text. They bound size, never time, so that a scan is a pure function of the text.
const (
	maxDepth   = 3       // encodings inside encodings
	maxDecoded = 4 << 20 // bytes produced by decoding in all, beyond four times the text
	maxIdent   = 128     // bytes of an identifier around a keyword
	maxValue   = 4096    // bytes of an assigned value
	maxJudged  = 64      // bytes of an unquoted value that are looked at to judge it
	maxParts   = 256     // parts from which pieces of a token are joined
	maxPieces  = 8       // neighbouring parts joined at once
)

// Scanner finds credentials. Make one with Default; the zero value finds nothing.
type Scanner struct {
	triggers *automaton[trigger]
	known    *automaton[knownValue]
	bare     *automaton[knownValue] // known values without the signs in them, see squeeze.go
}

// Default returns the scanner that knows formats, shapes and keywords, and no values.
func Default() *Scanner { return &Scanner{triggers: defaultTriggers()} }

// Scan returns the credentials in text, in order of position and not overlapping.
func (s *Scanner) Scan(text string) []Match {
	r := run{scanner: s, budget: maxDecoded + 4*len(text)}
	r.view(&view{text: text}, 0)
	return merge(r.found)
}

// Has reports whether text holds a credential.
func (s *Scanner) Has(text string) bool { return len(s.Scan(text)) > 0 }

// Joined is the key under which ScanAll returns what shows only when parts are joined.
const Joined = -1

// ScanAll scans each part, then all parts joined by a space, where an option meets its value, then neighbouring parts joined by nothing,
// where a token was cut into pieces. It returns the matches of each part under its index, and under Joined what no part shows by
// itself, with offsets into the joined text.
func (s *Scanner) ScanAll(parts []string) map[int][]Match {
	found := make(map[int][]Match)
	rules := make(map[string]bool)
	for i, p := range parts {
		for _, m := range s.Scan(p) {
			rules[m.Rule] = true
			found[i] = append(found[i], m)
		}
	}
	join := func(text string, keep func(Match) bool) {
		for _, m := range s.Scan(text) {
			if keep(m) && !rules[m.Rule] {
				rules[m.Rule] = true
				found[Joined] = append(found[Joined], m)
			}
		}
	}
	if len(parts) < 2 {
		return found
	}
	join(strings.Join(parts, " "), func(Match) bool { return true })
	// Without a separator, words run together into assignments nobody wrote: trust only what has a form of its own.
	formed := func(m Match) bool { return m.Class == Known || m.Class == PrivateKey || m.Class == Token }
	for i := range min(len(parts)-1, maxParts) {
		if text := strings.Join(parts[i:min(len(parts), i+maxPieces)], ""); len(text) <= maxValue {
			join(text, formed)
		}
	}
	join(strings.Join(parts, ""), formed)
	return found
}

// Redact replaces every credential by a note of its rule and rough length. The result scans clean, and redacting it again changes nothing.
func (s *Scanner) Redact(text string) string {
	for range 4 {
		found := s.Scan(text)
		if len(found) == 0 {
			return text
		}
		var b strings.Builder
		last := 0
		for _, m := range found {
			b.WriteString(text[last:m.Start])
			b.WriteString(note(m.Rule, m.End-m.Start))
			last = m.End
		}
		b.WriteString(text[last:])
		text = b.String()
	}
	for _, last := range [...]string{text, "[redacted:text]"} {
		if len(s.Scan(last)) == 0 {
			return last
		}
	}
	return ""
}

// note says what stood here without saying how long it was exactly.
func note(rule string, n int) string {
	size := "short"
	switch {
	case n >= 256:
		size = "huge"
	case n >= 64:
		size = "long"
	case n >= 20:
		size = "medium"
	}
	return "[redacted:" + rule + ":" + size + "]"
}

// merge sorts matches and joins those that overlap, keeping the name of the strongest evidence.
func merge(ms []Match) []Match {
	if len(ms) < 2 {
		return ms
	}
	slices.SortFunc(ms, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Class, b.Class), cmp.Compare(b.End, a.End), strings.Compare(a.Rule, b.Rule))
	})
	out := ms[:1]
	for _, m := range ms[1:] {
		last := &out[len(out)-1]
		if m.Start >= last.End {
			out = append(out, m)
			continue
		}
		if m.Class < last.Class {
			last.Class, last.Rule = m.Class, m.Rule
		}
		last.End = max(last.End, m.End)
	}
	return out
}

// trigger is what the automaton found: a word, and the rule that is to look around it.
type trigger struct {
	word  string
	exact bool // the case of the word matters
	rule  func(c *cursor) (Match, bool)
}

// cursor is a rule's view of one hit.
type cursor struct {
	text       string
	start, end int // the trigger word
	skip       int // assignments before this offset have been judged
	seen       int // web keys before this offset have been judged
	pem        int // PEM headers before this offset have been judged
}

// run is one scan with its decoding budget.
type run struct {
	scanner *Scanner
	found   []Match
	budget  int
}

// view scans one text, then whatever can be decoded from it.
func (r *run) view(v *view, depth int) {
	if r.scanner.triggers != nil {
		c := cursor{text: v.text}
		r.scanner.triggers.find(v.text, func(t *trigger, end int) {
			c.start, c.end = end-len(t.word), end
			if t.exact && v.text[c.start:end] != t.word {
				return
			}
			if m, ok := t.rule(&c); ok {
				r.add(v, m)
			}
		})
	}
	if r.scanner.known != nil {
		r.scanner.known.find(v.text, func(k *knownValue, end int) {
			start := end - len(k.spelling)
			if k.matches(v.text[start:end]) {
				r.add(v, Match{Rule: "vault-" + k.name, Class: Known, Start: start, End: end})
			}
		})
	}
	if depth == 0 {
		r.squeezed(v.text)
		r.seams(v.text)
	}
	r.decode(v, depth)
}

func (r *run) add(v *view, m Match) {
	m.Start, m.End = v.origin(m.Start, m.End)
	r.found = append(r.found, m)
}
