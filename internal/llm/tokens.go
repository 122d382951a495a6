package llm

import (
	"hash/maphash"
	"strings"
	"unicode/utf8"
)

// Tokens estimates how many tokens a text has, without any model's vocabulary:
// one for each word of up to six letters and one for each six more, one for three
// digits, one for each sign, one for each two letters of other alphabets and for
// each ideograph. On English prose that is close to the tokenizers in use; on code
// and other languages it errs upwards, which is the safe side of a limit.
func Tokens(text string) int {
	n, run, kind := 0, 0, byte(0)
	for i := 0; i < len(text); {
		c := text[i]
		k, width := letters[c], 1
		if c >= utf8.RuneSelf {
			var r rune
			r, width = utf8.DecodeRuneInString(text[i:])
			if k = 'x'; r >= 0x2E80 {
				k = '.'
			}
		}
		i += width
		if k == kind {
			run++
			continue
		}
		n += cost(kind, run)
		run, kind = 1, k
	}
	return n + cost(kind, run)
}

// cost is what a run of one kind of sign counts for.
func cost(kind byte, run int) int {
	switch kind {
	case 'a':
		return 1 + (run-1)/6
	case '0':
		return 1 + (run-1)/3
	case 'x':
		return (run + 1) / 2
	case '.':
		return run
	}
	return 0 // spaces come with the word after them
}

// letters sorts the signs of ASCII: letters, digits, spaces and the rest.
var letters = func() (k [256]byte) {
	for c := range k {
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			k[c] = 'a'
		case c >= '0' && c <= '9':
			k[c] = '0'
		case c == ' ':
			k[c] = ' '
		default:
			k[c] = '.'
		}
	}
	return k
}()

// perMessage is what the form of a message costs beside its text.
const perMessage = 4

// Estimate is about how many tokens the request has.
func (r Request) Estimate() int { return r.estimate(Tokens) }

func (r Request) estimate(count func(string) int) int {
	n := count(r.System) + count(r.Tail) + perMessage
	for _, t := range r.Tools {
		n += t.estimate(count)
	}
	for _, m := range r.Messages {
		n += m.estimate(count)
	}
	return n
}

// Weighed is the tool with its size worked out, for one that is offered with every
// request and stays the same.
func (t Tool) Weighed() Tool {
	t.tokens = 0
	t.tokens = t.estimate(Tokens)
	return t
}

func (t Tool) estimate(count func(string) int) int {
	if t.tokens > 0 {
		return t.tokens
	}
	n := perMessage + count(t.Name) + count(t.Doc) + count(explanation.Doc)
	for _, p := range t.Params {
		n += perMessage + count(p.Name) + count(p.Doc)
	}
	return n
}

func (m Message) estimate(count func(string) int) int {
	n := perMessage + count(m.Text)
	if m.Call != nil {
		n += count(m.Call.Name) + count(arguments(m.Call))
	}
	return n
}

// A Counter counts tokens and remembers the counts of longer texts: a conversation
// is counted with every step, and most of it has not changed. It remembers texts by
// their hash, because a counter lives as long as its conversation and most prompts are
// never seen again. The zero Counter is ready; it is for one goroutine.
type Counter struct {
	known map[uint64]int
}

// Limits of what a counter remembers.
const (
	worthKnowing = 64
	maxKnown     = 512
)

var counterSeed = maphash.MakeSeed()

// Tokens is [Tokens].
func (c *Counter) Tokens(text string) int {
	if len(text) < worthKnowing {
		return Tokens(text)
	}
	key := maphash.String(counterSeed, text)
	n, ok := c.known[key]
	if ok {
		return n
	}
	n = Tokens(text)
	if c.known == nil || len(c.known) >= maxKnown {
		c.known = map[uint64]int{}
	}
	c.known[key] = n
	return n
}

// Request is [Request.Estimate].
func (c *Counter) Request(r Request) int { return r.estimate(c.Tokens) }

// Message is about how many tokens a message has.
func (c *Counter) Message(m Message) int { return m.estimate(c.Tokens) }

// modelOf splits "provider/model"; models may have slashes in their names.
func modelOf(name string) (provider, model string) {
	provider, model, _ = strings.Cut(name, "/")
	return provider, model
}
