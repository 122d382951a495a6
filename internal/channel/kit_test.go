package channel_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
	"passepartout/internal/flight"
	"passepartout/internal/proto"
	"passepartout/internal/sexp"
)

// People of the tests, by the numbers Telegram has for them.
const (
	owner    = int64(4711)
	guest    = int64(815)
	stranger = int64(666)
	group    = int64(-1009)
)

// A robot stands in for the agent: it does what a message says, once, and
// remembers across its lives what it has done, as the journal would.
//
//	do X    has an effect, then answers "did X"
//	say X   has none, and answers "said X"
//	ask X   asks for approval; a yes has the effect and answers "did X"
type robot struct {
	mu     sync.Mutex // guards what follows
	effect map[string]int
	acted  map[proto.ID]bool
	asked  map[proto.ID]string
	wants  map[string]string // by token, what is to be done
	heard  []proto.Signal
	notes  []sexp.Plist
	told   []string // what the owner is shown on their own machine
	files  map[string]string
	next   int
}

func newRobot() *robot {
	return &robot{
		effect: map[string]int{}, acted: map[proto.ID]bool{}, asked: map[proto.ID]string{}, wants: map[string]string{}, files: map[string]string{},
	}
}

func (r *robot) effects(what string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.effect[what]
}

func (r *robot) signals() []proto.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]proto.Signal(nil), r.heard...)
}

// refusals are why things were refused, as the journal has it.
func (r *robot) refusals() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.notes {
		if p.Word("EVENT") == "REFUSED" {
			out = append(out, p.Text("FROM")+": "+p.Text("WHY"))
		}
	}
	return out
}

// notices are what the owner is shown on their own machine.
func (r *robot) notices() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.told...)
}

// A world is what outlives a gateway: the service, the plans, the robot's memory.
type world struct {
	t        testing.TB
	telegram *channeltest.Telegram
	signal   *channeltest.Signal // instead

	signalOptions channel.SignalOptions

	plans    *flight.Log
	robot    *robot
	dir      string
	approver bool
	unlinked bool // a life begins without the service
	private  bool // the conversation has read private notes
	maxText  int
	screen   func(string) string
	wrong    atomic.Int64 // nanoseconds by which the clock on the wall is wrong
}

// now is what the clock on the wall shows.
func (w *world) now() time.Time { return time.Now().Round(0).Add(time.Duration(w.wrong.Load())) }

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, telegram: channeltest.NewTelegram(), robot: newRobot(), dir: t.TempDir(), maxText: channel.TelegramText}
	t.Cleanup(w.telegram.Close)
	plans, err := flight.Open(flight.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.plans = plans
	return w
}

// A life is one run of a gateway in a world.
type life struct {
	*channel.Gateway
	w     *world
	stop  context.CancelFunc
	ended chan error
	crash *crash

	loop func(turn proto.ID) // what "loop" leads to

	service channel.Channel
	link    func(channel.Channel) (unlink func())
}

// serve links a service and returns what unlinks it.
func (l *life) serve(ctx context.Context, c channel.Channel) func() {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, c) }()
	return func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			l.w.t.Errorf("serving ended with %v", err)
		}
	}
}

// A crash ends a life at a step: nothing it does afterwards reaches the world,
// and the next life finds what was on disk at that moment.
type crash struct {
	mu   sync.Mutex // guards what follows
	at   int        // number of the step, 0 for never
	n    int
	dead bool
	from string        // the directory of the life
	to   string        // where the disk is copied
	died chan struct{} // closed at the crash
}

func (c *crash) step(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n++; c.n != c.at || c.dead {
		return
	}
	c.dead = true
	raw, err := os.ReadFile(filepath.Join(c.from, "telegram.log"))
	if err == nil {
		err = os.WriteFile(filepath.Join(c.to, "telegram.log"), raw, 0o600)
	}
	if err != nil {
		panic(err)
	}
	close(c.died)
}

func (c *crash) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// A mortal channel does nothing for the dead.
type mortal struct {
	*channel.Telegram
	c *crash
}

var errDead = errors.New("dead")

func (m mortal) Send(ctx context.Context, chat, text string) (string, error) {
	if m.c.isDead() {
		return "", errDead
	}
	return m.Telegram.Send(ctx, chat, text)
}

func (m mortal) Edit(ctx context.Context, chat, ref, text string) error {
	if m.c.isDead() {
		return errDead
	}
	return m.Telegram.Edit(ctx, chat, ref, text)
}

func (m mortal) Ask(ctx context.Context, chat, ref string, q channel.Question) error {
	if m.c.isDead() {
		return errDead
	}
	return m.Telegram.Ask(ctx, chat, ref, q)
}

