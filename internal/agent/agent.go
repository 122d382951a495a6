// Package agent runs the loop: perceive, think, judge, act, until a reply ends the
// turn.
//
// The central types:
//
//   - [Agent] owns the sessions. [Agent.Submit] hands it a signal; signals of one
//     session are taken in order, sessions run side by side.
//   - A turn (turn.go) is one signal's way through the phases. It ends with exactly
//     one terminal reply, whatever happens in between.
//   - An [Inquiry] is what the agent wants to be told; it decides nothing.
//   - An action that needs a person suspends its turn (approve.go); the answer
//     resumes it at the same step.
//
// What may be assumed: every ruling is in the journal before its effect, deltas
// and statuses are told to clients as they happen, and the engine behind
// [Options.Engine] only ever proposes.
//
// The rule a newcomer will break: a session's conversation belongs to the
// goroutine that drains the session. Other goroutines talk to it through jobs.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"passepartout/internal/act"
	"passepartout/internal/flight"
	"passepartout/internal/gate"
	"passepartout/internal/llm"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Limits of the loop.
const (
	maxAttempts = 3    // proposals per step before the turn gives up
	maxQueue    = 64   // signals one session may have waiting
	maxTalk     = 40   // messages of a conversation that are kept
	maxSessions = 4096 // conversations kept; the one idle longest goes first
	maxRunning  = 64   // sessions that run at the same time
)

// A Journal keeps the record. Append returns once the entry is on disk; Note may
// return earlier and is for entries no effect depends on.
type Journal interface {
	Append(sexp.Plist) error
	Note(sexp.Plist) error
}

// A Handler claims signals of one sensor before any engine sees them. Its text is
// the reply.
type Handler func(context.Context, proto.Signal) (text string, err error)

// Options are the parts an agent is put together from. All but Handlers, Words,
// Prompt, Consensus, Plans, Past, Learn and Step are required.
type Options struct {
	Chain       func() *gate.Chain // the chain in force
	Table       *act.Table
	Engine      llm.Backend
	Journal     Journal
	World       gate.World
	Redact      func(string) string                   // removes credentials from what is kept
	Emit        func(session string, m proto.Message) // tells the session's clients; must not block
	Now         func() time.Time
	NewID       func(prefix string) proto.ID
	Name        string // what the assistant is called
	User        string // how it addresses the person, "" for not at all
	Fallback    string // where a reply goes that came from no channel; "" is cli
	ApprovalTTL time.Duration
	Plans       *flight.Log // what waits for a person; nil: forgotten when the program ends
	// Past is what the journal holds of a session that this process has not used yet,
	// oldest entry first, as much as is [Enough]; again when it was used and forgotten.
	// Damage is [ErrDamagedPast]. Nil: every session begins empty.
	Past func(ctx context.Context, session string, again bool) ([]sexp.Plist, error)
	// Learn puts a rule for an approved plan on trial, because the person wants one,
	// and says what came of it; nil: no rules are learnt.
	Learn     func(flight.Plan) string
	Step      func(name string)  // told of each step of an approval; tests end the process there
	Prompt    Prompt             // what a model is told; may be empty
	Consensus int                // further models asked about far-reaching actions
	Handlers  map[string]Handler // by sensor, lower case
	// Words are further control words, "/cost" for one; what they return is the
	// reply, and no engine hears them.
	Words map[string]func(args []string) string
	// SessionWords are Words that say something about the session they are said in.
	SessionWords map[string]func(session string, args []string) string
}

func (o Options) check() error {
	if o.Chain == nil || o.Chain() == nil {
		return errors.New("agent without gates: nothing may run")
	}
	if o.Table == nil || o.Engine == nil || o.Journal == nil || o.Redact == nil || o.Emit == nil || o.Now == nil || o.NewID == nil {
		return errors.New("agent is missing a part: want table, engine, journal, redaction, emit, clock and ids")
	}
	if o.ApprovalTTL <= 0 {
		return fmt.Errorf("approvals that expire after %v: want a positive time", o.ApprovalTTL)
	}
	return nil
}

// An Agent is safe for concurrent use.
type Agent struct {
	Options // constant after construction
	ledger  gate.Ledger
	ctx     context.Context // ends with Close
	stop    context.CancelCauseFunc
	wg      sync.WaitGroup // one per draining session
	slots   chan struct{}  // bounds how many sessions run at once

	verbs     []proto.Verb // that are tools; they and their description stay the same
	described []llm.Tool

	mu       sync.Mutex // guards what follows, and each session's inquiry, queue, running and cancel
	sessions map[string]*session
	waiting  map[string]*suspended // by token
	used     uint64                // orders sessions by last use
	forgot   bool                  // a session that was used is no longer in memory
	closed   bool
}

