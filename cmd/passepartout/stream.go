package main

import (
	"fmt"
	"io"
	"strings"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// A printer shows an answer: while it grows if live, and else when it has ended.
// Whatever was shown on the way, what stands on out from the last take-back on is
// the answer, to the byte.
type printer struct {
	out  io.Writer
	talk io.Writer // what is not the answer
	live bool
	// shown is what out already has of the answer. The daemon has judged it; it
	// can still turn out not to be the answer.
	shown string
}

// printer is the one for the streams and flags of this run.
func (a *app) printer() *printer {
	return &printer{out: a.out, talk: a.errw, live: !a.json && (a.stream || isTerminal(a.out))}
}

// watch takes a frame that came before the terminal response.
func (p *printer) watch(m proto.Message) {
	if m.Kind != proto.StreamChunk || !p.live {
		return
	}
	if reset, ok := m.Payload.Get("RESET"); ok && !sexp.IsNil(reset) {
		p.takeBack()
	}
	if out := m.Payload.Text("OUTPUT"); out != "" { // of a running command: not the answer
		fmt.Fprint(p.talk, printable(out))
		return
	}
	text := printable(m.Payload.Text("TEXT"))
	p.shown += text
	io.WriteString(p.out, text) //nolint:errcheck // the end of the answer reports it
}

// takeBack says that what was shown is not the answer. A line cannot be unprinted,
// also because it may have been piped on.
func (p *printer) takeBack() {
	if p.shown == "" {
		return
	}
	p.shown = ""
	fmt.Fprintln(p.out)
	fmt.Fprintln(p.talk, "  · taken back: that was not the answer")
}

// end shows the rest of the answer.
func (p *printer) end(text string) error {
	text = printable(text)
	if !strings.HasPrefix(text, p.shown) {
		p.takeBack()
	}
	_, err := fmt.Fprintln(p.out, text[len(p.shown):])
	p.shown = ""
	return err
}