func (m mortal) Receive(ctx context.Context, cursor string, up func(), take func(channel.Incoming) error) error {
	if m.c.isDead() {
		return errDead
	}
	return m.Telegram.Receive(ctx, cursor, up, func(in channel.Incoming) error {
		if m.c.isDead() {
			return errDead
		}
		if err := take(in); err != nil {
			return err
		}
		if m.c.isDead() { // what is not in the copy must not be acknowledged
			return errDead
		}
		return nil
	})
}

// live starts a gateway that dies at a step, or never for 0.
func (w *world) live(crashAt int) *life {
	w.t.Helper()
	c := &crash{at: crashAt, from: w.dir, to: w.t.TempDir(), died: make(chan struct{})}
	l := &life{w: w, crash: c, ended: make(chan error, 1)}
	name, service := "signal", channel.Channel(nil)
	var err error
	if w.signal == nil {
		tg, terr := channel.NewTelegram(channel.TelegramOptions{Token: channeltest.Token, URL: w.telegram.URL, Poll: time.Second, Quick: 300 * time.Millisecond})
		name, service, err = "telegram", mortal{tg, c}, terr
	} else {
		service, err = channel.NewSignal(w.signalOptions)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	o := channel.Options{
		Name: name, MaxText: w.maxText, Dir: w.dir, Delay: time.Millisecond,
		Submit: l.submit, Answer: l.answer, Interrupt: func(string) bool { return true },
		Plan: w.plan, Became: w.became,
		Open: func() []flight.Plan { open, _ := w.plans.Pending(); return open },
		Tell: func(text string) {
			w.robot.mu.Lock()
			defer w.robot.mu.Unlock()
			w.robot.told = append(w.robot.told, text)
		},
		Journal: func(p sexp.Plist) error {
			w.robot.mu.Lock()
			defer w.robot.mu.Unlock()
			w.robot.notes = append(w.robot.notes, p)
			return nil
		},
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[secret]") },
		Screen: func(s string) string {
			if w.screen != nil {
				return w.screen(s)
			}
			return s
		},
		Approver: func(o proto.Origin) bool { return w.approver && o.Role == proto.RoleOwner },
		Keep:     w.keep, Now: w.now, Log: slog.New(slog.DiscardHandler), Step: c.step,
	}
	if l.Gateway, err = channel.New(o); err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.link = func(c channel.Channel) func() { return l.serve(ctx, c) }
	if l.service = service; w.unlinked {
		service = nil
	}
	go func() {
		var unlink func()
		if service != nil {
			unlink = l.link(service)
		}
		err := l.Run(ctx)
		if unlink != nil {
			unlink()
		}
		l.ended <- err
	}()
	w.t.Cleanup(l.close)
	return l
}

func (l *life) close() {
	if l.ended == nil {
		return
	}
	l.stop()
	if err := <-l.ended; err != nil {
		l.w.t.Errorf("the gateway ended with %v", err)
	}
	l.ended = nil
}

// bury ends a life that crashed and puts the copy of its disk in its place.
func (l *life) bury() {
	l.stop()
	<-l.ended
	l.ended = nil
	l.w.dir = l.crash.to
}

func (w *world) plan(token string) (flight.Plan, bool) {
	if _, err := w.plans.Pending(); err != nil {
		return flight.Plan{}, false
	}
	return w.plans.Get(token)
}

func (w *world) became(turn proto.ID) (channel.Became, string) {
	w.robot.mu.Lock()
	defer w.robot.mu.Unlock()
	if token := w.robot.asked[turn]; token != "" {
		return channel.Asked, token
	}
	if w.robot.acted[turn] {
		return channel.Acted, ""
	}
	return channel.Nothing, ""
}

func (w *world) keep(_ context.Context, k channel.Kept) (string, error) {
	var b strings.Builder
	if err := k.Read(&b); err != nil {
		return "", err
	}
	w.robot.mu.Lock()
	defer w.robot.mu.Unlock()
	w.robot.files[k.Name] = b.String()
	return "inbox/files/" + k.Name, nil
}

func (l *life) reply(turn proto.ID, status sexp.Keyword, text string) {
	if l.crash.isDead() {
		return
	}
	l.Hear(proto.Message{
		Kind: proto.Response, Meta: sexp.P(sexp.Keyword("TURN"), string(turn)),
		Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("MESSAGE"), sexp.Keyword("TEXT"), text, sexp.Keyword("STATUS"), status),
	})
}

func (l *life) submit(sig proto.Signal) error {
	if l.crash.isDead() {
		return errDead
	}
	r := l.w.robot
	r.mu.Lock()
	r.heard = append(r.heard, sig)
	word, what, _ := strings.Cut(sig.Text(), " ")
	switch word {
	case "do":
		r.effect[what]++
		r.acted[sig.ID] = true
	case "loop":
		r.mu.Unlock()
		l.loop(sig.ID)
		return nil
	case "ask":
		r.next++
		token := fmt.Sprintf("a-%d", r.next)
		r.asked[sig.ID], r.wants[token] = token, what
		r.mu.Unlock()
		l.ask(token, sig)
		return nil
	}
	r.mu.Unlock()
	text := map[string]string{"do": "did ", "say": "said "}[word] + what
	if text == what {
		text = "heard " + sig.Text()
	}
	go l.reply(sig.ID, "DONE", text)
	return nil
}

