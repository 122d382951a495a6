package channel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"passepartout/internal/pattern"
)

// SignalText is the longest message Signal shows as a message.
const SignalText = 2000

// Signal speaks to a signal-cli that runs as a daemon on this machine, in JSON-RPC
// over its socket. It has no buttons: questions are answered in words.
//
// signal-cli acknowledges a message to Signal's servers when it hands it over, so
// one that was handed over and not yet on disk when this program died is lost.
// That is why it must be run with --receive-mode=manual: then it only hands over
// while we listen. A sender sees that a message is safe when it is marked as read.
type Signal struct {
	o SignalOptions

	mu   sync.Mutex // guards what follows
	conn *rpcConn   // nil while there is none
}

// SignalOptions say where signal-cli listens and whom it speaks for.
type SignalOptions struct {
	Account string // the telephone number that is ours: +15550001
	Address string // a socket's path, or a loopback address and port
	Name    string // what we are called in groups
	// Silence is after how long without a message the subscription is renewed,
	// and Beat how often the connection is tried; 0 is an hour and a minute.
	Silence, Beat time.Duration
	Quick         time.Duration // how long a call may take; 0 is 30 seconds
}

func signalService() Service {
	return Service{
		Name: "signal", Title: "Signal", MaxText: SignalText, Local: true,
		Keys:   []Key{{Name: "SIGNAL_ACCOUNT", Asks: "number of the agent's own account"}, {Name: "SIGNAL_CLI", Asks: "address of signal-cli"}},
		Hint:   "is it running? signal-cli -a NUMBER daemon --tcp ADDRESS --receive-mode=manual",
		Beside: signalProgram,
		Open: func(get func(string) string) (Channel, error) {
			return NewSignal(SignalOptions{Account: get("SIGNAL_ACCOUNT"), Address: get("SIGNAL_CLI"), Name: get("MEMEX_ASSISTANT")})
		},
	}
}

// signalProgram is signal-cli as it is run where the settings say so. Account and
// address are of forms that cannot be taken for options.
func signalProgram(get func(string) string) ([]string, error) {
	program := get("SIGNAL_CLI_PROGRAM")
	if program == "" {
		return nil, nil
	}
	account := get("SIGNAL_ACCOUNT")
	if !signalNumber.MatchString(account) {
		return nil, fmt.Errorf("account %q: want a telephone number such as +15550001", account)
	}
	network, address, err := signalAddress(get("SIGNAL_CLI"))
	if err != nil {
		return nil, err
	}
	listen := "--tcp"
	if network == "unix" {
		listen = "--socket"
	}
	return []string{program, "-a", account, "daemon", listen, address, "--receive-mode=manual", "--no-receive-stdout"}, nil
}

var (
	_ Channel = (*Signal)(nil)
	_ Fetcher = (*Signal)(nil)
	_ Prober  = (*Signal)(nil)
	_ Reader  = (*Signal)(nil)

	_ Accounted = (*Signal)(nil)
)

