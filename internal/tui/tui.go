// Package tui is the terminal client: a conversation with the daemon in which
// every action shows how the gates ruled on it and every question can be answered
// in place.
//
// It knows the wire and nothing else of ours. There is one Bubble Tea model,
// [Model]; its parts are plain structs with methods:
//
//   - transcript: the blocks said so far. Only what is on the screen is laid out,
//     and a block is laid out again only when its text, the width or the theme
//     has changed.
//   - markup: Markdown and Org as people and models write them, line by line, so
//     that text which is still arriving costs only its last line.
//   - link: one connection with its reader and its writer; wire.go says what each
//     frame means here.
//   - sheet: a list that lies over the transcript: agenda, memex, history,
//     sessions; rows.go makes them of the daemon's answers.
//   - overview: what stands in the side bar, asked for after every turn.
//   - command: the table behind slash commands, completion and the palette;
//     looking.go has those that show something or say where it is.
//
// [Run] needs [Options.Dial], called again whenever the daemon went away.
//
// The rule a newcomer will break: text from outside must go through clean, or
// reveal where a person decides on it, before it enters a block. Nothing further
// down looks for control characters again.
package tui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"passepartout/internal/proto"
)

// A Conn is a connection to the daemon after the handshake. Send and Receive are
// called from one goroutine each; Close ends both.
type Conn interface {
	Send(proto.Message) error
	Receive() (proto.Message, error)
	Close() error
}

// Options are what the caller decides. Only Dial is required.
type Options struct {
	// Dial joins the daemon. It is called at the start and after each loss.
	Dial func(context.Context) (Conn, error)

	// Starting is how far the start of the daemon is that Dial waits for: what it
	// does, and how many of how many it has done. It must not wait; nil is never
	// asked.
	Starting func() (what string, have, want int)

	Session   string // the conversation; "" is main
	Assistant string // the name over answers; "" is Passepartout
	Theme     string // auto, dark, light, contrast or mono; "" is auto
	ASCII     bool   // draw and show nothing beyond ASCII
	Mouse     bool   // take the wheel and clicks from the terminal
	Links     bool   // tell the terminal where links lead (OSC 8)

	History string // file of what was typed; "" keeps none
	Draft   string // file for input that was not sent when the client ended; "" keeps none

	// Editor makes the command that lets a person edit a file; nil if there is
	// none. TempDir is where that file is made.
	Editor  func(file string) tea.ExecCommand
	TempDir string

	Now     func() time.Time // the clock; nil is time.Now
	Input   io.Reader        // nil is the terminal
	Output  io.Writer        // nil is the terminal
	Environ []string         // nil is the process's own
}

// Run shows the client until the person leaves, the context ends or the terminal
// is gone. What was typed and not sent is kept for the next time.
func Run(ctx context.Context, o Options) error {
	if o.Dial == nil {
		return errors.New("tui: want a way to reach the daemon, found none")
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := New(o)
	m.ctx, m.dialing = ctx, &sync.WaitGroup{}
	m.note("Ask in your own words: `what is due this week?`, `remind me to call Ana by friday`, `run ls`.\nEvery action shows how the gates ruled on it; Ctrl+G shows each gate. /help lists the rest.")
	if err := m.restore(); err != nil {
		m.note("What was typed before could not be read: " + err.Error())
	}
	opts := []tea.ProgramOption{tea.WithContext(ctx)}
	if o.Input != nil {
		opts = append(opts, tea.WithInput(o.Input))
	}
	if o.Output != nil {
		opts = append(opts, tea.WithOutput(o.Output))
	}
	if o.Environ != nil {
		opts = append(opts, tea.WithEnvironment(o.Environ))
	}
	_, err := tea.NewProgram(m, opts...).Run()
	stop()
	m.dialing.Wait()
	if m.link != nil {
		m.link.close()
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		err = nil // the terminal or the caller is gone; that is a way to leave
	}
	if derr := writeDraft(o.Draft, m.unsent()); derr != nil {
		// The screen is given back by now: what cannot be kept can still be read.
		err = errors.Join(err, fmt.Errorf("keeping unsent input: %w; it was:\n%s", derr, m.unsent()))
	}
	return err
}

// nonce tells this client's requests from those of others in the same session:
// the daemon repeats a request's id to everybody who listens.
func nonce() string { return rand.Text()[:8] }
