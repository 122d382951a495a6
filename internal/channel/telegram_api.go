package channel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"passepartout/internal/pattern"
)

// What we need of Telegram's objects. Fields we do not know are ignored: the
// service adds some every few weeks.
type (
	botUpdate struct {
		ID       int64        `json:"update_id"`
		Message  *botMessage  `json:"message,omitempty"`
		Edited   *botMessage  `json:"edited_message,omitempty"`
		Callback *botCallback `json:"callback_query,omitempty"`
	}
	botMessage struct {
		ID            int64           `json:"message_id"`
		From          *botUser        `json:"from,omitempty"`
		SenderChat    *botChat        `json:"sender_chat,omitempty"`
		Chat          botChat         `json:"chat"`
		Date          int64           `json:"date"`
		ForwardOrigin json.RawMessage `json:"forward_origin,omitempty"`
		ViaBot        *botUser        `json:"via_bot,omitempty"`
		ReplyTo       *botMessage     `json:"reply_to_message,omitempty"`
		Text          string          `json:"text,omitempty"`
		Caption       string          `json:"caption,omitempty"`
		Document      *botFile        `json:"document,omitempty"`
		Photo         []botFile       `json:"photo,omitempty"`
		Audio         *botFile        `json:"audio,omitempty"`
		Voice         *botFile        `json:"voice,omitempty"`
		Video         *botFile        `json:"video,omitempty"`
	}
	botUser struct {
		ID        int64  `json:"id"`
		IsBot     bool   `json:"is_bot"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name,omitempty"`
		Username  string `json:"username,omitempty"`
	}
	botChat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	}
	botCallback struct {
		ID      string      `json:"id"`
		From    *botUser    `json:"from"`
		Message *botMessage `json:"message,omitempty"`
		Data    string      `json:"data,omitempty"`
	}
	botFile struct {
		ID   string `json:"file_id"`
		Name string `json:"file_name,omitempty"`
		Type string `json:"mime_type,omitempty"`
		Size int64  `json:"file_size,omitempty"`
		Path string `json:"file_path,omitempty"`
	}
	sendParams struct {
		Chat    int64   `json:"chat_id"`
		Text    string  `json:"text"`
		Preview preview `json:"link_preview_options"`
	}
	editParams struct {
		Chat    int64    `json:"chat_id"`
		Message int64    `json:"message_id"`
		Text    string   `json:"text"`
		Keys    keyboard `json:"reply_markup"`
		Preview preview  `json:"link_preview_options"`
	}
	preview struct {
		Disabled bool `json:"is_disabled"`
	}
	keyboard struct {
		Rows [][]button `json:"inline_keyboard"`
	}
	button struct {
		Text string `json:"text"`
		Data string `json:"callback_data"`
	}
)

// noPreview keeps Telegram from fetching addresses that stand in an answer: what
// is fetched can carry words out of it.
var noPreview = preview{Disabled: true}

func (u *botUser) id() string { return strconv.FormatInt(u.ID, 10) }

func (u *botUser) name() string {
	n := strings.TrimSpace(u.FirstName + " " + u.LastName)
	if u.Username != "" {
		n += " (@" + u.Username + ")"
	}
	return strings.TrimSpace(n)
}

// files are what came with a message. Of the sizes of a photo the last is the
// largest.
func (m *botMessage) files() []File {
	var out []File
	add := func(f *botFile, fallback string) {
		if f == nil || f.ID == "" {
			return
		}
		name := f.Name
		if name == "" {
			name = fallback
		}
		out = append(out, File{ID: f.ID, Name: name, Type: f.Type, Size: f.Size})
	}
	add(m.Document, "document")
	if n := len(m.Photo); n > 0 {
		add(&m.Photo[n-1], "photo.jpg")
	}
	add(m.Audio, "audio.mp3")
	add(m.Voice, "voice.ogg")
	add(m.Video, "video.mp4")
	return out
}

// decodeUpdate reads one update. What is not as documented becomes an update
// with nothing but its number.
func decodeUpdate(raw []byte) (botUpdate, error) {
	var bare struct {
		ID int64 `json:"update_id"`
	}
	if err := json.Unmarshal(raw, &bare); err != nil || bare.ID <= 0 {
		return botUpdate{}, errors.New("an update without a number")
	}
	var u botUpdate
	if err := json.Unmarshal(raw, &u); err != nil {
		return botUpdate{ID: bare.ID}, nil
	}
	return u, nil
}

