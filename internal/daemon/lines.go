package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/secret"
	"passepartout/internal/sexp"
)

// Channels say which services there are and which of them are linked.
type Channels struct {
	Services []channel.Service       // nil: all there are
	Get      func(key string) string // a setting of theirs, "" for none; nil: nothing is linked
	// Reread looks at the settings again, for what was linked or unlinked since;
	// nil: that takes a restart. The secrets are those that must not leave.
	Reread func() (get func(key string) string, secrets map[string]string, err error)
	// Keep runs a program a service needs beside it, and again when it ends, until
	// the context does; nil: such programs are run by somebody else.
	Keep  func(ctx context.Context, name string, argv []string)
	Delay time.Duration // after the first failure of a call; 0 is the usual
}

// services are those there are. They are part of the vocabulary whether they are
// linked or not, so that a policy may always name them.
func (c Channels) services() []channel.Service {
	if c.Services == nil {
		return channel.Services()
	}
	return c.Services
}

// remote are the names of the channels that end on somebody's telephone.
func (d *Daemon) remote() []string {
	var names []string
	for _, s := range d.s.Channels.services() {
		names = append(names, s.Name)
	}
	return names
}

// A line is one service as this daemon has it. Its gateway is there from the first
// link on, so that what was taken is answered and what was said is kept.
type line struct {
	service channel.Service
	gateway *channel.Gateway
	linked  atomic.Bool // for who must not wait for lines.mu

	// While it is linked; guarded by lines.mu.
	channel channel.Channel
	beside  []string           // a program that runs with it, nil for none
	cut     context.CancelFunc // nil before the daemon runs
	gone    chan struct{}      // closed when nothing of the connection is left
}

// lines are the services that are linked or were. It is safe for concurrent use.
type lines struct {
	all     atomic.Pointer[[]*line] // replaced, never changed in place
	begun   chan struct{}           // closed when the gateways run: clients may come before
	mu      sync.Mutex              // keeps changes apart, and guards what follows
	ctx     context.Context         //nolint:containedctx // of the daemon's run: links outlive the request that makes them
	running sync.WaitGroup
}

func (ls *lines) list() []*line {
	if p := ls.all.Load(); p != nil {
		return *p
	}
	return nil
}

func (ls *lines) find(name string) *line {
	for _, l := range ls.list() {
		if l.service.Name == name {
			return l
		}
	}
	return nil
}

// any reports whether somebody may write to us.
func (ls *lines) any() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.ContainsFunc(ls.list(), func(l *line) bool { return l.channel != nil })
}

// status says how a service is doing.
func (ls *lines) status(name string) channel.Status {
	l := ls.find(name)
	if l == nil {
		return channel.Status{Name: name, State: channel.Unlinked}
	}
	ls.mu.Lock()
	linked := l.channel != nil
	ls.mu.Unlock()
	st := l.gateway.Status()
	if linked && st.State == channel.Unlinked {
		st.State = channel.Connecting // its goroutine has not begun yet
	}
	return st
}

