package channel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TelegramText is the longest message Telegram takes.
const TelegramText = 4096

// Telegram speaks Telegram's Bot API. Messages come by long polling, or, where a
// webhook is set up, over a listener on this machine that a reverse proxy feeds.
type Telegram struct {
	api *botAPI
	o   TelegramOptions

	me    botUser // as told by the service; written by Receive alone
	menu  bool    // the words are in people's menus; written by Receive alone
	polls bool    // no webhook stands in the way; written by Receive alone
}

// TelegramOptions say how to reach Telegram.
type TelegramOptions struct {
	Token string        // the bot's; never shown
	URL   string        // of the service; "" is Telegram's own
	Poll  time.Duration // how long one poll may last; 0 is 50 seconds
	Quick time.Duration // how long any other call may take; 0 is 20 seconds
	// Webhook is the public address Telegram is told to deliver to, and Listen
	// the address on this machine where that ends up; "" for polling.
	Webhook, Listen string
}

func telegramService() Service {
	options := func(get func(string) string) TelegramOptions {
		return TelegramOptions{
			Token: get("TELEGRAM_BOT_TOKEN"), URL: get("TELEGRAM_API_URL"),
			Webhook: get("TELEGRAM_WEBHOOK_URL"), Listen: get("TELEGRAM_WEBHOOK_LISTEN"),
		}
	}
	return Service{
		Name: "telegram", Title: "Telegram", MaxText: TelegramText,
		Keys:  []Key{{Name: "TELEGRAM_BOT_TOKEN", Asks: "Token of the bot", Secret: true}},
		Open:  func(get func(string) string) (Channel, error) { return NewTelegram(options(get)) },
		Check: func(get func(string) string) error { return options(get).check() },
	}
}

var (
	_ Channel = (*Telegram)(nil)
	_ Fetcher = (*Telegram)(nil)
	_ Toucher = (*Telegram)(nil)
	_ Prober  = (*Telegram)(nil)

	_ Accounted = (*Telegram)(nil)
)

