// Package channeltest plays the services' side of the wire, for tests: Telegram's
// Bot API over HTTP, and the JSON-RPC of signal-cli's daemon over a socket.
//
//   - [Telegram] keeps updates until they are acknowledged, and conversations as
//     people would see them. A [Fault] makes a call go wrong in the ways networks do.
//   - [Signal] hands messages to whoever has subscribed, and keeps what is sent.
//
// Both are written from the published schemas. What they say on the wire is
// checked against the published client libraries in tools/wire.
package channeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Fault is a way in which a call goes wrong. The zero Fault is none.
type Fault uint8

// The faults.
const (
	None     Fault = iota
	Drop           // the connection ends before the call is heard
	Lose           // the call is carried out, and its answer is lost
	Broken         // 502, and nothing happened
	Late           // 502, but the call was carried out
	TooMany        // 429, try again at once
	HalfOpen       // the call is heard and never answered
	Garbage        // the answer is no JSON
	Faults         // how many there are
)

// Token is the token of the bot that the server knows.
const Token = "4242:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr"

// BotName is what the bot is called.
const BotName = "pp_test_bot"

const botID = 4242

// A Line is one message as people see it in a conversation.
type Line struct {
	ID      int64
	Text    string
	Buttons []string // what the buttons would send
	Edits   int
}

// Telegram is a server of the Bot API with one bot.
type Telegram struct {
	URL  string
	srv  *httptest.Server
	once sync.Once

	mu               sync.Mutex // guards what follows
	token            string
	fault            func(method string) Fault
	again, backwards bool
	news             chan struct{}
	closed           chan struct{}
	updates          []update
	old              []update // acknowledged
	lastUpd          int64
	lastMsg          int64
	chats            map[int64][]Line
	answers          []string // to touches
	files            map[string][]byte
	calls            map[string]int
	menu             []string
	hookURL          string
	secret           string
}

type update struct {
	id   int64
	body map[string]any
}

// NewTelegram starts a server on this machine.
func NewTelegram() *Telegram {
	t := &Telegram{
		news: make(chan struct{}), closed: make(chan struct{}), lastUpd: 1000, lastMsg: 10, token: Token,
		chats: map[int64][]Line{}, files: map[string][]byte{}, calls: map[string]int{},
	}
	t.srv = httptest.NewServer(http.HandlerFunc(t.serve))
	t.URL = t.srv.URL
	return t
}

// Close ends the server and every call that hangs.
func (t *Telegram) Close() {
	t.once.Do(func() {
		close(t.closed)
		t.srv.CloseClientConnections()
		t.srv.Close()
	})
}

// Accept makes the bot another one, whose token this is.
func (t *Telegram) Accept(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.token = token
}

// Misbehave makes calls go wrong from now on: fault is asked before each, nil for
// none; again hands over what was acknowledged, once more, with every poll that has
// something new; backwards hands over the newest first.
func (t *Telegram) Misbehave(fault func(method string) Fault, again, backwards bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.again, t.backwards = fault, again, backwards
}

// User is a person as Telegram describes them.
func User(id int64, name string) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": name, "username": strings.ToLower(name), "language_code": "en"}
}

// Private is the conversation of one person with the bot.
func Private(id int64) map[string]any {
	return map[string]any{"id": id, "type": "private", "first_name": "Somebody"}
}

// Group is a conversation of several people.
func Group(id int64) map[string]any {
	return map[string]any{"id": id, "type": "supergroup", "title": "A group"}
}

// Say makes somebody write to the bot in private. More are further fields of the
// message. It returns the number of the update.
func (t *Telegram) Say(from int64, text string, more ...map[string]any) int64 {
	return t.Post("message", from, Private(from), text, more...)
}

// Post makes somebody write somewhere; kind is message or edited_message.
func (t *Telegram) Post(kind string, from int64, chat map[string]any, text string, more ...map[string]any) int64 {
	t.mu.Lock()
	t.lastMsg++
	m := map[string]any{"message_id": t.lastMsg, "from": User(from, "Person"), "chat": chat, "date": 1790000000 + t.lastMsg}
	if text != "" {
		m["text"] = text
	}
	if kind == "edited_message" {
		m["edit_date"] = 1790000001 + t.lastMsg
	}
	for _, x := range more {
		for k, v := range x {
			m[k] = v
		}
	}
	t.mu.Unlock()
	return t.Update(map[string]any{kind: m})
}

