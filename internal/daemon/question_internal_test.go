package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// An answer is put together on a goroutine of its own, where a bug would end the daemon.
func TestAQuestionThatMeetsABugEndsNothing(t *testing.T) {
	d := &Daemon{log: slog.New(slog.DiscardHandler)}
	c := &conn{d: d, out: newQueue()}
	m := proto.Message{Kind: proto.Request, Meta: sexp.P(sexp.Keyword("ID"), 7)}
	d.reply(context.Background(), asking{conn: c, message: m}, question{name: "strange", answer: func(context.Context, *Daemon, asking) (sexp.Plist, error) {
		panic("nobody thought of that")
	}})
	frames, _ := c.out.take()
	if got := string(bytes.Join(frames, nil)); !strings.Contains(got, ":IN-REPLY-TO 7") || !strings.Contains(got, ":STATUS :FAILED") || !strings.Contains(got, "nobody thought of that") {
		t.Errorf("it is answered with %q", got)
	}
}

func TestTheProtocolReferenceNamesEveryQuestion(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", "protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if !strings.Contains(string(doc), "`:"+strings.ToUpper(q.name)) {
			t.Errorf("docs/protocol.md does not say what :%s asks", strings.ToUpper(q.name))
		}
	}
}