// NewTelegram returns the channel of one bot.
func NewTelegram(o TelegramOptions) (*Telegram, error) {
	if o.Poll == 0 {
		o.Poll = 50 * time.Second
	}
	if o.Quick == 0 {
		o.Quick = 20 * time.Second
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	api, err := newBotAPI(o.URL, o.Token, o.Poll, o.Quick)
	if err != nil {
		return nil, err
	}
	return &Telegram{api: api, o: o}, nil
}

// check says what does not go together.
func (o TelegramOptions) check() error {
	switch {
	case o.Webhook != "" && o.Listen == "":
		return errors.New("TELEGRAM_WEBHOOK_URL is set and TELEGRAM_WEBHOOK_LISTEN is not: nothing that Telegram delivers arrives")
	case o.Webhook == "" && o.Listen != "":
		return errors.New("TELEGRAM_WEBHOOK_LISTEN is set and TELEGRAM_WEBHOOK_URL is not: nobody knows where to deliver to")
	}
	return nil
}

// Account implements [Accounted]. A token begins with the bot's number.
func (t *Telegram) Account() string {
	number, _, _ := strings.Cut(t.o.Token, ":")
	return number
}

// Probe implements [Prober].
func (t *Telegram) Probe(ctx context.Context) (string, error) {
	var me botUser
	if err := t.api.call(ctx, "getMe", nil, &me); err != nil {
		return "", err
	}
	return fmt.Sprintf("the bot @%s (%d)", Clean(me.Username), me.ID), nil
}

// Receive implements [Channel].
func (t *Telegram) Receive(ctx context.Context, cursor string, up func(), take func(Incoming) error) error {
	if t.me.ID == 0 {
		if err := t.api.call(ctx, "getMe", nil, &t.me); err != nil {
			return err
		}
	}
	t.offer(ctx)
	if t.o.Webhook != "" {
		return t.hook(ctx, up, take)
	}
	if !t.polls { // a webhook that is set makes polling fail for ever
		if err := t.api.call(ctx, "deleteWebhook", map[string]any{}, nil); err != nil {
			return err
		}
		t.polls = true
	}
	next := int64(0)
	if cursor != "" {
		last, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			return fmt.Errorf("the kept update number %q is no number", cursor)
		}
		next = last + 1
	}
	for ctx.Err() == nil {
		var raw []json.RawMessage
		if err := t.api.call(ctx, methodPoll, pollParams(next, t.o.Poll), &raw); err != nil {
			if e := (*apiError)(nil); errors.As(err, &e) && e.Code == http.StatusConflict {
				t.polls = false
			}
			return err
		}
		up()
		for _, u := range t.inOrder(raw) {
			next = max(next, u.id+1)
			u.in.Cursor = strconv.FormatInt(next-1, 10)
			if err := take(u.in); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// offer puts the words we know into people's menus. It is a courtesy: where it
// fails, the words work all the same.
func (t *Telegram) offer(ctx context.Context) {
	if t.menu {
		return
	}
	list := make([]map[string]string, len(menu))
	for i, w := range menu {
		list[i] = map[string]string{"command": w.word, "description": w.does}
	}
	t.menu = t.api.call(ctx, "setMyCommands", map[string]any{"commands": list}, nil) == nil
}

// menu are the words people find in their menus.
var menu = []struct{ word, does string }{
	{"approvals", "what waits for you"},
	{"session", "which conversation this continues"},
	{"stop", "stop what is being done"},
	{"cost", "what models have cost"},
	{"models", "which models are used"},
	{"help", "what can be said"},
}

// A numbered update is one with its place in line.
type numbered struct {
	id int64
	in Incoming
}

// inOrder reads a batch. To acknowledge an update is to acknowledge all before it,
// so they must be taken in the order of their numbers, however they came.
func (t *Telegram) inOrder(raw []json.RawMessage) []numbered {
	out := make([]numbered, 0, len(raw))
	for _, r := range raw {
		if in, id, err := t.incoming(r); err == nil { // one without a number can be neither named nor acknowledged
			out = append(out, numbered{id, in})
		}
	}
	slices.SortStableFunc(out, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
	return out
}

// wanted are the kinds of updates we ask for.
var wanted = []string{"message", "edited_message", "callback_query"}

func pollParams(next int64, poll time.Duration) map[string]any {
	p := map[string]any{"timeout": int(poll / time.Second), "limit": 50, "allowed_updates": wanted}
	if next != 0 {
		p["offset"] = next
	}
	return p
}

// incoming reads one update. One we do not understand is passed on as that, so
// that it is acknowledged and does not come again for ever; only one without a
// number is an error.
func (t *Telegram) incoming(raw json.RawMessage) (Incoming, int64, error) {
	u, err := decodeUpdate(raw)
	if err != nil {
		return Incoming{}, 0, err
	}
	id := strconv.FormatInt(u.ID, 10)
	in := Incoming{ID: id}
	switch {
	case u.Message != nil:
		in.Kind = Message
		t.fill(&in, u.Message)
	case u.Edited != nil:
		in.Kind = Edited
		t.fill(&in, u.Edited)
	case u.Callback != nil:
		t.fillTouch(&in, u.Callback)
	}
	return in, u.ID, nil
}

// fill takes over what a message says. A message in the name of a channel or a
// group has no person as its sender, and is nobody's.
func (t *Telegram) fill(in *Incoming, m *botMessage) {
	if m.From == nil || m.From.ID <= 0 || m.Chat.ID == 0 || m.SenderChat != nil || m.From.IsBot {
		in.Kind = Unknown
		return
	}
	in.From = Sender{ID: m.From.id(), Name: m.From.name()}
	in.Chat, in.Group = strconv.FormatInt(m.Chat.ID, 10), m.Chat.Type != "private"
	in.Text = m.Text
	if in.Text == "" {
		in.Text = m.Caption
	}
	in.Forwarded = m.ForwardOrigin != nil || m.ViaBot != nil
	in.Files = m.files()
	in.Text, in.Addressed = t.addressed(in.Text)
	if r := m.ReplyTo; r != nil && r.From != nil && r.From.ID == t.me.ID {
		in.Addressed = true
	}
}

// addressed takes our name off a text, and reports whether it was there.
func (t *Telegram) addressed(text string) (string, bool) {
	if t.me.Username == "" {
		return text, false
	}
	name := "@" + strings.ToLower(t.me.Username)
	first, rest, _ := strings.Cut(text, " ")
	if cmd, bot, ok := strings.Cut(first, "@"); ok && strings.HasPrefix(cmd, "/") && "@"+strings.ToLower(bot) == name {
		return strings.TrimSpace(cmd + " " + rest), true
	}
	if strings.EqualFold(first, name) {
		return strings.TrimSpace(rest), true
	}
	for _, w := range strings.Fields(strings.ToLower(text)) {
		if strings.TrimRight(w, ".,;:!?") == name {
			return text, true
		}
	}
	return text, false
}

func (t *Telegram) fillTouch(in *Incoming, c *botCallback) {
	if c.From == nil || c.From.ID <= 0 || c.Message == nil || c.Message.Chat.ID == 0 {
		return
	}
	in.Kind = Touch
	in.From = Sender{ID: c.From.id(), Name: c.From.name()}
	in.Chat, in.Group = strconv.FormatInt(c.Message.Chat.ID, 10), c.Message.Chat.Type != "private"
	in.Text, in.Touch, in.Ref = c.Data, c.ID, strconv.FormatInt(c.Message.ID, 10)
}

// Send implements [Channel].
func (t *Telegram) Send(ctx context.Context, chat, text string) (string, error) {
	id, err := chatID(chat)
	if err != nil {
		return "", err
	}
	var m botMessage
	err = t.api.call(ctx, "sendMessage", sendParams{Chat: id, Text: text, Preview: noPreview}, &m)
	return strconv.FormatInt(m.ID, 10), err
}

// Edit implements [Channel].
func (t *Telegram) Edit(ctx context.Context, chat, ref, text string) error {
	return t.edit(ctx, chat, ref, text, keyboard{Rows: [][]button{}})
}

// Ask implements [Channel].
func (t *Telegram) Ask(ctx context.Context, chat, ref string, q Question) error {
	return t.edit(ctx, chat, ref, q.Text, keyboard{Rows: [][]button{{
		{Text: "Approve", Data: wordYes + " " + q.Token}, {Text: "Deny", Data: wordNo + " " + q.Token},
	}}})
}

func (t *Telegram) edit(ctx context.Context, chat, ref, text string, k keyboard) error {
	id, err := chatID(chat)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(ref, 10, 64)
	if err != nil {
		return final("message %q: want a number", ref)
	}
	err = t.api.call(ctx, "editMessageText", editParams{Chat: id, Message: n, Text: text, Keys: k, Preview: noPreview}, nil)
	if e := (*apiError)(nil); errors.As(err, &e) && e.Code == 400 {
		switch low := strings.ToLower(e.Description); {
		case strings.Contains(low, "message is not modified"):
			return nil // it says that already
		case strings.Contains(low, "message to edit not found"), strings.Contains(low, "message can't be edited"):
			return fmt.Errorf("%w: %w", ErrGone, err)
		}
	}
	return err
}

// Touched implements [Toucher].
func (t *Telegram) Touched(ctx context.Context, touch, text string) error {
	return t.api.call(ctx, "answerCallbackQuery", map[string]any{"callback_query_id": touch, "text": text, "show_alert": true}, nil)
}

// Fetch implements [Fetcher].
func (t *Telegram) Fetch(ctx context.Context, f File, w io.Writer) error {
	var got botFile
	if err := t.api.call(ctx, "getFile", map[string]any{"file_id": f.ID}, &got); err != nil {
		return err
	}
	return t.api.download(ctx, got.Path, w)
}

func chatID(chat string) (int64, error) {
	id, err := strconv.ParseInt(chat, 10, 64)
	if err != nil {
		return 0, final("conversation %q: want a number", chat)
	}
	return id, nil
}