// Touch makes somebody touch a button below a message of the bot.
func (t *Telegram) Touch(from int64, chat map[string]any, message int64, data string) int64 {
	return t.Update(map[string]any{"callback_query": map[string]any{
		"id": fmt.Sprintf("touch%d", message), "from": User(from, "Person"), "chat_instance": "1", "data": data,
		"message": map[string]any{
			"message_id": message, "chat": chat, "date": 1790000000,
			"from": map[string]any{"id": botID, "is_bot": true, "first_name": "Bot", "username": BotName}, "text": "x",
		},
	}})
}

// Update puts any update in line.
func (t *Telegram) Update(body map[string]any) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastUpd++
	full := map[string]any{"update_id": t.lastUpd}
	for k, v := range body {
		full[k] = v
	}
	t.updates = append(t.updates, update{t.lastUpd, full})
	close(t.news)
	t.news = make(chan struct{})
	return t.lastUpd
}

// File makes a file that can be fetched.
func (t *Telegram) File(id string, contents []byte) map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[id] = contents
	return map[string]any{"document": map[string]any{
		"file_id": id, "file_unique_id": "u" + id, "file_name": "../../evil name;.txt", "mime_type": "text/plain", "file_size": len(contents),
	}}
}

// Chat is a conversation as its members see it: what the bot has said.
func (t *Telegram) Chat(id int64) []Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.chats[id])
}

// Delete takes a message of the bot away, as a person may.
func (t *Telegram) Delete(chat, id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.chats[chat] = slices.DeleteFunc(t.chats[chat], func(l Line) bool { return l.ID == id })
}

// Answers are what the bot said to touches.
func (t *Telegram) Answers() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.answers)
}

// Calls is how often a method was called.
func (t *Telegram) Calls(method string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[method]
}

// Waiting is how many updates were not acknowledged.
func (t *Telegram) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.updates)
}

// Menu are the words in people's menus.
func (t *Telegram) Menu() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.menu)
}

// Hook is the webhook that was set, and its secret.
func (t *Telegram) Hook() (url, secret string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hookURL, t.secret
}

func (t *Telegram) serve(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	token := t.token
	t.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/file/bot"+token+"/"); ok {
		t.mu.Lock()
		contents, known := t.files[strings.TrimPrefix(name, "documents/")]
		t.mu.Unlock()
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(contents)
		return
	}
	method, ok := strings.CutPrefix(r.URL.Path, "/bot"+token+"/")
	if !ok {
		reply(w, http.StatusUnauthorized, map[string]any{"ok": false, "error_code": 401, "description": "Unauthorized"})
		return
	}
	params, err := paramsOf(r)
	if err != nil {
		reply(w, http.StatusBadRequest, map[string]any{"ok": false, "error_code": 400, "description": "Bad Request: " + err.Error()})
		return
	}
	t.mu.Lock()
	t.calls[method]++
	fault := t.fault
	t.mu.Unlock()
	f := None
	if fault != nil {
		f = fault(method)
	}
	switch f {
	case Drop:
		panic(http.ErrAbortHandler)
	case Broken:
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
		return
	case TooMany:
		reply(w, http.StatusTooManyRequests, map[string]any{
			"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 0", "parameters": map[string]any{"retry_after": 0},
		})
		return
	case None, Lose, Late, HalfOpen, Garbage, Faults: // these happen afterwards
	}
	code, answer := t.call(r, method, params)
	switch f {
	case Lose:
		panic(http.ErrAbortHandler)
	case Late:
		http.Error(w, "<html>bad gateway</html>", http.StatusBadGateway)
	case Garbage:
		fmt.Fprint(w, `{"ok":true,"result":`)
	case HalfOpen:
		select {
		case <-r.Context().Done():
		case <-t.closed:
		}
		panic(http.ErrAbortHandler)
	default:
		reply(w, code, answer)
	}
}

// paramsOf reads what a method is called with: JSON, or a form whose values are
// JSON where they are not plain text. Telegram takes both.
func paramsOf(r *http.Request) (params map[string]any, err error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		err = json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&params)
		return params, err
	}
	params = map[string]any{}
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		if errors.Is(err, io.EOF) || strings.Contains(err.Error(), "EOF") { // a call without parameters
			return params, nil
		}
		return nil, err
	}
	for k, v := range r.MultipartForm.Value {
		var x any
		if json.Unmarshal([]byte(v[0]), &x) != nil || k == "text" {
			x = v[0]
		}
		params[k] = x
	}
	return params, nil
}

func reply(w http.ResponseWriter, code int, answer map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone needs no answer
}

func bad(description string) (int, map[string]any) {
	return http.StatusBadRequest, map[string]any{"ok": false, "error_code": 400, "description": "Bad Request: " + description}
}

func good(result any) (int, map[string]any) {
	return http.StatusOK, map[string]any{"ok": true, "result": result}
}

