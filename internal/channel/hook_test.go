package channel_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"passepartout/internal/channel"
	"passepartout/internal/channel/channeltest"
)

// freeAddress is a loopback address nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func deliver(t *testing.T, at, secret string, body []byte) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at+"/", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func TestAWebhookTakesWhatHasTheSecretAndAnswersWhenItIsKept(t *testing.T) {
	srv := channeltest.NewTelegram()
	defer srv.Close()
	at := freeAddress(t)
	tg, err := channel.NewTelegram(channel.TelegramOptions{
		Token: channeltest.Token, URL: srv.URL, Webhook: "https://example.org/hook", Listen: at, Quick: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	taken := make(chan channel.Incoming, 10)
	full := fmt.Errorf("no room")
	var room atomic.Bool
	room.Store(true)
	ended := make(chan error, 1)
	receive := func() {
		ended <- tg.Receive(ctx, "", func() {}, func(in channel.Incoming) error {
			if !room.Load() {
				return full
			}
			taken <- in
			return nil
		})
	}
	go receive()
	secret := ""
	for deadline := time.Now().Add(20 * time.Second); secret == "" && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		_, secret = srv.Hook()
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "wire", "update-command.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"", "x", secret + "x"} {
		if code, err := deliver(t, at, wrong, raw); err != nil || code != http.StatusForbidden {
			t.Errorf("with the secret %q: %d, %v", wrong, code, err)
		}
	}
	if code, err := deliver(t, at, secret, bytes.Repeat([]byte("x"), 2<<20)); err == nil && code != http.StatusRequestEntityTooLarge {
		t.Errorf("a huge delivery: %d", code)
	}
	if code, err := deliver(t, at, secret, raw); err != nil || code != http.StatusOK {
		t.Fatalf("a delivery: %d, %v", code, err)
	}
	if in := <-taken; in.Text != "/approve a-4kq2mx" || in.From.ID != "4711" || in.ID != "10001" {
		t.Errorf("taken is %+v", in)
	}
	if len(taken) != 0 {
		t.Errorf("%d more were taken", len(taken))
	}
	room.Store(false)
	if code, err := deliver(t, at, secret, raw); err == nil && code == http.StatusOK {
		t.Error("what was not kept is acknowledged")
	}
	if err := <-ended; err == nil {
		t.Error("a failure to keep is not reported")
	}
	for _, listen := range []string{"0.0.0.0:9106", "example.org:80", ""} {
		tg, err := channel.NewTelegram(channel.TelegramOptions{Token: channeltest.Token, URL: srv.URL, Webhook: "https://example.org", Listen: listen})
		if err == nil {
			err = tg.Receive(t.Context(), "", func() {}, nil)
		}
		if err == nil {
			t.Errorf("a listener on %q is accepted", listen)
		}
	}
}