// Names in Signal. Whatever is given to signal-cli has one of these forms, so
// nothing can be taken for an option.
var (
	signalNumber = pattern.New(`^\+[1-9][0-9]{4,18}$`)
	signalUUID   = pattern.New(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	signalGroup  = pattern.New(`^[A-Za-z0-9+/]{20,100}={0,2}$`)
	signalFile   = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// NewSignal returns the channel of one account.
func NewSignal(o SignalOptions) (*Signal, error) {
	if !signalNumber.MatchString(o.Account) {
		return nil, fmt.Errorf("account %q: want a telephone number such as +15550001", o.Account)
	}
	if _, _, err := signalAddress(o.Address); err != nil {
		return nil, err
	}
	for d, usual := range map[*time.Duration]time.Duration{&o.Silence: time.Hour, &o.Beat: time.Minute, &o.Quick: 30 * time.Second} {
		if *d == 0 {
			*d = usual
		}
	}
	return &Signal{o: o}, nil
}

// signalAddress is the network and address signal-cli listens on. It has no
// password, so it must be on this machine.
func signalAddress(a string) (network, address string, err error) {
	if filepath.IsAbs(a) {
		return "unix", a, nil
	}
	at, err := netip.ParseAddrPort(a)
	if err != nil || !at.Addr().IsLoopback() {
		return "", "", fmt.Errorf("signal-cli's address %q: want the path of its socket, or a loopback address and port", a)
	}
	return "tcp", at.String(), nil
}

// Account implements [Accounted].
func (s *Signal) Account() string { return s.o.Account }

// Receive implements [Channel].
func (s *Signal) Receive(ctx context.Context, _ string, up func(), take func(Incoming) error) error {
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.conn = c
	s.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(ctx, c, up)
	}()
	err = s.read(ctx, c, take)
	stop()
	c.close(errors.New("the connection was given up"))
	<-watched
	<-c.ended
	s.mu.Lock()
	s.conn = nil
	s.mu.Unlock()
	return err
}

func (s *Signal) dial(ctx context.Context) (*rpcConn, error) {
	network, address, err := signalAddress(s.o.Address)
	if err != nil {
		return nil, &FinalError{err}
	}
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("signal-cli: %w", err)
	}
	return newRPC(nc, s.o.Quick), nil
}

// read takes what signal-cli hands over until the connection ends.
func (s *Signal) read(ctx context.Context, c *rpcConn, take func(Incoming) error) error {
	for {
		params, err := c.notification(ctx)
		if err != nil {
			return fmt.Errorf("signal-cli: %w", err)
		}
		in, ok := s.incoming(params)
		if !ok {
			continue
		}
		if err := take(in); err != nil {
			return err
		}
	}
}

// watch subscribes, and makes sure that what we listen to is alive: the
// connection by calling it, and signal-cli's receiver, which can end without a
// word, by subscribing anew when nothing came for long.
func (s *Signal) watch(ctx context.Context, c *rpcConn, up func()) {
	subscription, err := s.subscribe(ctx, c)
	if err != nil {
		c.close(fmt.Errorf("subscribing: %w", err))
		return
	}
	up()
	beat := time.NewTicker(s.o.Beat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		if err := c.call(ctx, "version", nil, nil); err != nil {
			c.close(fmt.Errorf("it does not answer: %w", err))
			return
		}
		if c.silence() < s.o.Silence {
			continue
		}
		if subscription != nil {
			if err := c.call(ctx, "unsubscribeReceive", map[string]any{"subscription": *subscription}, nil); err != nil {
				c.close(fmt.Errorf("unsubscribing: %w", err))
				return
			}
		}
		if subscription, err = s.subscribe(ctx, c); err != nil {
			c.close(fmt.Errorf("subscribing again: %w", err))
			return
		}
		c.stir()
	}
}

// subscribe asks for messages. A signal-cli that receives by itself knows no
// subscriptions, and hands over anyway.
func (s *Signal) subscribe(ctx context.Context, c *rpcConn) (*int64, error) {
	var id int64
	err := c.call(ctx, "subscribeReceive", map[string]any{"account": s.o.Account}, &id)
	if e := (*rpcError)(nil); errors.As(err, &e) && e.Code == rpcNoMethod {
		return nil, nil
	}
	return &id, err
}

