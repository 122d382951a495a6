package agent

import (
	"bytes"
	"strings"
	"sync"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Sizes of what is shown of a command's output while it runs.
const (
	maxLine   = 4 << 10   // bytes that wait for the end of their line
	maxPieces = 256 << 10 // bytes shown in all; the outcome has head and tail
)

// An output shows what a running command prints: whole lines, because a
// credential cut in two is not recognised. Pieces come from the command's
// goroutine and may come after the turn has gone on.
type output struct {
	show   func(text string)
	redact func(string) string

	mu     sync.Mutex // guards what follows
	rest   []byte     // of a line that has not ended
	shown  int
	closed bool
}

// showOutput begins showing what the action prints.
func (t *turn) showOutput(a proto.Action) *output {
	tool := a.Spec().Tool
	return &output{redact: t.a.Redact, show: func(text string) {
		t.chunk(sexp.P(sexp.Keyword("TOOL"), tool, sexp.Keyword("OUTPUT"), text))
	}}
}

// piece takes what was printed. It does not keep the slice.
func (o *output) piece(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.rest = append(o.rest, b...)
	end := bytes.LastIndexByte(o.rest, '\n') + 1
	if end == 0 && len(o.rest) >= maxLine {
		end = len(o.rest)
	}
	o.flushLocked(end)
}

func (o *output) flushLocked(end int) {
	if end == 0 {
		return
	}
	text := o.redact(strings.ToValidUTF8(string(o.rest[:end]), "\uFFFD"))
	o.rest = append(o.rest[:0], o.rest[end:]...)
	if o.shown += len(text); o.shown > maxPieces {
		text, o.closed = "[more is not shown while it runs]\n", true
	}
	o.show(text)
}

// close shows what is left.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.flushLocked(len(o.rest))
	}
	o.closed = true
}
