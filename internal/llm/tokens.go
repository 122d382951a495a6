package llm

import (
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
	end := func() {
		switch kind {
		case 'a':
			n += 1 + (run-1)/6
		case '0':
			n += 1 + (run-1)/3
		case 'x':
			n += (run + 1) / 2
		}
		run, kind = 0, 0
	}
	for i := 0; i < len(text); {
		c := text[i]
		width := 1
		var k byte
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			k = 'a'
		case c >= '0' && c <= '9':
			k = '0'
		case c == ' ':
			k = ' '
		case c < utf8.RuneSelf:
			k = '.'
		default:
			var r rune
			r, width = utf8.DecodeRuneInString(text[i:])
			if k = 'x'; r >= 0x2E80 {
				k = '.'
			}
		}
		if k != kind {
			end()
			kind = k
		}
		if k == '.' {
			n++
		}
		run++
		i += width
	}
	end()
	return n
}

// perMessage is what the form of a message costs beside its text.
const perMessage = 4

// Estimate is about how many tokens the request has.
func (r Request) Estimate() int {
	n := Tokens(r.System) + Tokens(r.Tail) + perMessage
	for _, t := range r.Tools {
		n += perMessage + Tokens(t.Name) + Tokens(t.Doc) + Tokens(explanation.Doc)
		for _, p := range t.Params {
			n += perMessage + Tokens(p.Name) + Tokens(p.Doc)
		}
	}
	for _, m := range r.Messages {
		n += m.Estimate()
	}
	return n
}

// Estimate is about how many tokens the message has.
func (m Message) Estimate() int {
	n := perMessage + Tokens(m.Text)
	if m.Call != nil {
		n += Tokens(m.Call.Name) + Tokens(arguments(m.Call))
	}
	return n
}

// modelOf splits "provider/model"; models may have slashes in their names.
func modelOf(name string) (provider, model string) {
	provider, model, _ = strings.Cut(name, "/")
	return provider, model
}