// What we need of signal-cli's objects.
type (
	signalReceive struct {
		Result   *signalReceive  `json:"result"` // of a subscription
		Account  string          `json:"account"`
		Envelope *signalEnvelope `json:"envelope"`
	}
	signalEnvelope struct {
		Source       string         `json:"source"`
		SourceNumber string         `json:"sourceNumber"`
		SourceUUID   string         `json:"sourceUuid"`
		SourceName   string         `json:"sourceName"`
		Timestamp    int64          `json:"timestamp"`
		Data         *signalMessage `json:"dataMessage"`
		Edit         *struct {
			Target int64          `json:"targetSentTimestamp"`
			Data   *signalMessage `json:"dataMessage"`
		} `json:"editMessage"`
	}
	signalMessage struct {
		Timestamp int64  `json:"timestamp"`
		Message   string `json:"message"`
		Group     *struct {
			ID string `json:"groupId"`
		} `json:"groupInfo"`
		Mentions []struct {
			Number string `json:"number"`
		} `json:"mentions"`
		Quote *struct {
			AuthorNumber string `json:"authorNumber"`
		} `json:"quote"`
		Attachments []struct {
			ID   string `json:"id"`
			Name string `json:"filename"`
			Type string `json:"contentType"`
			Size int64  `json:"size"`
		} `json:"attachments"`
		Reaction     json.RawMessage `json:"reaction"`
		RemoteDelete json.RawMessage `json:"remoteDelete"`
	}
)

// incoming reads what was handed over. What carries no message, such as a receipt
// or somebody typing, is nothing to us. A message is named by who sent it and the
// time they gave it, which is how Signal names it.
func (s *Signal) incoming(raw json.RawMessage) (Incoming, bool) {
	var r signalReceive
	if err := json.Unmarshal(raw, &r); err != nil {
		return Incoming{}, false
	}
	if r.Result != nil {
		r = *r.Result
	}
	e := r.Envelope
	if e == nil || r.Account != "" && r.Account != s.o.Account || !signalUUID.MatchString(e.SourceUUID) {
		return Incoming{}, false
	}
	in := Incoming{Kind: Message, From: Sender{ID: e.SourceUUID, Name: e.SourceName}, Chat: e.SourceUUID}
	m := e.Data
	if e.Edit != nil {
		in.Kind, m = Edited, e.Edit.Data
	}
	if m == nil || m.Reaction != nil || m.RemoteDelete != nil || m.Message == "" && len(m.Attachments) == 0 {
		return Incoming{}, false
	}
	in.ID = e.SourceUUID + ":" + strconv.FormatInt(m.Timestamp, 10)
	in.Ref = strconv.FormatInt(m.Timestamp, 10)
	in.Text = strings.TrimSpace(strings.ReplaceAll(m.Message, "\ufffc", "")) // stands for a mention
	if m.Group != nil {
		if !signalGroup.MatchString(m.Group.ID) {
			return Incoming{}, false
		}
		in.Chat, in.Group = m.Group.ID, true
		in.Text, in.Addressed = s.addressed(in.Text, m)
	}
	for _, a := range m.Attachments {
		in.Files = append(in.Files, File{ID: in.Chat + " " + a.ID, Name: a.Name, Type: a.Type, Size: a.Size})
	}
	return in, true
}

// addressed reports whether words in a group are for us: they mention us, answer
// us, or begin with our name, which is taken off.
func (s *Signal) addressed(text string, m *signalMessage) (string, bool) {
	if n := len(s.o.Name); n > 0 && len(text) > n && strings.EqualFold(text[:n], s.o.Name) && strings.ContainsAny(text[n:n+1], " ,:") {
		return strings.TrimSpace(strings.TrimLeft(text[n:], " ,:")), true
	}
	for _, who := range m.Mentions {
		if who.Number == s.o.Account {
			return text, true
		}
	}
	return text, m.Quote != nil && m.Quote.AuthorNumber == s.o.Account
}

// call calls signal-cli over the connection there is.
func (s *Signal) call(ctx context.Context, method string, params map[string]any, result any) error {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil {
		return errors.New("signal-cli is not connected")
	}
	params["account"] = s.o.Account
	err := c.call(ctx, method, params, result)
	if e := (*rpcError)(nil); errors.As(err, &e) {
		switch e.Code {
		case -5: // too much was sent
			return &WaitError{After: 10 * time.Minute, Err: err}
		case -1, rpcBadParams: // the user's mistake: an unknown recipient, for one
			return &FinalError{err}
		}
	}
	return err
}