// openGateways makes a gateway for every service that is linked. Nothing is
// received before they are run.
func (d *Daemon) openGateways() error {
	get := d.s.Channels.Get
	if get == nil {
		return nil
	}
	d.lines.mu.Lock()
	defer d.lines.mu.Unlock()
	for _, s := range d.s.Channels.services() {
		if !s.Linked(get) {
			continue
		}
		c, beside, err := makeChannel(s, get)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		l, err := d.openLink(s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		l.channel, l.beside = c, beside
		l.linked.Store(true)
	}
	return nil
}

// makeChannel makes a channel, and says which program is to run beside it.
func makeChannel(s channel.Service, get func(string) string) (c channel.Channel, beside []string, err error) {
	if s.Beside != nil {
		if beside, err = s.Beside(get); err != nil {
			return nil, nil, err
		}
	}
	c, err = s.Open(get)
	return c, beside, err
}

// openLink makes the gateway of a service and adds it to the list.
func (d *Daemon) openLink(s channel.Service) (*line, error) {
	g, err := channel.New(channel.Options{
		Name: s.Name, MaxText: s.MaxText, Dir: filepath.Join(d.s.StateDir, "channels"), Delay: d.s.Channels.Delay,
		Submit:    func(sig proto.Signal) error { return d.agent.Submit(sig, nil) },
		Interrupt: func(session string) bool { return d.agent.Interrupt(session) },
		Answer:    func(token string, a flight.Answer) (string, error) { return d.agent.Answer(token, a) },
		Plan:      d.planNow,
		Open:      d.plansOpen,
		Became:    d.became,
		Journal:   func(p sexp.Plist) error { _, err := d.journal.AppendLazy(p); return err },
		Redact:    d.watch.Redact,
		Screen:    d.screen,
		Keep:      d.keepFile,
		Approver:  d.askedEverything,
		Tell:      d.alert,
		Now:       d.now, Log: d.log, Step: d.s.Step,
	})
	if err != nil {
		return nil, err
	}
	l := &line{service: s, gateway: g}
	all := append(slices.Clone(d.lines.list()), l)
	d.lines.all.Store(&all)
	return l, nil
}

// runGateways starts the gateways and returns what waits for their end.
func (d *Daemon) runGateways(ctx context.Context) (wait func()) {
	d.lines.mu.Lock()
	defer d.lines.mu.Unlock()
	d.lines.ctx = ctx
	defer close(d.lines.begun)
	for _, l := range d.lines.list() {
		d.runGateway(l)
		d.connect(l, l.channel, l.beside)
	}
	return func() {
		d.lines.mu.Lock() // nothing is linked any more
		d.lines.ctx = nil
		d.lines.mu.Unlock()
		d.lines.running.Wait()
	}
}

// runGateway keeps the memory of a gateway; lines.mu is held.
func (d *Daemon) runGateway(l *line) {
	ctx := d.lines.ctx
	d.lines.running.Go(func() {
		if err := l.gateway.Run(ctx); err != nil {
			d.log.Error("a channel ended", "channel", l.service.Name, "error", err)
		}
	})
}

// connect lets a gateway serve a channel; lines.mu is held.
func (d *Daemon) connect(l *line, c channel.Channel, beside []string) {
	ctx, cut := context.WithCancel(d.lines.ctx)
	gone := make(chan struct{})
	l.channel, l.beside, l.cut, l.gone = c, beside, cut, gone
	l.linked.Store(true)
	d.log.Info("channel linked", "channel", l.service.Name)
	d.lines.running.Go(func() {
		defer close(gone)
		var parts sync.WaitGroup
		defer parts.Wait()
		if beside != nil && d.s.Channels.Keep != nil {
			parts.Go(func() { d.s.Channels.Keep(ctx, l.service.Name, beside) })
		}
		if err := l.gateway.Serve(ctx, c); err != nil && ctx.Err() == nil {
			d.log.Error("a channel cannot be served", "channel", l.service.Name, "error", err)
		}
	})
}

// disconnect ends a connection and waits until nothing is left of it; lines.mu is
// held.
func (d *Daemon) disconnect(l *line) {
	if l.channel == nil {
		return
	}
	l.linked.Store(false)
	if l.cut != nil {
		l.cut()
		<-l.gone
	}
	l.channel, l.beside, l.cut, l.gone = nil, nil, nil, nil
	d.log.Info("channel unlinked", "channel", l.service.Name)
}

// relink makes a service be linked as the settings say now. What changes whom we
// listen to is on disk before it does.
func (d *Daemon) relink(name string, by proto.Origin) (linked bool, err error) {
	if d.s.Channels.Reread == nil {
		return false, errors.New("this daemon reads its settings once: start it anew")
	}
	i := slices.IndexFunc(d.s.Channels.services(), func(s channel.Service) bool { return s.Name == name })
	if i < 0 {
		return false, d.noChannel(name)
	}
	service := d.s.Channels.services()[i]
	<-d.lines.begun
	d.lines.mu.Lock()
	defer d.lines.mu.Unlock()
	if d.lines.ctx == nil || d.lines.ctx.Err() != nil {
		return false, errors.New("the daemon is shutting down")
	}
	get, secrets, err := d.s.Channels.Reread()
	if err != nil {
		return false, fmt.Errorf("the settings cannot be read again: %w", err)
	}
	d.watch.learn(secrets)
	var c channel.Channel
	var beside []string
	event := sexp.Keyword("UNLINKED")
	if service.Linked(get) {
		event = "LINKED"
		if c, beside, err = makeChannel(service, get); err != nil {
			return false, err
		}
	}
	if err := d.noteGateway(event, name, by, service.Title); err != nil {
		return false, err
	}
	l := d.lines.find(name)
	if l != nil {
		d.disconnect(l)
	}
	if c == nil {
		return false, nil
	}
	if l == nil {
		if l, err = d.openLink(service); err != nil {
			return false, err
		}
		d.runGateway(l)
	}
	d.connect(l, c, beside)
	return true, nil
}

func (d *Daemon) noChannel(name string) error {
	return fmt.Errorf("there is no channel %q: want %s", name, strings.Join(d.remote(), " or "))
}

// planChanged shows a plan wherever plans are shown.
func (d *Daemon) planChanged(p flight.Plan) {
	d.board.Show(p)
	for _, l := range d.lines.list() {
		l.gateway.Changed(p)
	}
}

// plansOpen are the plans that wait for an answer.
func (d *Daemon) plansOpen() []flight.Plan {
	open, err := d.plans.Pending()
	if err != nil {
		d.log.Error("plans cannot be listed", "error", err)
	}
	return open
}

// alert shows something to the owner in every client that listens, whatever
// conversation it is in.
func (d *Daemon) alert(text string) {
	d.hub.tell(noticeMessage(text))
}

// noticeMessage is a note that belongs to no conversation.
func noticeMessage(text string) proto.Message {
	return proto.Message{Kind: proto.Log, Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("NOTICE"), sexp.Keyword("TEXT"), text)}
}

// A watch knows the credentials that must not leave. What is linked while the
// daemon runs is watched for from then on, and what is unlinked still is. It is
// safe for concurrent use.
type watch struct {
	scanner atomic.Pointer[secret.Scanner]
	mu      sync.Mutex // guards known
	known   map[string]string
}

func newWatch(secrets map[string]string) *watch {
	w := &watch{known: map[string]string{}}
	w.learn(secrets)
	return w
}

func (w *watch) learn(secrets map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, value := range secrets {
		if old, known := w.known[name]; known && old != value {
			w.known[name+" before "+fmt.Sprint(len(w.known))] = old
		}
		w.known[name] = value
	}
	w.scanner.Store(secret.Default().WithValues(maps.Clone(w.known)))
}

// Redact takes credentials out of a text.
func (w *watch) Redact(text string) string { return w.scanner.Load().Redact(text) }
