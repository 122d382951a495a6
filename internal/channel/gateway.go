package channel

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// Became is what is known of a turn the program died in the middle of.
type Became uint8

// What a turn may have become. The zero value is the careful one: it may have
// done something, so it is not begun again.
const (
	Acted   Became = iota // something was done, or may have been
	Nothing               // nothing was done: it may be begun again
	Asked                 // it waits for a person
)

// Options are what a gateway is put together from. All but Keep, Delay and
// Step are required.
type Options struct {
	Name    string  // of the channel, as it stands in origins: "telegram"
	Channel Channel // the service
	MaxText int     // the longest message it takes, in UTF-16 units
	Dir     string  // where the gateway's memory lies

	Submit    func(proto.Signal) error                            // hands a signal to the agent
	Interrupt func(session string) bool                           // stops what a session does
	Answer    func(token string, a flight.Answer) (string, error) // answers a question
	Plan      func(token string) (flight.Plan, bool)              // a plan as it stands now
	Became    func(turn proto.ID) (b Became, token string)        // what a turn of an earlier life became
	Journal   func(sexp.Plist) error                              // records what happened
	Redact    func(string) string                                 // takes credentials out of what is kept
	Screen    func(string) string                                 // takes out what may not leave the machine
	Keep      func(ctx context.Context, f Kept) (string, error)   // puts a file into the inbox; nil: files are refused
	Approver  func(proto.Origin) bool                             // is to be shown questions others raised
	Now       func() time.Time
	Log       *slog.Logger
	Delay     time.Duration     // after the first failure of a call; 0 is a second
	Step      func(name string) // told of each step; tests end the process there
}

// A Kept file is one to be put into the inbox.
type Kept struct {
	ID    string // of the message and the file, safe as a file name
	Name  string // as the sender calls it, safe as a file name
	From  proto.Origin
	Sent  time.Time
	Bytes int64
	Read  func(w io.Writer) error // writes the contents
}

func (o Options) check() error {
	if o.Name == "" || o.Channel == nil || o.Dir == "" || o.MaxText < minText {
		return fmt.Errorf("gateway %q: want a name, a channel, a directory and messages of at least %d characters", o.Name, minText)
	}
	if o.Submit == nil || o.Interrupt == nil || o.Answer == nil || o.Plan == nil || o.Became == nil || o.Journal == nil ||
		o.Redact == nil || o.Screen == nil || o.Approver == nil || o.Now == nil || o.Log == nil {
		return fmt.Errorf("gateway %q is missing a part", o.Name)
	}
	return nil
}

// Limits of a gateway.
const (
	minText    = 256
	maxParts   = 10          // messages one answer may become
	maxInbox   = 200         // messages that may wait; more stay at the service
	maxBegun   = 8           // messages the agent may have at a time
	maxIn      = 64 << 10    // bytes of a message
	maxHeard   = 1 << 14     // replies that may wait to be recorded
	maxPause   = time.Hour   // the longest wait a service may ask for
	maxDelay   = time.Minute // between attempts
	firstDelay = time.Second // after the first failure
	fetching   = 10 * time.Minute
)

// A Gateway connects one channel with the agent. It is safe for concurrent use.
type Gateway struct {
	o     Options
	store *store

	inbox  chan struct{} // a token when a message waits
	outbox chan struct{} // a token when there is something to send or show
	heard  chan struct{} // a token when something was heard

	mu     sync.Mutex // guards what follows
	queue  []heard
	closed bool // nothing more is heard
	stuck  bool // nothing can be recorded any more
	status Status
}

// A Status says how a gateway is doing.
type Status struct {
	Name      string
	State     string // "off", "starting", "listening", "waiting"
	Problem   string // why it is waiting
	Since     time.Time
	Heard     time.Time // when something last came in
	Waiting   int       // messages taken and not answered
	Unsent    int       // messages not delivered yet
	Peers     []Peer
	Strangers []Stranger
	Pairing   time.Time // until when a code is good; zero for none
}

// New returns a gateway over what its directory remembers.
func New(o Options) (*Gateway, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Delay == 0 {
		o.Delay = firstDelay
	}
	st, err := openStore(o.Dir, o.Name, o.Now)
	if err != nil {
		return nil, err
	}
	return &Gateway{
		o: o, store: st, inbox: make(chan struct{}, 1), outbox: make(chan struct{}, 1), heard: make(chan struct{}, 1),
		status: Status{Name: o.Name, State: "starting", Since: o.Now()},
	}, nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Run serves until the context ends. Everything it started has ended when it
// returns; what was not finished is on disk.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := g.takeUp(); err != nil {
		return errors.Join(err, g.store.close())
	}
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){g.receive, g.work, g.hearing, g.send} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
	g.mu.Lock()
	g.closed = true
	g.status.State, g.status.Since = "off", g.o.Now()
	g.mu.Unlock()
	return g.store.close()
}

