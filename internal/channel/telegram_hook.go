package channel

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

// hook receives over a webhook: Telegram delivers to a public address that a
// reverse proxy passes on to a listener on this machine. An update is answered
// with 200 once it is taken; any other answer makes Telegram deliver it again.
func (t *Telegram) hook(ctx context.Context, up func(), take func(Incoming) error) error {
	at, err := netip.ParseAddrPort(t.o.Listen)
	if err != nil || !at.Addr().IsLoopback() {
		return final("webhook: %q: want a loopback address and port", t.o.Listen)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	secret := strings.ToLower(rand.Text())
	updates := make(chan delivery)
	srv := &http.Server{
		Handler: hookHandler(secret, updates), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	err = t.api.call(ctx, "setWebhook", map[string]any{
		"url": t.o.Webhook, "secret_token": secret, "allowed_updates": wanted, "max_connections": 1,
	}, nil)
	if err == nil {
		up()
		err = t.deliveries(ctx, updates, take)
	}
	err = errors.Join(err, srv.Close())
	if serr := <-served; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

// A delivery is one update on its way from the listener.
type delivery struct {
	raw  []byte
	done chan bool // whether it was taken
}

// deliveries takes what the listener gets, one at a time.
func (t *Telegram) deliveries(ctx context.Context, updates <-chan delivery, take func(Incoming) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d := <-updates:
			in, _, err := t.incoming(d.raw)
			if err == nil {
				err = take(in)
			}
			d.done <- err == nil
			if err != nil {
				return err
			}
		}
	}
}

// maxUpdate bounds one delivery.
const maxUpdate = 1 << 20

func hookHandler(secret string, updates chan<- delivery) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Get("X-Telegram-Bot-Api-Secret-Token")
		if r.Method != http.MethodPost || subtle.ConstantTimeCompare([]byte(given), []byte(secret)) != 1 {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		raw, err := io.ReadAll(io.LimitReader(r.Body, maxUpdate+1))
		if err != nil || len(raw) > maxUpdate {
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return
		}
		d := delivery{raw, make(chan bool, 1)}
		select {
		case updates <- d:
		case <-r.Context().Done():
			return
		}
		select {
		case ok := <-d.done:
			if !ok {
				http.Error(w, "not now", http.StatusServiceUnavailable)
			}
		case <-r.Context().Done():
		}
	})
}
