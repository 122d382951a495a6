package main

import (
	"os"
	"os/signal"
	"sync"

	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// converse is exchange for what a person says: the first Ctrl-C stops the turn,
// whose answer then says so; a second one ends this program.
func (c *client) converse(m proto.Message, watch func(proto.Message)) (proto.Message, error) {
	id := c.id()
	m.Meta = m.Meta.With("ID", id)
	if err := c.Send(m); err != nil {
		return proto.Message{}, err
	}
	pressed, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(pressed, os.Interrupt)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-pressed:
			signal.Stop(pressed)
			// If it cannot be sent, the daemon is gone and no answer will come either.
			_ = c.Send(proto.Message{
				Kind: proto.Event, Meta: sexp.P(sexp.Keyword("SESSION-ID"), m.Meta.Text("SESSION-ID")),
				Payload: sexp.P(sexp.Keyword("SENSOR"), sexp.Keyword("INTERRUPT")),
			})
		case <-over:
		}
	})
	defer func() {
		signal.Stop(pressed)
		close(over)
		wg.Wait()
	}()
	return c.await(id, watch)
}
