// Package channel carries messages between people elsewhere and the agent: over
// Telegram, over Signal, and over whatever else fits one small contract.
//
// The central types:
//
//   - [Channel] is the contract: receive, send, edit, ask. A new service is one
//     file that implements it and a row in [Services]; [Telegram] and [Signal] are
//     the two there are.
//   - [Gateway] is the common core over one channel: who is known, what has been
//     taken, what is still to be said, what is being asked. It makes signals of
//     messages and messages of replies, and decides nothing itself: gates and
//     approvals are those of every other client.
//   - [Notice] is something owners are told who did not ask.
//   - store.go is the gateway's memory: an append-only file, on disk before a
//     message is acknowledged to the service, and before a reply is sent.
//   - [Split] cuts long answers; [Clean] takes out what no text needs.
//
// Delivery, as people may rely on it: a message is taken once, however often the
// service hands it over and whenever the program dies. Its reply is shown once in
// full. Of all calls to a service only [Channel.Send] cannot be repeated without
// harm, so it carries no more than the beginning of a text; the text itself is
// put in its place by [Channel.Edit], which can. What a death at the wrong moment
// leaves behind is a beginning without an end, never a second answer.
//
// The rule a newcomer will break: who somebody is comes from the service's own
// number for them, never from a name, and what they may do from a pairing on this
// machine, never from the message.
package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// A Channel is one service, as the core needs it.
//
// Errors are transient unless they are a [*FinalError]; a [*WaitError] says how
// long to wait. No error may contain a credential.
type Channel interface {
	// Receive hands over what arrives, in order, from a cursor on, until the
	// context ends or something breaks. What take has accepted is on disk and
	// may be acknowledged to the service; after an error of take it may not. Up
	// is called whenever the service has shown that it listens to us.
	Receive(ctx context.Context, cursor string, up func(), take func(Incoming) error) error
	// Send puts a new message into a conversation and returns what it is called.
	Send(ctx context.Context, chat, text string) (ref string, err error)
	// Edit replaces the text of a message sent before, and takes away the means
	// to answer it. Doing it twice is the same as once.
	Edit(ctx context.Context, chat, ref, text string) error
	// Ask replaces the text of a message by a question and the means to answer
	// it. Doing it twice is the same as once.
	Ask(ctx context.Context, chat, ref string, q Question) error
}

// What a channel may be able to do besides.
type (
	// A Fetcher can get the files people send.
	Fetcher interface {
		Fetch(ctx context.Context, f File, w io.Writer) error
	}
	// A Toucher can answer the touch of a button.
	Toucher interface {
		Touched(ctx context.Context, touch, text string) error
	}
	// A Prober can say whether the service knows us, and as whom.
	Prober interface {
		Probe(ctx context.Context) (string, error)
	}
	// An Accounted channel can say whose account it speaks for. What a service
	// numbers, it numbers for one account.
	Accounted interface {
		Account() string
	}
	// A Reader can tell a sender that a message is safely kept.
	Reader interface {
		Read(ctx context.Context, in Incoming) error
	}
)

// A Kind is what an incoming thing is. The zero Kind is one nobody understood.
type Kind uint8

// The kinds.
const (
	Unknown Kind = iota
	Message      // somebody said something
	Edited       // somebody changed what they had said
	Touch        // somebody touched a button
)

func (k Kind) String() string {
	switch k {
	case Message:
		return "message"
	case Edited:
		return "edited"
	case Touch:
		return "touch"
	case Unknown:
	}
	return "unknown"
}

// An Incoming is one thing a service handed over. From is as the service
// authenticated it; all else is what the sender says.
type Incoming struct {
	ID        string // the same when it is handed over again
	Cursor    string // where to go on after this one
	Kind      Kind
	From      Sender
	Chat      string
	Group     bool // others read along
	Addressed bool // in a group: it is for us
	Forwarded bool // the words are somebody else's
	Text      string
	Files     []File
	Ref       string // of a touch: the message that has the button
	Touch     string // of a touch: what to answer it by
}

// A Sender is who sent something.
type Sender struct {
	ID   string // the service's own, which nobody can choose
	Name string // what they call themselves
}

// A File is a file somebody sent, still at the service.
type File struct {
	ID   string
	Name string
	Type string
	Size int64
}

// A Question asks a person about one action.
type Question struct {
	Token string
	Text  string
}

// The words with which a question is answered, on buttons and in text.
const (
	wordYes = "/approve"
	wordNo  = "/deny"
	// wordOpen asks what waits.
	wordOpen = "/approvals"
)

// A WaitError says that a service wants to be left alone for a while.
type WaitError struct {
	After time.Duration
	Err   error
}

func (e *WaitError) Error() string { return fmt.Sprintf("wait %v: %v", e.After, e.Err) }

// Unwrap returns the cause.
func (e *WaitError) Unwrap() error { return e.Err }

// A FinalError says that trying again is of no use.
type FinalError struct{ Err error }

func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FinalError) Unwrap() error { return e.Err }

// ErrGone means that a message which was to be edited is not there any more.
var ErrGone = errors.New("the message is gone")

func final(format string, args ...any) error { return &FinalError{fmt.Errorf(format, args...)} }
