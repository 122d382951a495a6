package wire

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	rpcchannel "github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"
	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
)

const person = "0b5d4f2e-6c1a-4e57-9f0e-2a51c0ffee01"

// The updates our decoder is tested with are updates as the published client knows
// them: no field is unknown, and none is lost.
func TestTheUpdatesAreThoseOfTheBotAPI(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "..", "internal", "channel", "testdata", "wire", "update-*.json"))
	if err != nil || len(names) == 0 {
		t.Fatal("no updates", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			raw, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			strict(t, raw, new(models.Update))
		})
	}
}

// What our client asks is understood, to the last field, as the published client's
// own parameters.
func TestOurCallsAreThoseOfTheBotAPI(t *testing.T) {
	var mu sync.Mutex
	calls := map[string][]byte{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		calls[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]] = raw
		mu.Unlock()
		_, _ = io.WriteString(w, `{"ok":true,"result":{"message_id":5,"file_id":"x","file_path":"documents/x"}}`)
	}))
	defer srv.Close()
	tg, err := channel.NewTelegram(channel.TelegramOptions{Token: channeltest.Token, URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if ref, err := tg.Send(ctx, "4711", text); err != nil || ref != "5" {
		t.Fatal(ref, err)
	}
	var send bot.SendMessageParams
	strict(t, calls["sendMessage"], &send)
	if send.Text != text || !*send.LinkPreviewOptions.IsDisabled {
		t.Errorf("sent is %+v", send)
	}
	if err := tg.Ask(ctx, "4711", "5", channel.Question{Token: "a-1", Text: text}); err != nil {
		t.Fatal(err)
	}
	var edit bot.EditMessageTextParams
	strict(t, calls["editMessageText"], &edit)
	var keys struct {
		Markup json.RawMessage `json:"reply_markup"`
	}
	if err := json.Unmarshal(calls["editMessageText"], &keys); err != nil {
		t.Fatal(err)
	}
	var k models.InlineKeyboardMarkup
	strict(t, keys.Markup, &k)
	if edit.MessageID != 5 || len(k.InlineKeyboard) != 1 || k.InlineKeyboard[0][0].CallbackData != "/approve a-1" || len(k.InlineKeyboard[0][0].CallbackData) > 64 {
		t.Errorf("asked is %+v, %+v", edit, k)
	}
	if err := tg.Touched(ctx, "t1", text); err != nil {
		t.Fatal(err)
	}
	strict(t, calls["answerCallbackQuery"], new(bot.AnswerCallbackQueryParams))
	if err := tg.Fetch(ctx, channel.File{ID: "x"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	strict(t, calls["getFile"], new(bot.GetFileParams))
}

// The published client can live with our server, so our server is one.
func TestThePublishedClientTalksToOurTelegram(t *testing.T) {
	srv := channeltest.NewTelegram()
	defer srv.Close()
	got := make(chan *models.Update, 10)
	b, err := bot.New(channeltest.Token, bot.WithServerURL(srv.URL), bot.WithHTTPClient(2*time.Second, http.DefaultClient), bot.WithNotAsyncHandlers(),
		bot.WithDefaultHandler(func(_ context.Context, _ *bot.Bot, u *models.Update) { got <- u }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	me, err := b.GetMe(ctx)
	if err != nil || me.Username != channeltest.BotName {
		t.Fatal(me, err)
	}
	m, err := b.SendMessage(ctx, &bot.SendMessageParams{ChatID: int64(4711), Text: text})
	if err != nil || m.Text != text {
		t.Fatal(m, err)
	}
	edit := &bot.EditMessageTextParams{ChatID: int64(4711), MessageID: m.ID, Text: "x", ReplyMarkup: &models.InlineKeyboardMarkup{
		InlineKeyboard: [][]models.InlineKeyboardButton{{{Text: "Approve", CallbackData: "/approve a-1"}}},
	}}
	if _, err := b.EditMessageText(ctx, edit); err != nil {
		t.Fatal(err)
	}
	if _, err := b.EditMessageText(ctx, edit); err == nil || !strings.Contains(err.Error(), "message is not modified") {
		t.Errorf("the same edit again: %v", err)
	}
	if l := srv.Chat(4711); len(l) != 1 || l[0].Text != "x" || l[0].Buttons[0] != "/approve a-1" {
		t.Errorf("people see %+v", l)
	}
	go b.Start(ctx)
	srv.Say(4711, text)
	srv.Touch(4711, channeltest.Private(4711), int64(m.ID), "/approve a-1")
	if u := <-got; u.Message == nil || u.Message.Text != text || u.Message.From.ID != 4711 {
		t.Errorf("the first update is %+v", u)
	}
	if u := <-got; u.CallbackQuery == nil || u.CallbackQuery.Data != "/approve a-1" || u.CallbackQuery.Message.Message.ID != m.ID {
		t.Errorf("the second update is %+v", u)
	}
}

// A published JSON-RPC server in signal-cli's place understands our client, and
// our client it.
func TestOurSignalSpeaksJSONRPC(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	sent := make(chan map[string]any, 10)
	methods := handler.Map{
		"version":          handler.New(func(context.Context) (map[string]any, error) { return map[string]any{"version": "0.13.19"}, nil }),
		"subscribeReceive": handler.New(func(_ context.Context, p map[string]any) (int, error) { return 0, nil }),
		"send": handler.New(func(_ context.Context, p map[string]any) (map[string]any, error) {
			sent <- p
			return map[string]any{"timestamp": 1790000000001, "results": []any{map[string]any{"type": "SUCCESS"}}}, nil
		}),
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s := jrpc2.NewServer(methods, &jrpc2.ServerOptions{AllowPush: true}).Start(rpcchannel.Line(c, c))
			_ = s.Notify(context.Background(), "receive", map[string]any{"account": channeltest.SignalAccount, "envelope": map[string]any{
				"sourceUuid": person, "sourceName": "Ada", "timestamp": 7, "dataMessage": map[string]any{"timestamp": 7, "message": text},
			}})
		}
	}()
	s, err := channel.NewSignal(channel.SignalOptions{Account: channeltest.SignalAccount, Address: ln.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if as, err := s.Probe(t.Context()); err != nil || !strings.Contains(as, "0.13.19") {
		t.Fatal(as, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	taken := make(chan channel.Incoming, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- s.Receive(ctx, "", func() {}, func(in channel.Incoming) error { taken <- in; return nil })
	}()
	if in := <-taken; in.Text != text || in.From.ID != person {
		t.Errorf("taken is %+v", in)
	}
	if ref, err := s.Send(ctx, person, text); err != nil || ref != "1790000000001" {
		t.Errorf("sent as %q, %v", ref, err)
	}
	if p := <-sent; p["message"] != text {
		t.Errorf("sent is %v", p)
	}
	stop()
	<-ended
}

// A published JSON-RPC client understands our stand-in.
func TestThePublishedClientTalksToOurSignal(t *testing.T) {
	srv, err := channeltest.NewSignal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Stop()
	nc, err := net.Dial("unix", srv.Address)
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	c := jrpc2.NewClient(rpcchannel.Line(nc, nc), &jrpc2.ClientOptions{OnNotify: func(r *jrpc2.Request) { heard <- r.ParamString() }})
	defer c.Close()
	var v struct{ Version string }
	if err := c.CallResult(t.Context(), "version", nil, &v); err != nil || v.Version == "" {
		t.Fatal(v, err)
	}
	if _, err := c.Call(t.Context(), "subscribeReceive", map[string]any{"account": channeltest.SignalAccount}); err != nil {
		t.Fatal(err)
	}
	srv.Say(person, text)
	if got := <-heard; !strings.Contains(got, person) {
		t.Errorf("heard %s", got)
	}
	if _, err := c.Call(t.Context(), "nonsense", nil); jrpc2.ErrorCode(err) != jrpc2.MethodNotFound {
		t.Errorf("an unknown method: %v", err)
	}
}