func (t *Telegram) call(r *http.Request, method string, p map[string]any) (int, map[string]any) {
	if method == "getUpdates" {
		return good(t.poll(r, number(p["offset"]), number(p["timeout"])))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	chat := number(p["chat_id"])
	text, _ := p["text"].(string)
	switch method {
	case "getMe":
		return good(map[string]any{"id": botID, "is_bot": true, "first_name": "Bot", "username": BotName, "can_join_groups": true})
	case "setMyCommands":
		list, _ := p["commands"].([]any)
		t.menu = nil
		for _, x := range list {
			c, _ := x.(map[string]any)
			word, _ := c["command"].(string)
			if what, _ := c["description"].(string); word == "" || len(word) > 32 || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || what == "" || len(what) > 256 {
				return bad("BOT_COMMAND_INVALID")
			}
			t.menu = append(t.menu, word)
		}
		return good(true)
	case "deleteWebhook":
		t.hookURL = ""
		return good(true)
	case "setWebhook":
		t.hookURL, _ = p["url"].(string)
		t.secret, _ = p["secret_token"].(string)
		return good(true)
	case "sendMessage":
		if problem := textProblem(text); problem != "" {
			return bad(problem)
		}
		t.lastMsg++
		t.chats[chat] = append(t.chats[chat], Line{ID: t.lastMsg, Text: text, Buttons: buttons(p)})
		return good(message(t.lastMsg, chat, text))
	case "editMessageText":
		return t.edit(chat, number(p["message_id"]), text, buttons(p))
	case "answerCallbackQuery":
		t.answers = append(t.answers, text)
		return good(true)
	case "getFile":
		id, _ := p["file_id"].(string)
		if _, ok := t.files[id]; !ok {
			return bad("invalid file_id")
		}
		return good(map[string]any{"file_id": id, "file_unique_id": "u" + id, "file_size": len(t.files[id]), "file_path": "documents/" + id})
	}
	return http.StatusNotFound, map[string]any{"ok": false, "error_code": 404, "description": "Not Found: method not found"}
}

func (t *Telegram) edit(chat, id int64, text string, keys []string) (int, map[string]any) {
	if problem := textProblem(text); problem != "" {
		return bad(problem)
	}
	i := slices.IndexFunc(t.chats[chat], func(l Line) bool { return l.ID == id })
	if i < 0 {
		return bad("message to edit not found")
	}
	l := &t.chats[chat][i]
	if l.Text == text && slices.Equal(l.Buttons, keys) {
		return bad("message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message")
	}
	l.Text, l.Buttons = text, keys
	l.Edits++
	return good(message(id, chat, text))
}

func textProblem(text string) string {
	n := 0
	for _, r := range text {
		if n++; r >= 0x10000 {
			n++
		}
	}
	switch {
	case strings.TrimSpace(text) == "":
		return "message text is empty"
	case n > 4096:
		return "message is too long"
	}
	return ""
}

func message(id, chat int64, text string) map[string]any {
	return map[string]any{
		"message_id": id, "date": 1790000000, "text": text, "chat": map[string]any{"id": chat, "type": "private"},
		"from": map[string]any{"id": botID, "is_bot": true, "first_name": "Bot", "username": BotName},
	}
}

func buttons(p map[string]any) (out []string) {
	k, _ := p["reply_markup"].(map[string]any)
	rows, _ := k["inline_keyboard"].([]any)
	for _, row := range rows {
		cells, _ := row.([]any)
		for _, c := range cells {
			b, _ := c.(map[string]any)
			data, _ := b["callback_data"].(string)
			out = append(out, data)
		}
	}
	return out
}

func number(v any) int64 {
	f, _ := v.(float64)
	return int64(f)
}

// poll waits for updates from an offset on; those before it are acknowledged.
func (t *Telegram) poll(r *http.Request, offset, seconds int64) []any {
	deadline := time.NewTimer(time.Duration(seconds) * time.Second)
	defer deadline.Stop()
	for {
		t.mu.Lock()
		for len(t.updates) > 0 && offset > t.updates[0].id {
			t.old = append(t.old, t.updates[0])
			t.updates = t.updates[1:]
		}
		give := slices.Clone(t.updates)
		if t.again && len(give) > 0 {
			give = append(slices.Clone(t.old), give...)
		}
		if t.backwards {
			slices.Reverse(give)
		}
		news := t.news
		t.mu.Unlock()
		if len(give) > 0 {
			out := make([]any, len(give))
			for i, u := range give {
				out[i] = u.body
			}
			return out
		}
		select {
		case <-news:
		case <-deadline.C:
			return []any{}
		case <-r.Context().Done():
			return []any{}
		case <-t.closed:
			return []any{}
		}
	}
}