// Close lets go of the gateway's memory. A gateway that was run needs none.
func (g *Gateway) Close() error { return g.store.close() }

// receive keeps the service's messages coming, whatever breaks.
func (g *Gateway) receive(ctx context.Context) {
	delay := g.o.Delay
	for ctx.Err() == nil {
		var cursor string
		var heard time.Time
		g.store.see(func(s *state) { cursor, heard = s.cursor, s.heard })
		if g.o.Now().Sub(heard) > staleCursor {
			cursor = ""
		}
		started := g.o.Now()
		g.tell("listening", nil)
		worked := false
		err := g.o.Channel.Receive(ctx, cursor, func(in Incoming) error {
			err := g.take(ctx, in)
			worked = worked || err == nil
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("the service hung up")
		}
		if worked || g.o.Now().Sub(started) > 2*delay { // it was not broken all the time
			delay = g.o.Delay
		}
		wait := g.waitFor(err, delay)
		g.tell("waiting", err)
		g.o.Log.Warn("a channel broke", "channel", g.o.Name, "again in", wait, "error", err)
		pause(ctx, wait)
		delay = min(2*delay, maxDelay)
	}
}

// staleCursor is when a cursor is not to be trusted any more: after a week of
// silence Telegram counts on from anywhere. Nothing is lost by forgetting it,
// because everything before it was acknowledged.
const staleCursor = 6 * 24 * time.Hour

// waitFor is how long to wait after an error.
func (g *Gateway) waitFor(err error, delay time.Duration) time.Duration {
	if w := (*WaitError)(nil); errors.As(err, &w) {
		return min(max(w.After, g.o.Delay), maxPause)
	}
	return delay
}

func (g *Gateway) tell(state string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.status.Problem = ""
	if err != nil {
		g.status.Problem = err.Error()
	}
	if g.status.State != state {
		g.status.State, g.status.Since = state, g.o.Now()
	}
}

// Status says how the gateway is doing.
func (g *Gateway) Status() Status {
	g.mu.Lock()
	st := g.status
	g.mu.Unlock()
	g.store.see(func(s *state) {
		st.Waiting, st.Unsent = len(s.inbox), len(s.outbox)
		st.Peers, st.Strangers = sorted(s.peers), sorted(s.strangers)
		if s.code.Digest != "" && g.o.Now().Before(s.code.Expires) {
			st.Pairing = s.code.Expires
		}
	})
	slices.SortFunc(st.Strangers, byLast)
	return st
}

// Probe asks the service whether it knows us.
func (g *Gateway) Probe(ctx context.Context) (string, error) {
	p, ok := g.o.Channel.(Prober)
	if !ok {
		return "", fmt.Errorf("%s cannot be probed", g.o.Name)
	}
	return p.Probe(ctx)
}

// Greet says something to every owner who is paired, and returns to how many.
func (g *Gateway) Greet(text string) (int, error) {
	n := 0
	err := g.store.do(func(s *state) (out []sexp.Plist) {
		for _, p := range sorted(s.peers) {
			if p.Role == proto.RoleOwner {
				n++
				out = append(out, g.posts(p.Chat, text)...)
			}
		}
		return out
	})
	wake(g.outbox)
	return n, err
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (g *Gateway) step(name string) {
	if g.o.Step != nil {
		g.o.Step(name)
	}
}

// note records something in the journal that no effect depends on.
func (g *Gateway) note(event sexp.Keyword, in Incoming, pairs ...any) {
	p := sexp.P(append([]any{
		sexp.Keyword("KIND"), sexp.Keyword("CHANNEL"), sexp.Keyword("CHANNEL"), g.o.Name, sexp.Keyword("EVENT"), event,
		sexp.Keyword("AT"), g.o.Now().UTC().Format(time.RFC3339Nano), sexp.Keyword("MESSAGE"), in.ID,
		sexp.Keyword("WHAT"), in.Kind.String(), sexp.Keyword("FROM"), g.who(in.From.ID), sexp.Keyword("NAME"), g.o.Redact(line(in.From.Name, 80)),
	}, pairs...)...)
	if err := g.o.Journal(p); err != nil {
		g.o.Log.Error("the journal cannot be written", "channel", g.o.Name, "error", err)
	}
}

func (g *Gateway) who(id string) string { return g.o.Name + ":" + id }

var idText = base32.NewEncoding("abcdefghjkmnpqrstuvwxyz023456789").WithPadding(base32.NoPadding)

func randomID() string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // crypto/rand.Read never fails
	return idText.EncodeToString(b[:])
}