func (l *life) ask(token string, sig proto.Signal) {
	_, err := l.w.plans.Ask(flight.Plan{
		Token: token, Session: sig.Session, Requester: sig.Origin, Digest: "d",
		Turn: sexp.P(sexp.Keyword("TAINT"), sexp.P(sexp.Keyword("PRIVATE"), l.w.private)),
		Action: sexp.P(sexp.Keyword("TARGET"), sexp.Keyword("TOOL"), sexp.Keyword("VERB"), sexp.Keyword("CAPTURE"),
			sexp.Keyword("ARGS"), sexp.P(sexp.Keyword("TITLE"), l.w.robot.wants[token])),
	}, time.Hour)
	if err != nil {
		l.w.t.Error(err)
	}
	if l.crash.isDead() {
		return
	}
	l.Hear(proto.Message{
		Kind: proto.Event, Meta: sexp.P(sexp.Keyword("TURN"), string(sig.ID)),
		Payload: sexp.P(sexp.Keyword("ACTION"), sexp.Keyword("APPROVAL-REQUIRED"), sexp.Keyword("TOKEN"), token),
	})
	l.reply(sig.ID, "PENDING", "This needs your approval.")
}

// answer carries out what was approved, as the agent would: the plan knows before
// anybody is told.
func (l *life) answer(token string, a flight.Answer) (string, error) {
	if l.crash.isDead() {
		return "", errDead
	}
	if _, err := l.w.plans.Answer(token, a); err != nil {
		return "", err
	}
	if !a.Yes {
		return "Denied.", nil
	}
	r := l.w.robot
	r.mu.Lock()
	what := r.wants[token]
	r.effect[what]++
	var turn proto.ID
	for id, tok := range r.asked {
		if tok == token {
			turn = id
		}
	}
	r.mu.Unlock()
	if err := errors.Join(l.w.plans.Start(token, "r"), l.w.plans.End(token, flight.Done, "done")); err != nil {
		return "", err
	}
	l.Changed(flight.Plan{})
	l.reply(turn, "DONE", "did "+what)
	return "Approved.", nil
}

// pair pairs somebody, and waits until they are told.
func (w *world) pair(l *life, who int64, role proto.Role) {
	w.t.Helper()
	code, _, err := l.Pair(role)
	if err != nil {
		w.t.Fatal(err)
	}
	w.telegram.Say(who, code)
	w.eventually(func() bool { return w.count(who, "Paired as "+role.String()) == 1 }, "%d was never paired", who)
}

// count is how many messages of a conversation contain a text in full.
func (w *world) count(chat int64, text string) (n int) {
	for _, m := range w.telegram.Chat(chat) {
		if strings.Contains(m.Text, text) {
			n++
		}
	}
	return n
}

// eventually waits until something is so. It is no timed assertion: the limit
// only ends a test that would wait for ever.
func (w *world) eventually(so func() bool, format string, args ...any) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if so() {
			return
		}
	}
	w.t.Fatalf(format+"\n%s", append(args, w.picture())...)
}

// settled waits until all is answered and sent, in a life that goes on.
func (w *world) settled(l *life) {
	w.t.Helper()
	w.eventually(func() bool {
		st := l.Status()
		return st.Waiting == 0 && st.Unsent == 0 && w.telegram.Waiting() == 0
	}, "the gateway never comes to rest: %+v", l.Status())
}

// picture is what people see.
func (w *world) picture() string {
	var b strings.Builder
	for _, chat := range []int64{owner, guest, stranger, group} {
		for _, m := range w.telegram.Chat(chat) {
			fmt.Fprintf(&b, "%d: %q %q\n", chat, m.Text, m.Buttons)
		}
	}
	return b.String()
}

func private(id int64) map[string]any { return channeltest.Private(id) }

// buttons are all that can be touched in a conversation.
func (w *world) buttons(chat int64) (out []string) {
	for _, m := range w.telegram.Chat(chat) {
		out = append(out, m.Buttons...)
	}
	return out
}

// question is the first message with buttons.
func (w *world) question(chat int64) channeltest.Line {
	w.t.Helper()
	for _, m := range w.telegram.Chat(chat) {
		if len(m.Buttons) > 0 {
			return m
		}
	}
	w.t.Fatalf("nothing is asked\n%s", w.picture())
	return channeltest.Line{}
}

// answerOf is somebody's yes.
func answerOf(who int64) flight.Answer {
	return flight.Answer{Yes: true, By: proto.Origin{Role: proto.RoleOwner, Channel: "telegram", Who: fmt.Sprintf("telegram:%d", who)}}
}