// A botAPI calls the methods of one bot. Its token is part of every address, so
// no address and no error of the transport is ever shown as it is.
type botAPI struct {
	base, token string
	client      *http.Client
	quick       time.Duration // how long a call that does not wait may take
}

const telegramURL = "https://api.telegram.org"

// Methods that are not like the others: one waits, one is no method.
const (
	methodPoll = "getUpdates"
	methodFile = "file"
)

var tokenForm = pattern.New(`^[0-9]{1,20}:[A-Za-z0-9_-]{20,100}$`)

func newBotAPI(base, token string, poll, quick time.Duration) (*botAPI, error) {
	if base == "" {
		base = telegramURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("the address of Telegram's service: want http or https and a host")
	}
	if !tokenForm.MatchString(token) {
		return nil, fmt.Errorf("the bot's token has %d characters: want a number, a colon and letters, as BotFather gave it", len(token))
	}
	return &botAPI{base: strings.TrimSuffix(base, "/"), token: token, quick: quick, client: &http.Client{
		// A poll that is silent for longer than it may last is a dead connection.
		Timeout:       poll + quick,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token goes nowhere else
	}}, nil
}

// An apiError is Telegram's own refusal.
type apiError struct {
	Method      string
	Code        int
	Description string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("telegram: %s: %d %s", e.Method, e.Code, line(e.Description, 200))
}

type apiReply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int `json:"retry_after"`
	} `json:"parameters"`
}

// maxReply bounds what one call may return.
const maxReply = 16 << 20

// call calls a method. Errors are sorted into those that wait, those that are
// final, and the rest.
func (a *botAPI) call(ctx context.Context, method string, params, result any) error {
	body := []byte("{}")
	if params != nil {
		var err error
		if body, err = json.Marshal(params); err != nil {
			return final("telegram: %s: %w", method, err)
		}
	}
	if method != methodPoll {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, a.quick)
		defer stop()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/bot"+a.token+"/"+method, bytes.NewReader(body))
	if err != nil {
		return a.hide(method, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return a.hide(method, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return a.hide(method, err)
	}
	var r apiReply
	if len(raw) > maxReply || json.Unmarshal(raw, &r) != nil {
		return a.refused(method, apiReply{Code: resp.StatusCode, Description: "the answer is no JSON, or too long"})
	}
	if !r.OK {
		if r.Code == 0 {
			r.Code = resp.StatusCode
		}
		return a.refused(method, r)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return fmt.Errorf("telegram: %s: the result is not as documented: %w", method, err)
	}
	return nil
}

// refused sorts a refusal.
func (a *botAPI) refused(method string, r apiReply) error {
	r.Description = strings.ReplaceAll(r.Description, a.token, "[token]")
	err := &apiError{Method: method, Code: r.Code, Description: r.Description}
	switch {
	case r.Code == http.StatusTooManyRequests:
		return &WaitError{After: time.Duration(r.Parameters.RetryAfter) * time.Second, Err: err}
	case r.Code == http.StatusUnauthorized, r.Code == http.StatusNotFound && method != methodFile: // a wrong token: nothing will change soon
		return &WaitError{After: 5 * time.Minute, Err: fmt.Errorf("%w: is the bot's token right?", err)}
	case r.Code == http.StatusConflict:
		return &WaitError{After: 30 * time.Second, Err: fmt.Errorf("%w: another program uses this bot", err)}
	case r.Code >= 400 && r.Code < 500:
		return &FinalError{err}
	}
	return err
}

// hide takes the address, and with it the token, out of an error.
func (a *botAPI) hide(method string, err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	if strings.Contains(err.Error(), a.token) {
		err = errors.New(strings.ReplaceAll(err.Error(), a.token, "[token]"))
	}
	return fmt.Errorf("telegram: %s: %w", method, err)
}

// download writes a file's contents.
func (a *botAPI) download(ctx context.Context, path string, w io.Writer) error {
	if path == "" || strings.Contains(path, "..") || strings.ContainsAny(path, "?#%\\") {
		return final("telegram: the file has no path that could be fetched")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+"/file/bot"+a.token+"/"+path, nil)
	if err != nil {
		return a.hide(methodFile, err)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return a.hide(methodFile, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return a.refused(methodFile, apiReply{Code: resp.StatusCode, Description: http.StatusText(resp.StatusCode)})
	}
	if _, err = io.Copy(w, resp.Body); err != nil {
		return a.hide(methodFile, err)
	}
	return nil
}