// to is whom a conversation is with, as signal-cli wants it.
func (s *Signal) to(chat string) (map[string]any, error) {
	switch {
	case signalUUID.MatchString(chat), signalNumber.MatchString(chat):
		return map[string]any{"recipient": []string{chat}}, nil
	case signalGroup.MatchString(chat):
		return map[string]any{"groupId": chat}, nil
	}
	return nil, final("conversation %q is neither a person nor a group", line(chat, 80))
}

func (s *Signal) send(ctx context.Context, chat, text, edit string) (string, error) {
	params, err := s.to(chat)
	if err != nil {
		return "", err
	}
	params["message"] = text
	if edit != "" {
		at, err := strconv.ParseInt(edit, 10, 64)
		if err != nil {
			return "", final("message %q: want a time", edit)
		}
		params["editTimestamp"] = at
	}
	var r struct {
		Timestamp int64 `json:"timestamp"`
		Results   []struct {
			Type string `json:"type"`
		} `json:"results"`
	}
	if err := s.call(ctx, "send", params, &r); err != nil {
		return "", err
	}
	failed := ""
	for _, x := range r.Results {
		if x.Type == "SUCCESS" {
			return strconv.FormatInt(r.Timestamp, 10), nil
		}
		failed = x.Type
	}
	switch failed {
	case "":
		return strconv.FormatInt(r.Timestamp, 10), nil
	case "NETWORK_FAILURE", "RATE_LIMIT_FAILURE", "PROOF_REQUIRED_FAILURE":
		return "", &WaitError{After: time.Minute, Err: fmt.Errorf("signal: not sent: %s", failed)}
	}
	return "", final("signal: not sent: %s", line(failed, 80))
}

// Send implements [Channel].
func (s *Signal) Send(ctx context.Context, chat, text string) (string, error) {
	return s.send(ctx, chat, text, "")
}

// Edit implements [Channel].
func (s *Signal) Edit(ctx context.Context, chat, ref, text string) error {
	_, err := s.send(ctx, chat, text, ref)
	return err
}

// Ask implements [Channel].
func (s *Signal) Ask(ctx context.Context, chat, ref string, q Question) error {
	_, err := s.send(ctx, chat, fmt.Sprintf("%s\n\nAnswer: %s %s\nor: %s %s", q.Text, wordYes, q.Token, wordNo, q.Token), ref)
	return err
}

// Read implements [Reader].
func (s *Signal) Read(ctx context.Context, in Incoming) error {
	at, err := strconv.ParseInt(in.Ref, 10, 64)
	if err != nil || !signalUUID.MatchString(in.From.ID) {
		return final("message %q cannot be marked as read", in.ID)
	}
	return s.call(ctx, "sendReceipt", map[string]any{"recipient": in.From.ID, "targetTimestamp": []int64{at}, "type": "read"}, nil)
}

// Probe implements [Prober]. It makes a connection of its own, so that it also
// says something before anybody listens.
func (s *Signal) Probe(ctx context.Context) (string, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return "", err
	}
	defer func() {
		c.close(errors.New("no longer needed"))
		<-c.ended
	}()
	var v struct {
		Version string `json:"version"`
	}
	if err := c.call(ctx, "version", nil, &v); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, through signal-cli %s", s.o.Account, line(v.Version, 40)), nil
}

// Fetch implements [Fetcher].
func (s *Signal) Fetch(ctx context.Context, f File, w io.Writer) error {
	chat, id, _ := strings.Cut(f.ID, " ")
	params, err := s.to(chat)
	if err != nil {
		return err
	}
	if !signalFile.MatchString(id) || strings.Contains(id, "..") {
		return final("the attachment %q has no proper name", line(id, 80))
	}
	if r, ok := params["recipient"].([]string); ok {
		params["recipient"] = r[0]
	}
	params["id"] = id
	var got struct {
		Data string `json:"data"`
	}
	if err := s.call(ctx, "getAttachment", params, &got); err != nil {
		return err
	}
	raw, err := base64.StdEncoding.DecodeString(got.Data)
	if err != nil {
		return final("the attachment is not as documented: %w", err)
	}
	_, err = w.Write(raw)
	return err
}