// A session is one conversation. Talk, taint and said belong to the goroutine
// that drains it.
type session struct {
	name  string
	talk  []llm.Message
	turns []spoken // the person's messages in it, and older ones
	taint proto.Taint
	said  []string
	seen  []string // addresses in what tools returned
	logs  []string // what was decided and what came of it, one line each
	last  exchange // the last question that was answered well
	count llm.Counter

	remembered bool // the journal was asked what it was

	grants []grant  // what the person agreed to for this session
	notes  []string // what the person must still be told

	inquiry *Inquiry // what the agent waits to be told; nil: nothing
	queue   []job
	running bool
	cancel  context.CancelCauseFunc
	used    uint64

	tokens, limit int // of the last request; guarded by Agent.mu
}

type job func(context.Context, *session)

// Reasons a signal is not taken, or a turn ends early.
var (
	// ErrBusy means the session has too much waiting; try again later.
	ErrBusy = errors.New("the session has too many messages waiting")
	// ErrClosed means the agent is shutting down.
	ErrClosed = errors.New("the agent is shutting down")
	// ErrInterrupted is why a turn ended that a person stopped.
	ErrInterrupted = errors.New("interrupted")
)

func (o Options) fallback() string { return cmp.Or(o.Fallback, "cli") }

// New returns an agent. Close must be called.
func New(o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Plans == nil {
		log, err := flight.Open(flight.Options{Now: o.Now})
		if err != nil {
			return nil, err
		}
		o.Plans = log
	}
	ctx, stop := context.WithCancelCause(context.Background())
	verbs := o.Table.Tools()
	return &Agent{
		Options: o, ctx: ctx, stop: stop, slots: make(chan struct{}, maxRunning),
		verbs: verbs, described: describe(verbs),
		sessions: map[string]*session{}, waiting: map[string]*suspended{},
	}, nil
}

// Close stops all turns and waits for them; each still ends with its reply.
func (a *Agent) Close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop(ErrClosed)
	a.wg.Wait()
}

// Submit takes a signal. It never blocks. The reply goes out through Emit.
func (a *Agent) Submit(sig proto.Signal, replyTo sexp.Value) error {
	if sig.Session == "" || sig.ID == "" || sig.Kind == proto.KindInvalid {
		return errors.New("signal without session, id or kind")
	}
	return a.enqueue(sig.Session, func(ctx context.Context, s *session) {
		t := a.newTurn(s, sig, replyTo)
		t.guarded(func() {
			if err := a.remember(ctx, s); err != nil {
				t.finish(Failed, fmt.Sprintf("Nothing is done: %v.", err))
				return
			}
			t.run(ctx)
		})
	})
}

func (a *Agent) enqueue(name string, j job) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	s := a.sessionLocked(name)
	if len(s.queue) >= maxQueue {
		return fmt.Errorf("%w: %d", ErrBusy, len(s.queue))
	}
	s.queue = append(s.queue, j)
	if !s.running {
		s.running = true
		a.wg.Add(1)
		go a.drain(s)
	}
	return nil
}

func (a *Agent) sessionLocked(name string) *session {
	a.used++
	s, ok := a.sessions[name]
	if !ok {
		if len(a.sessions) >= maxSessions {
			a.forgetLocked()
		}
		s = &session{name: name}
		a.sessions[name] = s
	}
	s.used = a.used
	return s
}

// forgetLocked drops the conversation that has been idle longest.
func (a *Agent) forgetLocked() {
	var oldest *session
	for _, s := range a.sessions {
		if !s.running && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest != nil {
		delete(a.sessions, oldest.name)
		a.forgot = true
	}
}

// drain runs a session's jobs until none is left.
func (a *Agent) drain(s *session) {
	defer a.wg.Done()
	for {
		a.slots <- struct{}{}
		ctx, j := a.next(s)
		if j != nil {
			j(ctx, s)
		}
		<-a.slots
		if j == nil {
			return
		}
	}
}

func (a *Agent) next(s *session) (context.Context, job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.cancel != nil {
		s.cancel(nil)
		s.cancel = nil
	}
	if len(s.queue) == 0 {
		s.running = false
		return nil, nil
	}
	j := s.queue[0]
	s.queue = s.queue[1:]
	ctx, cancel := context.WithCancelCause(a.ctx)
	s.cancel = cancel
	return ctx, j
}

// Interrupt stops what one session is doing. Others do not notice. It reports
// whether there was anything to stop.
func (a *Agent) Interrupt(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.sessions[name]
	if !ok || s.cancel == nil {
		return false
	}
	s.cancel(ErrInterrupted)
	return true
}
