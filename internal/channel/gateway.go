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
	Name    string // of the service, as it stands in origins: "telegram"
	MaxText int    // the longest message it takes, in UTF-16 units
	Dir     string // where the gateway's memory lies

	Submit    func(proto.Signal) error                            // hands a signal to the agent
	Interrupt func(session string) bool                           // stops what a session does
	Answer    func(token string, a flight.Answer) (string, error) // answers a question
	Plan      func(token string) (flight.Plan, bool)              // a plan as it stands now
	Open      func() []flight.Plan                                // all that wait for an answer
	Became    func(turn proto.ID) (b Became, token string)        // what a turn of an earlier life became
	Journal   func(sexp.Plist) error                              // records what happened
	Redact    func(string) string                                 // takes credentials out of what is kept
	Screen    func(string) string                                 // takes out what may not leave the machine
	Keep      func(ctx context.Context, f Kept) (string, error)   // puts a file into the inbox; nil: files are refused
	Approver  func(proto.Origin) bool                             // is to be shown questions others raised
	Tell      func(text string)                                   // shows the owner, on this machine, what was refused
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
	if o.Name == "" || o.Dir == "" || o.MaxText < minText {
		return fmt.Errorf("gateway %q: want a name, a directory and messages of at least %d characters", o.Name, minText)
	}
	if o.Submit == nil || o.Interrupt == nil || o.Answer == nil || o.Plan == nil || o.Open == nil || o.Became == nil || o.Journal == nil ||
		o.Redact == nil || o.Screen == nil || o.Approver == nil || o.Tell == nil || o.Now == nil || o.Log == nil {
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

// A Gateway connects one service with the agent. Its memory lasts as long as it
// runs; the service itself may be linked and unlinked meanwhile. It is safe for
// concurrent use.
type Gateway struct {
	o     Options
	store *store
	ready chan struct{} // closed when what an earlier life left was taken up
	using chan struct{} // holds one while a service is linked, and at the end

	inbox  chan struct{} // a token when a message waits
	outbox chan struct{} // a token when there is something to send or show
	heard  chan struct{} // a token when something was heard

	mu      sync.Mutex      // guards what follows
	channel Channel         // the service; nil while it is not linked
	queue   []proto.Message // heard and not recorded yet
	closed  bool            // nothing more is heard
	stuck   bool            // nothing can be recorded any more
	status  Status
}

// States of a gateway.
const (
	Unlinked   = "not linked"
	Connecting = "connecting" // nothing was heard of the service yet
	Connected  = "connected"
	Waiting    = "waiting" // something went wrong; it is tried again
)

// A Status says how a gateway is doing.
type Status struct {
	Name      string
	State     string
	Since     time.Time
	Problem   string    // why it is waiting
	Failure   string    // what last went wrong, also when it works again
	Failed    time.Time // when
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
		o: o, store: st, ready: make(chan struct{}), using: make(chan struct{}, 1),
		inbox: make(chan struct{}, 1), outbox: make(chan struct{}, 1), heard: make(chan struct{}, 1),
		status: Status{Name: o.Name, State: Unlinked, Since: o.Now()},
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

// Run keeps the gateway's memory until the context ends: what the agent says is
// recorded, whether or not the service is linked at that moment. What was not
// finished is on disk when it returns.
func (g *Gateway) Run(ctx context.Context) error {
	if err := g.takeUp(); err != nil {
		return errors.Join(err, g.store.close())
	}
	close(g.ready)
	g.hearing(ctx)
	g.using <- struct{}{} // a service that is linked writes to the memory
	defer func() { <-g.using }()
	return g.store.close()
}

// Serve links a service until the context ends, which must be no later than that
// of Run. One is linked at a time. Everything it started has ended when it returns.
func (g *Gateway) Serve(ctx context.Context, c Channel) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-g.ready:
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case g.using <- struct{}{}:
	}
	defer func() { <-g.using }()
	if err := g.adopt(c); err != nil {
		return err
	}
	g.use(c, Connecting)
	var wg sync.WaitGroup
	for _, part := range []func(context.Context){g.receive, g.work, g.send} {
		wg.Go(func() { part(ctx) })
	}
	wg.Wait()
	g.use(nil, Unlinked)
	return nil
}

// adopt takes note whose account is linked. Another one than before numbers its
// messages anew.
func (g *Gateway) adopt(c Channel) error {
	a, ok := c.(Accounted)
	if !ok || a.Account() == "" {
		return nil
	}
	return g.store.do(func(s *state) []sexp.Plist {
		if s.account == a.Account() {
			return nil
		}
		return []sexp.Plist{rec(recAccount, sexp.Keyword("ID"), a.Account())}
	})
}

func (g *Gateway) use(c Channel, state string) {
	g.mu.Lock()
	g.channel = c
	g.mu.Unlock()
	g.tell(state, nil)
}

// service is the service that is linked, nil for none. To the parts of Serve it
// is never nil.
func (g *Gateway) service() Channel {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.channel
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
		worked := false
		err := g.service().Receive(ctx, cursor, func() { g.tell(Connected, nil) }, func(in Incoming) error {
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
		g.tell(Waiting, err)
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
		g.status.Problem = line(g.o.Redact(err.Error()), 300)
		g.status.Failure, g.status.Failed = g.status.Problem, g.o.Now()
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
	c := g.service()
	if c == nil {
		return "", fmt.Errorf("%s is not linked", g.o.Name)
	}
	p, ok := c.(Prober)
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
